import * as z from 'zod';
import { grantedLimits } from '../../../keys/limits/limits-schema.ts';
import {
  chargedUnits,
  components,
  count,
  epochMs,
  instant,
  keyFile,
  limitName,
  limitsByField,
  list,
  missing,
  positive,
  words,
} from '../../../keys/response-parts.ts';
import { afterPage, defineWire, keysPerPageMax } from '../../../shared/http/wire.ts';
import { exemptionShape } from '../../../shared/schema/exemption-shape.ts';
import { age, oneOf, queryOf, someOf, text, wholeNumber } from '../../../shared/schema/query-parameters.ts';
import { keySorts, keyStates } from '../../../shared/schema/query-words.ts';

const keyState = words(...keyStates)
  .describe(
    'The most important state of the key. A key that is `disabled` (also if the configuration gives it no limits on its plan), `expired` or `no_secret` has no valid secret. `limited`: a window has no unit left, so it refuses every request that it counts and that costs something. A window of a group counts only requests of the operations in this group. `near`: at least four fifths of a window longer than a second are spent. `unused`: no unit of a window is spent, and the usage record has no recent request; without a usage record, the state is `ok`. `unknown`: Redis, or the server of a Cluster with the key, does not reply, and this gateway does not know the key or its counts.',
  )
  .register(components, { id: 'KeyState' });

const ban = z
  .object({
    untilMs: epochMs,
    level: count.describe('The number of consecutive bans. A ban by an operator does not change it.'),
    byHand: z.literal(true).optional().describe('Present if an operator made the ban.'),
    reason: z.string().optional().describe('The reason that the operator stated.'),
  })
  .register(components, { id: 'Ban' })
  .optional();

const grantShown = z
  .object({
    limits: limitsByField
      .meta({ of: grantedLimits })
      .optional()
      .describe('Absent if the grant changes no limit.'),
    ...exemptionShape(({ allows }) => `Present if the key may ${allows}.`),
    fromMs: epochMs
      .optional()
      .describe('The beginning of the grant, in epoch milliseconds; absent after this time.'),
    untilMs: epochMs,
  })
  .describe(
    'A grant that an operator gave the key. From its beginning until its end, its limits replace those of the same windows.',
  )
  .register(components, { id: 'Grant' });

export const banAndGrantShape = { ban, grant: grantShown.optional() };

export const keyItem = z
  .object({
    id: z.string(),
    name: z.string().optional(),
    plan: z
      .string()
      .describe('The present plan of the key; empty if the definition of a directory key cannot be read.'),
    state: keyState,
    source: words('file', 'directory'),
    file: keyFile,
    line: positive.optional().describe('The first line of the entry in this file.'),
    newestSecretAt: instant
      .optional()
      .describe('When the newest secret that has not ended was issued; absent if this is not known.'),
    windows: list(
      z.object({
        name: limitName,
        limit: positive,
        used: count,
        remaining: count,
        resetMs: epochMs.describe('When the window resets, in epoch milliseconds.'),
      }),
    ).describe(
      'The windows, the shortest first, and then those of each group; none while the counts are not known.',
    ),
    ...banAndGrantShape,
    lastSeenMs: epochMs
      .optional()
      .describe('The time of the last offered request, in epoch milliseconds; absent if none is known.'),
    offered24h: count
      .optional()
      .describe('The offered requests of the last 24 hours; absent if they are not known.'),
    refused24h: count.optional().describe('The part of `offered24h` that was not admitted.'),
    units24h: chargedUnits,
  })
  .register(components, { id: 'KeyItem' });

export type KeyItem = z.output<typeof keyItem>;

const keyPage = z
  .object({
    missing,
    keys: list(keyItem),
    next: z
      .string()
      .optional()
      .describe('The value of `after` for the next page; present if there may be more keys.'),
  })
  .register(components, { id: 'KeyPage' });

export const listKeysWire = defineWire({
  method: 'GET',
  path: '/keys',
  operationId: 'listKeys',
  tag: 'Keys',
  summary: 'A list of keys',
  description:
    'In every order except `id`, at most 10,000 recently active keys come first, and all other keys follow by id. For a page, the gateway reads about 10,000 keys at most, so with a filter a page with few keys may still have a `next`. Without a usage record, the keys are sorted by id.',
  query: queryOf({
    state: someOf(keyStates)
      .optional()
      .describe(
        'Only keys in one of these states, separated by commas. `limited` also lists banned keys that a used-up window still refuses after the ban.',
      ),
    plan: text(64).optional().describe('Only keys on this plan.'),
    q: text(64)
      .optional()
      .describe(
        'Only keys whose id or name contains this text, in upper or lower case. Keys of the key directory that are not among the recently active keys, and all its keys in the order `id`, are found only if their id begins with exactly this text.',
      ),
    olderThan: age()
      .optional()
      .describe(
        'Only keys whose newest valid secret was issued longer ago than this, such as `90d`, or at an unknown time.',
      ),
    sort: oneOf(keySorts)
      .default('refused')
      .describe(
        'Sorts by the refused or offered requests of the last 24 hours, by the last request, or by id.',
      ),
    after: afterPage(text(128)),
    limit: wholeNumber(1, keysPerPageMax).default(50).describe('The largest number of entries.'),
  }),
  answers: { 200: { description: 'The keys.', schema: keyPage } },
});

export type KeyPage = z.output<typeof keyPage>;
