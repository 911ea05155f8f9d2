import * as z from 'zod';
import { keyId } from '../../../keys/key-schema.ts';
import { limitFieldNames, ofEachLimitField } from '../../../keys/limits/limit-fields.ts';
import { limit, operationIds } from '../../../keys/limits/limits-schema.ts';
import {
  date,
  expects,
  fields,
  membersByName,
  text,
  wholeNumber,
} from '../../../shared/schema/schema-parts.ts';

const keysListedMax = 1_000;

const editedLimit = z.union(
  [limit, z.null()],
  expects('a whole number from 1 to 999999999999999, or null for no limit'),
);

const windowEdits = ofEachLimitField(editedLimit.optional());

const groupEdit = z.union(
  [
    fields(`an object with some of operations, ${limitFieldNames.join(', ')}`, {
      operations: operationIds
        .optional()
        .describe('The operations of a new group, or other operations of a group.'),
      ...windowEdits,
    }),
    z.null(),
  ],
  expects('an object with limits, or null for no group'),
);

export const limitEdit = fields(`an object with some of ${limitFieldNames.join(', ')}, groups`, {
  ...windowEdits,
  groups: membersByName(text('the name of a group'), groupEdit, 'an object of limits by group')
    .optional()
    .describe('New limits by the name of a group of operations. null removes a group.'),
});

const milliseconds = wholeNumber(1, 1e12);

export const simulateBody = fields('an object with plans and keys, the limits to try', {
  from: date
    .optional()
    .describe(
      'The beginning of the period, but not before the usage record; by default 1,439 minutes before the minute of `to`.',
    ),
  to: date.optional().describe('The end of the period, with its whole minute; by default now.'),
  plans: membersByName(text('the name of a plan'), limitEdit, 'an object of limits by plan')
    .default({})
    .describe(
      'New limits by the name of a plan. Windows that are not named stay unchanged. null removes a limit.',
    ),
  keys: membersByName(keyId, limitEdit, 'an object of limits by the id of a key')
    .default({})
    .describe('New limits by the id of a key. They override the limits of its plan.'),
  bans: fields('an object with after, withinMs, forMs and maxMs', {
    after: limit,
    withinMs: milliseconds,
    forMs: milliseconds,
    maxMs: milliseconds,
  })
    .optional()
    .describe('The rules for bans, in place of the configured rules.'),
  plan: text('the name of a plan').optional().describe('Simulate only keys of this plan.'),
  minutesOf: keyId
    .optional()
    .describe('Adds the minutes with requests of this key, if this part covers the key.'),
  listed: wholeNumber(0, keysListedMax).default(keysListedMax).describe('The largest number of listed keys.'),
  after: keyId.optional().describe('The `next` of the previous part.'),
  until: keyId
    .optional()
    .describe('The last key of this part: the `next` of the same part in an earlier response.'),
});
