import * as z from 'zod';
import {
  chargedUnits,
  components,
  count,
  instant,
  list,
  missing,
  positive,
  refusedShown,
  words,
} from '../../../keys/response-parts.ts';
import { type AskedWire, defineWire, keyIdParameter } from '../../../shared/http/wire.ts';
import { instantParameter, noQuery, queryOf } from '../../../shared/schema/query-parameters.ts';
import { usageRow } from './usage.ts';

export const whyShown = z.object({
  sentence: z.string().describe('Why requests of the key are admitted or refused. Times are in UTC.'),
  last24h: z
    .object({
      offered: count,
      admitted: count,
      units: chargedUnits,
      refused: refusedShown,
      banned: count,
      minutesRefused: count.describe('The number of minutes with offered requests that were not admitted.'),
      firstRefusedAt: instant.optional(),
      unauthorized: count.describe(
        'Requests with an invalid secret of the key. They do not count as offered.',
      ),
      refusedNetworks: list(
        z.object({
          network: z
            .string()
            .describe(
              'The /24 network of an IPv4 address or the /48 network of an IPv6 address; `*`: further networks.',
            ),
          requests: positive,
          lastAt: instant,
        }),
      )
        .optional()
        .describe(
          'Requests with a valid secret from addresses that the key does not allow. Whole hours are counted. They do not count as offered.',
        ),
    })
    .optional(),
  operationsThisHour: list(z.object({ operationId: z.string(), requests: positive }))
    .optional()
    .describe('The operations of the present hour of UTC, the most requested first.'),
  addressesToday: count
    .optional()
    .describe('The estimated number of client addresses on the present day of UTC.'),
});

export type Why = z.output<typeof whyShown>;

/** The wire of `getKey` for a client that reads only the explanation, and needs no schema of keys. */
export const getWhyWire = {
  method: 'GET',
  path: '/keys/{id}',
  query: noQuery,
  answers: { 200: { description: 'The key.', schema: z.object({ why: whyShown }) } },
} as const satisfies AskedWire;

/** Why requests of a key were refused in one minute. */
const minuteShown = z
  .object({
    missing,
    at: instant.describe('The beginning of the minute.'),
    sentence: z
      .string()
      .describe('The requests of the minute, as a text that can be sent to the customer. Times are in UTC.'),
    usage: usageRow
      .optional()
      .describe('The requests of the minute by outcome; absent if no request is recorded.'),
    refusals: list(
      z.object({
        by: z
          .string()
          .describe(
            'Of the minute: a limit, as in `refused` of a row, or `banned`, `undecided` (Redis was away) or `unauthorized` (the secret was not valid). Of the hour: `address` (the key does not allow the address of the client), the name of a refusal by a capability such as `brownout`, or `other` for further 4xx.',
          ),
        requests: positive,
        per: words('minute', 'hour').describe(
          'Whether the number is that of the minute, or of the hour of UTC that contains it.',
        ),
        sentence: z.string().describe('This kind of refusal and what applied at that time.'),
      }),
    ).describe('The kinds of refusals of the minute, the most frequent first, and then those of the hour.'),
    notes: list(z.string()).describe(
      'Texts about failed requests, about what the trial of the plan would have refused, and about counts that may still arrive.',
    ),
  })
  .register(components, { id: 'WhyMinute' });

export type WhyMinute = z.output<typeof minuteShown>;

export const getKeyMinuteWire = defineWire({
  method: 'GET',
  path: '/keys/{id}/why',
  operationId: 'explainMinute',
  tag: 'Keys',
  summary: 'Why requests of a key were refused in a minute',
  description:
    'Each kind of refusal in one minute, with its number of requests and its recorded cause, such as the limit at that time. Some kinds are recorded only by hour. A minute before the usage record gets 400.',
  params: { id: keyIdParameter },
  query: queryOf({
    at: instantParameter().optional().describe('A time within the minute; by default now.'),
  }),
  answers: { 200: { description: 'The refusals.', schema: minuteShown } },
});
