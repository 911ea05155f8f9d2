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
import { statedKeyShown } from './definitions.ts';
import { keyItem } from './keys.ts';
import { usageRow } from './usage.ts';
import { whyShown } from './why.ts';

export const leakShown = z
  .object({
    at: instant.describe('The time of the first report, or of the first report that ended the secret.'),
    by: z.string().describe('The reporter: `github`, or the name of the token that sent the report.'),
    ended: z.boolean().describe('Whether the secret is refused because of the report.'),
    url: z.string().optional().describe('The address at which the secret was found.'),
    source: z.string().optional().describe('The kind of place at which the secret was found.'),
    type: z.string().optional().describe('The name that the scanner gives to this kind of secret.'),
    ancestor: digestStart
      .optional()
      .describe(
        'The leaked secret because of which this secret ended: the holder of the key issued this secret from it, directly or through others.',
      ),
  })
  .describe('The report that others can read the secret.')
  .register(components, { id: 'Leak' });

/** The decisions of a trial on the requests of one key, or of all keys of a plan. */
export const trialFigures = {
  requests: count.describe('The requests that the trial decided.'),
  refused: count.describe('The requests that the trial would have refused.'),
  refusedBy: byName(positive).describe(
    '`refused` by what would have refused the requests: the name of a window, `group` for a window of a group of operations, `banned`, or `concurrent` for the limit of requests in progress, which is the same in the trial.',
  ),
  refusedNow: count.describe('How many of `requests` the plan refused.'),
  firstRefusedAt: instant
    .optional()
    .describe('The first minute with a request in `refused`; absent without one.'),
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
    ...stated(keySchema.shape, ['limits', 'concurrent', 'operations', 'disabled', 'secrets']),
    ...keyItem.shape,
    definition: statedKeyShown
      .optional()
      .describe(
        'The key as the configuration or the key directory states it. Earlier releases omit this member.',
      ),
    revision: positive
      .optional()
      .describe('The revision of the definition in the key directory. Each change increases the revision.'),
    upcoming: list(z.object({ fromAt: instant, plan: z.string(), limits: limitsByField }))
      .optional()
      .describe(
        'The later limits of the key and its later plans, by changes of the key and of its plans, with the earliest change first. An entry has all limits that apply from its time on, without grants.',
      ),
    concurrent: positive
      .optional()
      .describe(
        'The limit on the concurrent requests of the key, from the key or its plan; absent without this limit.',
      ),
    operations: list(z.string())
      .optional()
      .describe('The operations that the key may call; absent if the key may call every operation.'),
    secrets: list(
      z.object({
        digestStart,
        createdAt: instant
          .optional()
          .describe('The recorded time of issue; absent if the configuration does not state it.'),
        lastUsedAt: instant
          .optional()
          .describe('The time of the last offered request with the secret; absent if none is recorded.'),
        unauthorized: z
          .object({ requests: positive, lastAt: instant })
          .optional()
          .describe(
            'Requests with the secret while it was not valid, for example because it had expired or its key was disabled; absent without a recorded request.',
          ),
        expiresAt: instant.optional(),
        isExpired: z.boolean(),
        issuedFrom: digestStart
          .optional()
          .describe(
            'The secret with which the holder of the key issued this secret; absent for a secret of an operator, and for a key of the configuration.',
          ),
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
          'Requests with a status from 400 to 499, including refusals of limits and bans.',
        ),
        serverErrors: count,
      }),
    ).optional(),
    recentRefusals: list(usageRow)
      .optional()
      .describe(
        'The last minutes with a refusal or an `unauthorized` request within the last 24 hours, with the latest minute first.',
      ),
    trial: trialOfKey
      .optional()
      .describe(
        'The trial of the key’s plan, with its decisions on the requests of the key in the last 24 hours. Absent if the plan has no trial, and without a usage record.',
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
