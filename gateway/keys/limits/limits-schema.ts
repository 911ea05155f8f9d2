import * as z from 'zod';
import { planWindows } from '../../shared/model.ts';
import { parseDate } from '../../shared/schema/dates-and-durations.ts';
import { expects, fields, list, membersByName, text, wholeNumber } from '../../shared/schema/schema-parts.ts';
import { anyLimitField, type LimitField, limitFieldNames } from './limit-fields.ts';

/** Responses state limits in structured fields, and this is their largest integer (RFC 9651 §3.3.1). */
const limitMax = 999_999_999_999_999;

export const limit = wholeNumber(1, limitMax);

export const limitFieldsShape = {
  perSecond: limit.optional().describe('Units per second.'),
  perMinute: limit.optional().describe('Units per UTC minute.'),
  perHour: limit.optional().describe('Units per UTC hour.'),
  perDay: limit.optional().describe('Units per UTC day.'),
  perMonth: limit.optional().describe('Units per UTC calendar month.'),
} satisfies Record<LimitField, z.ZodType>;

export const limits = fields(`a mapping with ${anyLimitField}`, limitFieldsShape)
  .refine((stated) => Object.keys(stated).length > 0, expects(`a mapping with ${anyLimitField}`))
  .meta({ minProperties: 1 });

export const concurrent = wholeNumber(1, 1_000_000);

/** At least one; duplicates are removed. @param hint follows the message about an empty list */
function listOfIds(hint = '') {
  return list(text('the operationId of an operation'), 'a list of operationIds')
    .min(1, expects(`a list of at least one operationId${hint}`))
    .transform((ids): readonly string[] => [...new Set(ids)]);
}

export const operationIds = listOfIds('; without `operations` all may be called');

/** Names of other policies and buckets. */
const takenGroupNames: readonly string[] = [
  ...['account', 'address', 'ban', 'balance', 'concurrent', 'group', 'plan', 'trial'],
  ...planWindows,
];

const groupNamePattern = /^[a-z0-9-]{1,40}$/;

const groupName = text('a name of 1 to 40 of the characters a-z 0-9 -', groupNamePattern).refine(
  (name) => !takenGroupNames.includes(name),
  { error: ({ input }) => `must not be \`${input}\`, which has another meaning; write another name` },
);

const aGroup = `a mapping with operations and ${anyLimitField}`;

const group = fields(aGroup, {
  operations: listOfIds().describe('The operations of the group. An operation may be in several groups.'),
  ...limitFieldsShape,
})
  .refine(({ operations: _, ...stated }) => Object.keys(stated).length > 0, expects(aGroup))
  .meta({ anyOf: limitFieldNames.map((field) => ({ required: [field] })) });

export const grantedLimits = fields(`a mapping with ${anyLimitField}, or groups`, {
  ...limitFieldsShape,
  groups: membersByName(groupName, limits, 'a mapping of group names to limits')
    .refine((stated) => Object.keys(stated).length > 0, expects('a mapping of at least one group to limits'))
    .optional()
    .describe('Limits of groups of operations, by the name of the group.'),
})
  .refine((stated) => Object.keys(stated).length > 0, expects(`a mapping with ${anyLimitField}, or groups`))
  .meta({ minProperties: 1 });

const groupsMax = 20;

export const groups = membersByName(
  groupName,
  group,
  'a mapping of group names to operations and limits',
).refine(
  (stated) => Object.keys(stated).length <= groupsMax,
  expects(`a mapping of at most ${groupsMax} groups`),
);

/** A wrong name may be a secret in a wrong place, so the message does not show it. */
export const groupsOfKey = z
  .unknown()
  .refine((stated) => Object.keys(Object(stated)).every((name) => groupNamePattern.test(name)), {
    error: 'must have names of 1 to 40 of the characters a-z 0-9 -',
    abort: true,
  })
  .pipe(groups);

export const limitsWithGroups = fields(`a mapping with ${anyLimitField}`, {
  ...limitFieldsShape,
  groups: groups.optional().describe('Limits of groups of operations, by the name of the group.'),
})
  .refine(
    ({ groups: _, ...stated }) => Object.keys(stated).length > 0,
    expects(`a mapping with ${anyLimitField}`),
  )
  .meta({ anyOf: limitFieldNames.map((field) => ({ required: [field] })) });

const changesMax = 20;

/** Changes of a plan or of a key, each with the date `from` on which it takes effect, the earliest first. */
export function datedChanges<Change extends z.ZodType<{ readonly from: number | string }>>(
  change: Change,
  what: string,
) {
  const instantOf = (from: number | string) => (typeof from === 'number' ? from : (parseDate(from) ?? 0));
  return list(change, `a list of mappings, each with ${what}`)
    .min(1, expects(`a list of at least one mapping with ${what}`))
    .max(changesMax, expects(`a list of at most ${changesMax} mappings with ${what}`))
    .superRefine((changes, { addIssue }) => {
      for (const [index, { from }] of changes.entries()) {
        const before = changes[index - 1]?.from;
        const message = 'must be later than the `from` of the entry before; sort the entries by `from`';
        if (before !== undefined && instantOf(from) <= instantOf(before))
          addIssue({ code: 'custom', path: [index, 'from'], message });
      }
    });
}
