import type * as z from 'zod';
import { allowedRangeFault, canonicalRange } from '../shared/addresses/address-ranges.ts';
import { keyIdPattern } from '../shared/model.ts';
import {
  date,
  digestOf,
  expects,
  fields,
  flag,
  givenName,
  list,
  text,
  writtenDate,
} from '../shared/schema/schema-parts.ts';
import { concurrent, datedChanges, groupsOfKey, limits, operationIds } from './limits/limits-schema.ts';

const addressRange = text('an address or range such as 203.0.113.0/24').superRefine((value, { addIssue }) => {
  const fault = allowedRangeFault(value);
  if (fault !== undefined) addIssue(fault);
});

const addressesMax = 100;

/** As the operator wrote each address. */
const addressRanges = list(addressRange, 'a list of addresses and ranges such as 203.0.113.0/24')
  .min(
    1,
    expects('a list of at least one address or range; without `addresses` every client address is allowed'),
  )
  .max(addressesMax, expects(`a list of at most ${addressesMax} addresses and ranges`))
  .superRefine((ranges, { addIssue }) => {
    const first = new Map<string, number>();
    for (const [index, range] of ranges.entries()) {
      const canonical = canonicalRange(range);
      const same = first.get(canonical);
      if (same === undefined) first.set(canonical, index);
      else
        addIssue({
          code: 'custom',
          path: [index],
          message: `repeats the entry \`${ranges[same]}\`; remove one of them`,
        });
    }
  });

export const keyId = givenName('1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -', keyIdPattern);

/** The plan of a key from a date on. The record of a key keeps the date as it was written. */
const keyChange = fields('a mapping with from and plan', {
  from: writtenDate.describe('The time from which the key is on this plan. A date means 00:00 UTC.'),
  plan: text('the name of a plan').describe('The plan from then on.'),
  limits: limits.optional().describe('The limits of the key from then on, if the plan is custom.'),
});

const issuedFrom = {
  issuedFrom: digestOf('secret')
    .optional()
    .describe('The digest of the secret with which the holder of the key issued this secret.'),
};

const secret = fields('a mapping with sha256', {
  sha256: digestOf('secret'),
  expires: date.optional().describe('The time when the secret expires. A date means 00:00 UTC.'),
  created: date
    .optional()
    .describe(
      'The time when the secret was issued, as the commands that make a secret write it. No request depends on it; `keys list --older-than`, `--not-moved` and `keys rotate --older-than` use it.',
    ),
  ...issuedFrom,
});

export const keySchema = fields('a key: a mapping with id, plan and secrets', {
  id: keyId.describe('The id of the key. Quota and ban belong to this id, so they stay when secrets change.'),
  plan: text('the name of a plan').describe('The plan of the key.'),
  name: text('up to 200 printable characters', /^[^\p{Cc}]{1,200}$/u)
    .optional()
    .describe('A name for operators. Clients and backends never receive it.'),
  limits: limits.optional().describe('The limits of a key on a custom plan.'),
  changes: datedChanges(keyChange, 'from and plan')
    .optional()
    .describe(
      'Changes of the plan at given times, past times too: at most 20, in the order of `from`. Used units stay counted in the windows that both plans have.',
    ),
  groups: groupsOfKey
    .optional()
    .describe(
      'Limits of groups of operations, by the name of the group. A group of the key replaces the group of its plan with the same name.',
    ),
  concurrent: concurrent
    .optional()
    .describe(
      'The limit on the requests of the key that are in progress. Without it, the limit of the plan applies.',
    ),
  operations: operationIds
    .optional()
    .describe('The operations of the plan that the key may call. The default is all.'),
  addresses: addressRanges
    .optional()
    .describe(
      'The client addresses and CIDR ranges (at most 100) from which the key may be used. Requests from other addresses are refused. Without this list, every address is allowed.',
    ),
  disabled: flag().default(false).describe('Whether the key is disabled, so that its requests are refused.'),
  secrets: list(secret, 'a list of secrets, each with a sha256').describe(
    'The secrets of the key. Several may be valid at the same time.',
  ),
});

/** A secret in an export of keys. */
const movedSecret = fields('a secret: an object with sha256', {
  sha256: digestOf('secret'),
  createdAt: date.optional(),
  expiresAt: date.optional(),
  ...issuedFrom,
});

/** A key in an export, with complete digests, as in the response of `GET /directory`. */
export const movedKeySchema = fields('a key: an object with id, plan and secrets', {
  ...keySchema.shape,
  secrets: list(movedSecret, 'a list of secrets, each with a sha256'),
  pastSecrets: list(
    fields('a removed secret: an object with sha256', { sha256: digestOf('secret'), ...issuedFrom }),
    'a list of removed secrets, each with a sha256',
  )
    .optional()
    .describe('The removed secrets from which a secret of the key descends.'),
});

export type MovedKey = z.output<typeof movedKeySchema>;

export const keyListSchema = list(keySchema, 'a list of keys');

/** Fields of keys, limits and secrets. */
export const keyFieldNames = [keySchema, limits, secret].flatMap(({ shape }) => Object.keys(shape));

export type RawKey = z.output<typeof keySchema>;

/** A key as the operator stated it. Code that stores, moves or shows a key passes this object as a whole. */
export type StatedKey = Readonly<Omit<RawKey, 'secrets'>>;
