import * as z from 'zod';
import { chargedUnits, count, instant, list, positive, refusedShown } from '../../../keys/response-parts.ts';
import type { AskedWire } from '../../../shared/http/wire.ts';
import { noQuery } from '../../../shared/schema/query-parameters.ts';

export const whyShown = z.object({
  sentence: z
    .string()
    .describe(
      'Why requests of the key are admitted or refused, as a text that can be sent to the customer. Times are in UTC.',
    ),
  last24h: z
    .object({
      offered: count,
      admitted: count,
      units: chargedUnits,
      refused: refusedShown,
      banned: count,
      minutesRefused: count.describe('The number of minutes with a refusal.'),
      firstRefusedAt: instant.optional(),
      unauthorized: count.describe(
        'Requests with an invalid secret of the key, which do not count as offered.',
      ),
      refusedNetworks: list(
        z.object({
          network: z
            .string()
            .describe(
              'The /24 of an IPv4 address or the /48 of an IPv6 address. `*` stands for all further networks.',
            ),
          requests: positive,
          lastAt: instant,
        }),
      )
        .optional()
        .describe(
          'Requests with a valid secret from addresses that the key does not allow, by network, with the precision of an hour. Such requests do not count as offered. Absent without such requests.',
        ),
    })
    .optional(),
  operationsThisHour: list(z.object({ operationId: z.string(), requests: positive }))
    .optional()
    .describe('Operations, with the most requested operation first.'),
  addressesToday: count
    .optional()
    .describe('The estimated number of client addresses. No address is stored.'),
});

export type Why = z.output<typeof whyShown>;

/** The wire of `getKey` for a client that reads only the explanation, and needs no schema of keys. */
export const getWhyWire = {
  method: 'GET',
  path: '/keys/{id}',
  query: noQuery,
  answers: { 200: { description: 'The key.', schema: z.object({ why: whyShown }) } },
} as const satisfies AskedWire;
