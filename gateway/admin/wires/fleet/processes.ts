import * as z from 'zod';
import {
  byName,
  count,
  instant,
  list,
  positive,
  processId,
  quantity,
  version,
  words,
} from '../../../keys/response-parts.ts';

export const available = z.boolean();

export const storeKind = words('memory', 'redis');

const failed = z.object({ requests: count });

const failedInGateway = failed.extend({
  sinceAt: instant
    .optional()
    .describe(
      'The time since which at least 1 % of the requests have failed; absent while fewer requests fail.',
    ),
});

/** The requests of a minute that ended at an upstream. */
export const upstreamFigures = {
  requests: count.describe(
    'The requests that ended at the upstream. Requests whose client has closed the connection do not count.',
  ),
  failed: count.describe('The requests that ended with 5xx or were cut off because of the upstream.'),
};

const ownPart = quantity
  .optional()
  .describe(
    'The time that the gateway itself added to the requests of the last ten seconds, as p50 and p99; absent without requests.',
  );

const upstreamPart = quantity.optional().describe('The time of these requests at the upstream.');

/** The published state of a process. A stopped process stays listed for five seconds. */
export const gatewayProcess = z.object({
  id: processId,
  host: z.string(),
  pid: count,
  worker: positive
    .optional()
    .describe('The number of the worker in its gateway; absent if the gateway is one process.'),
  startedAt: instant,
  phase: words('starting', 'serving', 'draining'),
  configVersion: version,
  configLoadedAt: instant,
  requestsPerSecond: quantity.describe('The mean of the last ten seconds.'),
  outcomes: byName(quantity)
    .meta({ required: ['2xx', '3xx', '4xx', '429', '5xx'] })
    .describe(
      'The rates by status. `429` counts the refusals of the gateway; a 429 from the upstream counts in `4xx`.',
    ),
  unauthorizedPerSecond: quantity
    .optional()
    .describe(
      'The part of `4xx` that the gateway answered with 401. Absent in processes of earlier versions.',
    ),
  addressRefusalsPerSecond: quantity
    .optional()
    .describe(
      'The part of `429` that the limits of client addresses refused, such as of requests without a valid key. Absent in processes of earlier versions.',
    ),
  failuresPerSecond: quantity.describe(
    'Requests that failed because of the gateway or the upstream: 5xx responses, and responses that were cut off. A 5xx that the client caused does not count, such as a 501 for an unknown method.',
  ),
  lastMinute: z.object({
    requests: count,
    failed: z
      .object({ gateway: failedInGateway, upstream: failed })
      .describe('Failed requests, by the side at fault.'),
    upstreams: list(z.object({ name: z.string(), ...upstreamFigures }))
      .optional()
      .describe('The upstreams at which requests of the process ended.'),
  }),
  p50Ms: ownPart,
  p99Ms: ownPart,
  upstreamP50Ms: upstreamPart,
  upstreamP99Ms: upstreamPart,
  inFlight: count.describe('Requests in flight.'),
  connections: count.describe('Client connections.'),
  store: z.object({
    kind: storeKind,
    available,
    sinceAt: instant.optional().describe('The beginning of this state of the store.'),
  }),
  targets: count.describe('Targets of all upstreams, at most 64 of each.'),
  healthyTargets: count,
  ageMs: quantity.describe('The age of this state.'),
});

export type GatewayProcess = z.output<typeof gatewayProcess>;
