import * as z from 'zod';
import { behindShown, components, count, instant, list, recordedFrom } from '../../keys/response-parts.ts';
import { defineWire } from '../../shared/http/wire.ts';
import { date, fields, flag, text } from '../../shared/schema/schema-parts.ts';
import { byWindow } from './credit-shape.ts';

const makegoodBody = fields('an object with from and to', {
  from: date.describe('The beginning of the period, with its whole minute.'),
  to: date.describe('The end of the period, with its whole minute. A time in the future means now.'),
  upstream: text('the name of an upstream')
    .optional()
    .describe('Only requests for this upstream; `*` for upstreams that are not recorded separately.'),
  plan: text('the name of a plan').optional().describe('Only keys that are on this plan now.'),
  dryRun: flag().default(false).describe('Whether the gateway only computes the result.'),
  after: text('the next of the previous part')
    .optional()
    .describe(
      'The `next` of the previous part, with `from` and `to` of the first response and the other members of the first request.',
    ),
});

/** The figures of a run so far. */
export const makegoodFigures = z.object({
  examinedKeys: count.describe('Includes `unreadKeys`.'),
  keys: count.describe('The keys for which the run found failed units.'),
  failedUnits: count.describe(
    'The recorded failed units of these keys, including units that earlier runs have given back.',
  ),
  creditedKeys: count.describe('The keys that got units back.'),
  givenBack: byWindow.describe('The units that were given back, by window.'),
  unreadKeys: count.describe('The keys whose data could not be read or changed.'),
  unread: list(z.string()).describe('The ids of the first of these keys.'),
});

/** The response of `POST /makegood`. */
const makegoodShown = makegoodFigures
  .extend({
    from: instant.describe(recordedFrom('period')),
    to: instant.describe('The end of the period, or the time of the request if the period ends later.'),
    dryRun: z
      .literal(true)
      .optional()
      .describe('Present for a dry run. `creditedKeys` and `givenBack` are then what a run would give back.'),
    behind: behindShown
      .optional()
      .describe(
        'The listed processes that did not send all their counts in time. Repeat the run to include these counts. Absent if there are none, and in later parts.',
      ),
    next: z
      .string()
      .optional()
      .describe(
        'The value of `after` for the next part; absent in the last part. The figures include all earlier parts.',
      ),
  })
  .register(components, { id: 'Makegood' });

export const makegoodWire = defineWire({
  method: 'POST',
  path: '/makegood',
  operationId: 'makegood',
  tag: 'Keys',
  summary: 'Give failed units back',
  description:
    'Gives each key back the units that it was charged for failed requests in a period. A request is failed if the gateway or the upstream caused its 5xx or cut it. The units go to the windows of the day and the month, if they are open and contain the minute of the request. Overlapping periods and repeated requests give nothing back twice. Failures that are recorded later are given back by the next request. Before the first part, the gateway makes all processes send their counts. The gateway works about 0.5 s for a response, and its `next` continues the run. A run is usually one entry of `/changes`. With `dryRun`, nothing changes, and a token that may read is sufficient. Without a usage record (`usage.keepDays` is 0), the response is 409.',
  body: makegoodBody,
  answers: { 200: { description: 'The figures of the run so far.', schema: makegoodShown } },
});

export type MakegoodBody = z.output<typeof makegoodBody>;

export type MakegoodFigures = z.output<typeof makegoodFigures>;

export type MakegoodShown = z.output<typeof makegoodShown>;
