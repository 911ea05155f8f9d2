import * as z from 'zod';
import { expects, fields, flag } from '../shared/schema/schema-parts.ts';
import { limitFieldsShape, operationIds } from './key-schema.ts';
import { anyLimitField, limitFieldNames } from './limit-fields.ts';

const aPlan = `a mapping with ${anyLimitField}, or the word custom`;

export const planShape = {
  custom: flag().default(false).describe('Whether each key on this plan has its own limits.'),
  ...limitFieldsShape,
  operations: operationIds
    .optional()
    .describe(
      'The operations that keys on this plan may call. Without this list, they may call every operation.',
    ),
};

const planFields = fields(aPlan, planShape)
  .superRefine((plan, { addIssue }) => {
    const limited = limitFieldNames.filter((field) => plan[field] !== undefined);
    if (!plan.custom && limited.length === 0) addIssue(`must be ${aPlan}`);
    for (const field of plan.custom ? limited : []) {
      const message = 'is not for a custom plan, whose keys state their own limits; remove it, or `custom`';
      addIssue({ code: 'custom', path: [field], message });
    }
  })
  .meta({
    // A variable may supply `true` or `false` for `custom`.
    anyOf: [
      ...limitFieldNames.map((field) => ({
        required: [field],
        properties: { custom: { not: { const: true } } },
      })),
      {
        required: ['custom'],
        properties: {
          custom: { not: { const: false } },
          ...Object.fromEntries(limitFieldNames.map((field) => [field, false])),
        },
      },
    ],
  });

/** The schema of a plan in the configuration. The word `custom` means `{ custom: true }`. */
export const planSchema = z.union(
  [planFields, z.literal('custom').transform((): StatedPlan => ({ custom: true }))],
  expects(aPlan),
);

export type StatedPlan = z.output<typeof planFields>;
