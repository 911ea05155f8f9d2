import * as z from 'zod';
import {
  components,
  digestStart,
  instant,
  list,
  missing,
  onlyLastActive,
  positive,
} from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';

const oldSecretsShown = z
  .object({
    missing,
    at: instant.optional().describe('The time at which the list was made; absent without a usage record.'),
    secrets: list(
      z.object({
        key: z.string().describe('The id of the key.'),
        name: z.string().optional(),
        plan: z.string(),
        digestStart,
        lastAt: instant.describe('The last request with the old secret.'),
        endsAt: instant.optional().describe('When the old secret expires; absent if it never does.'),
        newest: z
          .object({ digestStart, issuedAt: instant, lastAt: instant.optional() })
          .describe('The newest valid secret of the key. Its `lastAt` is absent without a recorded request.'),
      }),
    ).describe('The old secrets, the earliest end first.'),
    more: positive.optional().describe('The number of secrets that are not in this list.'),
  })
  .register(components, { id: 'OldSecrets' });

export type OldSecretsShown = z.output<typeof oldSecretsShown>;

export const listOldSecretsWire = defineWire({
  method: 'GET',
  path: '/old-secrets',
  operationId: 'listOldSecrets',
  tag: 'Keys',
  summary: 'Old secrets that are still in use',
  description: `The valid secrets that were used after the newest secret of their key was issued, in the last \`usage.keepDays\` UTC days (without Redis: today). ${onlyLastActive} The response may be 30 s old. Without a usage record, the list is empty.`,
  answers: { 200: { description: 'The secrets.', schema: oldSecretsShown } },
});
