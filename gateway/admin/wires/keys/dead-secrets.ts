import * as z from 'zod';
import {
  components,
  count,
  digestStart,
  instant,
  list,
  missing,
  positive,
  words,
} from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';
import { deadStates } from '../../../shared/schema/query-words.ts';

const uses = z
  .object({
    requests: positive.describe('The requests of the hours of UTC that overlap the last 24 hours.'),
    addresses: count.describe(
      'The estimated number of client addresses on the UTC days of these hours, at most 1,420. A /64 network of IPv6 counts as one address.',
    ),
    firstHourAt: instant.describe('The beginning of the first hour with such a request.'),
    lastAt: instant,
  })
  .register(components, { id: 'DeadUses' });

/** Secrets that are not valid and were used. */
const deadSecretsShown = z
  .object({
    missing,
    secrets: list(
      z.object({
        key: z.string().describe('The id of the key.'),
        name: z.string().optional(),
        plan: z.string().optional().describe('Absent if the key was removed or could not be read.'),
        digestStart,
        state: words(...deadStates).describe(
          'Why the secret is not valid now. `revoked`: a key of the key directory is disabled. `disabled`: a key of the configuration is disabled. `no_plan`: the configuration gives the key no limits on its plan. `removed`: there is no such key now, or it does not have the secret. `unknown`: the key could not be read, because Redis is away.',
        ),
        ...uses.shape,
      }),
    ).describe('The most used secret comes first.'),
    others: uses
      .optional()
      .describe('Further secrets of keys, which were not recorded separately; absent if there are none.'),
    unknown: uses
      .optional()
      .describe('All secrets without a key, such as removed or invented secrets; absent if there are none.'),
    unread: uses
      .optional()
      .describe(
        'All secrets that got 503, because they could not be looked up in Redis; absent if there are none.',
      ),
  })
  .register(components, { id: 'DeadSecrets' });

export type DeadSecretsShown = z.output<typeof deadSecretsShown>;

export const listDeadSecretsWire = defineWire({
  method: 'GET',
  path: '/dead-secrets',
  operationId: 'listDeadSecrets',
  tag: 'Keys',
  summary: 'Secrets that are not valid but in use',
  description:
    'The secrets of keys that were refused in the last 24 hours because they were not valid, for example revoked, expired or leaked. A secret that is valid again is omitted. Without a usage record, the list is empty.',
  answers: { 200: { description: 'The secrets.', schema: deadSecretsShown } },
});
