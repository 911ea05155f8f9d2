import * as z from 'zod';
import { planFiguresShapes, planShownShapes } from '../../../capabilities/lists/schemas.ts';
import { limitFieldNames } from '../../../keys/limits/limit-fields.ts';
import { memberNames, planShape } from '../../../keys/plans/plan-schema.ts';
import {
  components,
  count,
  instant,
  limitName,
  limitsByField,
  list,
  missing,
  positive,
  stated,
} from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';

export const shownWindows = list(
  z
    .object({
      name: limitName,
      limit: positive,
      group: z.string().optional().describe('The name of the group of operations that the limit counts.'),
      operations: list(z.string()).optional().describe('The operations of the group.'),
    })
    .register(components, { id: 'Window' }),
).describe('The windows of all operations, the shortest first, and then those of each group.');

/** A plan in responses. The members `isCustom` and `windows` replace the plan's `custom` and limits. */
export const planShown = z.object({
  ...stated(planShape, ['custom', 'changes', 'groups', 'trial', ...memberNames, ...limitFieldNames]),
  name: z.string(),
  isCustom: z.boolean().describe('Whether each key on the plan has its own limits.'),
  windows: shownWindows,
  changes: list(z.object({ from: instant, limits: limitsByField }))
    .optional()
    .describe(
      'All configured changes, the earliest first. An entry has all limits of the plan from its time on. `windows` has the present limits.',
    ),
  trial: limitsByField.optional().describe('All limits of the trial.'),
  ...planShownShapes,
});

export const plansPage = z
  .object({
    missing,
    plans: list(
      planShown.extend({
        keys: count,
        disabledKeys: count,
        ...planFiguresShapes,
      }),
    ),
    isComplete: z.boolean().describe('If false, the key directory has further keys, which are not counted.'),
  })
  .register(components, { id: 'Plans' });

export const listPlansWire = defineWire({
  method: 'GET',
  path: '/plans',
  operationId: 'listPlans',
  tag: 'Configuration',
  summary: 'The plans',
  description:
    'Every plan with its limits and the number of its keys, in the order of the configuration. The first 10,000 keys of the key directory are also counted. The numbers are cached for 30 s.',
  answers: { 200: { description: 'The plans.', schema: plansPage } },
});
