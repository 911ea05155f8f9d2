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

const uses = {
  requests: positive.describe('The requests of the hours of UTC that overlap the last 24 hours.'),
  addresses: count.describe(
    'The estimated number of client addresses on the UTC days of these hours, at most 1,420. A /64 network of IPv6 counts as one address. The usage record has no addresses.',
  ),
  firstHourAt: instant.describe('The beginning of the first hour with such a request.'),
  lastAt: instant.describe('The time of the last request.'),
};

/** Secrets that are not valid and were used. */
const deadSecretsShown = z
  .object({
    missing,
    secrets: list(
      z.object({
        key: z.string().describe('The id of the key.'),
        name: z.string().optional(),
        plan: z.string().optional().describe('The plan of the key; absent if the key was removed.'),
        digestStart,
        state: words(...deadStates).describe(
          'Why the secret is not valid now. `revoked`: a key of the key directory is disabled. `disabled`: a key of the configuration is disabled. `no_plan`: the plan of the key is not in the configuration, or gives the key no limits. `removed`: the secret or its key was removed after the requests.',
        ),
        ...uses,
      }),
    ).describe('The secrets, the most used secret first.'),
    others: z
      .object(uses)
      .optional()
      .describe('Further secrets of keys that were not recorded separately. Absent without such requests.'),
    unknown: z
      .object(uses)
      .optional()
      .describe(
        'All secrets that belong to no key, such as removed or invented secrets. Absent without such requests.',
      ),
    unread: z
      .object(uses)
      .optional()
      .describe(
        'All secrets that got 503, because Redis was away and the process did not know them. Absent without such requests.',
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
