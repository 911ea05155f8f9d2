import * as z from 'zod';
import { planShapes } from '../../capabilities/lists/schemas.ts';
import { date, expects, fields, flag } from '../../shared/schema/schema-parts.ts';
import { anyLimitField, limitFieldNames } from '../limits/limit-fields.ts';
import {
  concurrent,
  datedChanges,
  groups,
  limitFieldsShape,
  limitsWithGroups,
  operationIds,
} from '../limits/limits-schema.ts';

const aPlan = `a mapping with ${anyLimitField}, or the word custom`;

/** The limits that a plan has from a given time on. */
const planChange = fields(`a mapping with from and ${anyLimitField}`, {
  from: date.describe(
    'The time from which the limits of the entry apply, on the clock of Redis if there is one. A date means 00:00 UTC.',
  ),
  ...limitFieldsShape,
  groups: groups.optional().describe('All groups of the plan from then on, by name.'),
})
  .refine(
    ({ from: _, groups: __, ...stated }) => Object.keys(stated).length > 0,
    expects(`a mapping with from and ${anyLimitField}`),
  )
  .meta({ anyOf: limitFieldNames.map((field) => ({ required: [field] })) });

const planChanges = datedChanges(planChange, 'from and limits');

export const planShape = {
  custom: flag().default(false).describe('Whether each key on this plan has its own limits.'),
  ...limitFieldsShape,
  groups: groups
    .optional()
    .describe(
      'Limits of groups of operations, by the name of the group. A request counts in the limits of the plan and of each group of its operation. At most 20 groups. A name has 1 to 40 of the characters a-z 0-9 -.',
    ),
  concurrent: concurrent
    .optional()
    .describe(
      'The number of requests of one key, WebSockets included, that may be in progress at the same time. Without it, the plan has no such limit.',
    ),
  operations: operationIds
    .optional()
    .describe('The operations that keys on this plan may call. The default is all.'),
  changes: planChanges
    .optional()
    .describe(
      'Later limits of the plan, at most 20 entries in the order of `from`. Each entry states all windows and groups that apply from its `from` on. Requests that were charged before the change still count in windows that the plan had before.',
    ),
  trial: limitsWithGroups
    .optional()
    .describe(
      'Limits to try out, which refuse no request. Each request of a key on the plan is also decided against them, with counts and bans of their own. The mapping states all windows and groups of the trial. The trial begins with the present counts.',
    ),
  ...planShapes,
};

export const memberNames = Object.keys(planShapes) as (keyof typeof planShapes)[];

/** Besides the limits. */
const membersWithLimits = ['groups', 'changes', ...memberNames, 'trial'] as const;

const planFields = fields(aPlan, planShape)
  .superRefine((plan, { addIssue }) => {
    const limited = limitFieldNames.filter((field) => plan[field] !== undefined);
    if (!plan.custom && limited.length === 0) addIssue(`must be ${aPlan}`);
    const misplaced = [...limited, ...membersWithLimits.filter((field) => plan[field] !== undefined)];
    for (const field of plan.custom ? misplaced : []) {
      const message = 'is not for a custom plan, whose keys state their own limits; remove it, or `custom`';
      addIssue({ code: 'custom', path: [field], message });
    }
  })
  .meta({
    // The value of `custom` may come from an environment variable. The schemas therefore forbid only `true` in a plan with limits, and only
    // `false` in a custom plan.
    anyOf: [
      ...limitFieldNames.map((field) => ({
        required: [field],
        properties: { custom: { not: { const: true } } },
      })),
      {
        required: ['custom'],
        properties: {
          custom: { not: { const: false } },
          ...Object.fromEntries([...limitFieldNames, ...membersWithLimits].map((field) => [field, false])),
        },
      },
    ],
  });

/** The word `custom` means `{ custom: true }`. */
export const planSchema = z.union(
  [planFields, z.literal('custom').transform((): StatedPlan => ({ custom: true }))],
  expects(aPlan),
);

export type StatedPlan = z.output<typeof planFields>;
