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
      'Since when at least 1 % of the requests have failed in the gateway; absent while fewer requests fail.',
    ),
});

/** The requests of a minute that ended at an upstream. */
export const upstreamFigures = {
  requests: count.describe(
    'The requests that ended at the upstream, without those whose client has closed the connection.',
  ),
  failed: count.describe('The requests that ended with 5xx or were cut off because of the upstream.'),
};

const duration = quantity.optional();

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
      'The requests a second by status. `429` has the 429 responses of the gateway, and `4xx` those of the upstream. `2xx` includes 101.',
    ),
  unauthorizedPerSecond: quantity
    .optional()
    .describe('The part of `4xx` that the gateway answered with 401.'),
  addressRefusalsPerSecond: quantity
    .optional()
    .describe(
      'The part of `429` that the limits of client addresses refused, such as of requests without a valid key.',
    ),
  failuresPerSecond: quantity.describe(
    'Requests that failed because of the gateway or the upstream: 5xx responses, and responses that were cut off. A 5xx that the client caused does not count, such as a 501 for an unknown method.',
  ),
  lastMinute: z.object({
    requests: count,
    failed: z
      .object({ gateway: failedInGateway, upstream: failed })
      .describe('Failed requests, by the side at fault.'),
    upstreams: list(z.object({ name: z.string(), ...upstreamFigures })).optional(),
  }),
  p50Ms: duration.describe(
    'The time that the gateway itself added to the requests of the last ten seconds; absent without requests.',
  ),
  p99Ms: duration,
  upstreamP50Ms: duration.describe('The time of these requests at the upstream.'),
  upstreamP99Ms: duration,
  inFlight: count,
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
