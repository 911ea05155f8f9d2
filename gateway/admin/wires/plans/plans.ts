import * as z from 'zod';
import { limitFieldNames } from '../../../keys/limit-fields.ts';
import { planShape } from '../../../keys/plan-schema.ts';
import {
  components,
  count,
  instant,
  limitName,
  limitsByField,
  list,
  positive,
  stated,
} from '../response-parts.ts';
import { defineWire } from '../wire.ts';

export const shownWindows = list(
  z.object({
    name: limitName,
    limit: positive,
    group: z.string().optional().describe('The name of the group of operations that the limit counts.'),
    operations: list(z.string()).optional().describe('The operations of the group.'),
  }),
).describe('The windows, with the shortest window first, and then the windows of each group.');

/** A plan in responses. The members `isCustom` and `windows` replace the plan's `custom` and limits. */
export const planShown = z.object({
  ...stated(planShape, ['custom', 'changes', 'groups', 'guard', 'trial', ...limitFieldNames]),
  name: z.string(),
  isCustom: z.boolean().describe('Whether each key on the plan has its own limits.'),
  windows: shownWindows,
  changes: list(z.object({ from: instant, limits: limitsByField }))
    .optional()
    .describe(
      'All configured changes, with the earliest change first. An entry has all limits of the plan that apply from its time on. `windows` has the present limits.',
    ),
  guard: z
    .object({
      before: limitsByField.describe('All limits of the plan before the edit.'),
      refusedAtMost: z
        .string()
        .describe('The share of refused requests at which the plan returns to `before`, such as `3 %`.'),
      untilAt: instant.describe('The end of the guard.'),
    })
    .optional()
    .describe('The guard of an edit that made limits smaller.'),
  reverted: z
    .object({
      sinceAt: instant,
      requests: count.describe('The requests of the plan during the ten minutes before `sinceAt`.'),
      refused: count.describe(
        'The requests of these that a window refused because the edit made it smaller.',
      ),
      edit: limitsByField.describe('The limits of the edit, which do not apply since `sinceAt`.'),
    })
    .optional()
    .describe(
      'Present if the guard has returned the plan to `guard.before`. `windows` then has the limits before the edit.',
    ),
  trial: limitsByField.optional().describe('All limits of the trial. The trial refuses no request.'),
});

export const plansPage = z
  .object({
    plans: list(
      planShown.extend({
        keys: count,
        disabledKeys: count.describe('Disabled keys on the plan.'),
        watched: z
          .object({ requests: count, refused: count })
          .optional()
          .describe(
            'The requests of the last ten minutes that the watched windows decided, and the requests of these that they refused. A guard counts each key only up to its part of these figures. Absent without a guard, and while no limit is smaller than in `before`.',
          ),
      }),
    ),
    isComplete: z
      .boolean()
      .describe('Whether all keys are counted. If false, the key directory has further keys.'),
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

export const retriedPlan = z
  .object({
    plan: z.string(),
    limits: limitsByField.describe(
      'The limits of the edit, which apply again in all gateways within seconds.',
    ),
    revertedAt: instant
      .optional()
      .describe('The time of the revert that ended; absent if this process had not learnt of it.'),
  })
  .register(components, { id: 'RetriedPlan' });

export const retryPlanWire = defineWire({
  method: 'POST',
  path: '/plans/{name}/retry',
  operationId: 'retryPlan',
  tag: 'Configuration',
  summary: 'Let a reverted plan try its edit again',
  description:
    'Ends the revert of a plan in all gateways. The limits of the edit apply again, and the guard starts its watch from zero.',
  params: { name: z.string().describe('The name of a plan.') },
  answers: { 200: { description: 'The plan tries its edit again.', schema: retriedPlan } },
});
