import * as z from 'zod';
import { components, digestStart, keyFile, list, positive } from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';
import { leakShown } from './key.ts';

/** The leaked secrets of keys in the configuration. */
export const leakedSecrets = z
  .object({
    secrets: list(
      z.object({
        key: z.string().describe('The id of the key.'),
        file: keyFile,
        line: positive.optional().describe('The first line of the entry of the key in this file.'),
        digestStart,
        leak: leakShown,
      }),
    ),
  })
  .register(components, { id: 'LeakedSecrets' });

export const listLeaksWire = defineWire({
  method: 'GET',
  path: '/leaks',
  operationId: 'listLeaks',
  tag: 'Keys',
  summary: 'Leaked secrets of the configuration',
  description:
    'They are refused, unless the setting `leaks.onLeak` was `report` at each report. With Redis, a secret stays in this list until some minutes after its removal from the configuration. Without Redis, leaks are only recorded, and a restart empties this list. `/keys/{id}` shows those of a key of the key directory.',
  answers: { 200: { description: 'The leaked secrets.', schema: leakedSecrets } },
});
