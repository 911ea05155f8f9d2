import * as z from 'zod';
import { keyShownShapes } from '../../../capabilities/lists/schemas.ts';
import { keySchema } from '../../../keys/key-schema.ts';
import {
  byName,
  components,
  count,
  digestStart,
  instant,
  limitsByField,
  list,
  missing,
  positive,
  stated,
} from '../../../keys/response-parts.ts';
import { defineWire, keyIdParameter } from '../../../shared/http/wire.ts';
import { keyParts, statedKeyShown } from './definitions.ts';
import { keyItem } from './keys.ts';
import { usageRow } from './usage.ts';
import { whyShown } from './why.ts';

export const leakShown = z
  .object({
    at: instant.describe('The time of the report.'),
    by: z.string().describe('The reporter: `github`, or the name of the token that sent the report.'),
    ended: z.boolean().describe('Whether the secret is refused because of the report.'),
    url: z.string().optional().describe('The address at which the secret was found.'),
    source: z.string().optional().describe('The kind of place at which the secret was found.'),
    type: z.string().optional().describe('The name that the scanner gives to this kind of secret.'),
    ancestor: digestStart
      .optional()
      .describe(
        'The leaked secret from which the holder of the key issued this secret, directly or through others, and because of which this secret ended.',
      ),
  })
  .describe('A report that others can read a secret.')
  .register(components, { id: 'Leak' });

/** The decisions of a trial on the requests of one key, or of all keys of a plan. */
export const trialFigures = {
  requests: count.describe('The requests that the trial decided.'),
  refused: count.describe('The requests that the trial would have refused.'),
  refusedBy: byName(positive).describe(
    'The part of `refused` by cause: a window, `group` for a window of a group of operations, `banned`, or `concurrent` for the limit of requests in progress, which is the same in the trial.',
  ),
  refusedNow: count.describe('How many of `requests` the plan refused.'),
  firstRefusedAt: instant
    .optional()
    .describe('The first minute with a request that the trial would have refused.'),
  lastRefusedAt: instant.optional(),
};

/** The trial of a key's plan, with its decisions on the requests of the key. */
export const trialOfKey = z.object({
  limits: limitsByField.describe('The limits of the trial.'),
  sentence: z.string().describe('The figures as a text. Times are in UTC.'),
  ...trialFigures,
});

export const keyDetail = z
  .object({
    missing,
    ...stated(keySchema.shape, [
      ...['limits', 'changes', 'groups', 'concurrent', 'operations', 'disabled', 'secrets'],
    ] as const),
    changes: keyParts.changes,
    groups: keyParts.groups,
    ...keyItem.shape,
    plan: z.string(),
    definition: statedKeyShown
      .optional()
      .describe('The key as the configuration or the key directory states it.'),
    revision: positive.optional().describe('The revision of a directory key.'),
    upcoming: list(z.object({ fromAt: instant, plan: z.string(), limits: limitsByField }))
      .optional()
      .describe(
        'The scheduled changes of the key and of its plans, the earliest first. An entry has all limits that apply from its time on, without grants.',
      ),
    concurrent: positive
      .optional()
      .describe('The limit on the requests of the key that are in progress, from the key or its plan.'),
    operations: list(z.string())
      .optional()
      .describe('The operations that the key may call; absent if the key may call every operation.'),
    secrets: list(
      z.object({
        digestStart,
        createdAt: instant
          .optional()
          .describe('The time of issue; absent if the configuration does not state it.'),
        lastUsedAt: instant
          .optional()
          .describe('The time of the last recorded offered request with the secret.'),
        unauthorized: z
          .object({ requests: positive, lastAt: instant })
          .optional()
          .describe(
            'The recorded requests with the secret while it was not valid, for example because it had expired or its key was disabled.',
          ),
        expiresAt: instant.optional(),
        isExpired: z.boolean(),
        issuedFrom: digestStart
          .optional()
          .describe('The secret with which the holder of a directory key issued this secret.'),
        leak: leakShown.optional(),
      }),
    ),
    strikes: count.describe('Refusals that count towards the next ban.'),
    ...keyShownShapes,
    operations24h: list(
      z.object({
        operationId: z.string(),
        requests: count,
        clientErrors: count.describe(
          'Requests with a status from 400 to 499, such as refusals of limits and bans.',
        ),
        serverErrors: count,
      }),
    )
      .optional()
      .describe('The requests of the hours of UTC that overlap the last 24 hours.'),
    recentRefusals: list(usageRow)
      .optional()
      .describe(
        'Minutes of the last 24 hours with requests that were not admitted, at most 20, the latest first.',
      ),
    trial: trialOfKey
      .optional()
      .describe(
        'The decisions of the trial of the plan on the requests of the key in the last 24 hours. Absent without a trial or a usage record.',
      ),
    why: whyShown,
  })
  .register(components, { id: 'Key' });

export const getKeyWire = defineWire({
  method: 'GET',
  path: '/keys/{id}',
  operationId: 'getKey',
  tag: 'Keys',
  summary: 'A key in detail',
  description: `A key, its secrets, its requests of the last 24 hours, and the explanation of its responses. The ETag of a directory key is the version of its definition, for If-Match.`,
  params: { id: keyIdParameter },
  answers: { 200: { description: 'The key.', schema: keyDetail, headers: ['ETag'] } },
});

export type KeyDetail = z.output<typeof keyDetail>;
