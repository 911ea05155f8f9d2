import * as z from 'zod';
import {
  byName,
  components,
  count,
  instant,
  isComplete,
  list,
  positive,
  processId,
  quantity,
  version,
  words,
} from './response-parts.ts';
import { lookupError, targetShape } from './upstreams.ts';
import { verdictShown } from './verdict.ts';
import { defineWire } from './wire.ts';

const storeKind = words('memory', 'redis');

export const available = z.boolean();

const failed = z.object({
  requests: count,
  sinceAt: instant
    .optional()
    .describe(
      'The time since which at least 1 % of the requests have failed; absent while fewer requests fail.',
    ),
});

const ownPart = quantity
  .optional()
  .describe(
    'The time that the gateway itself added to the requests of the last ten seconds, as p50 and p99; absent without requests.',
  );

const upstreamPart = quantity.optional().describe('The time of these requests at the upstream.');

/** The published state of a process. A stopped process stays listed for five seconds. */
const gatewayProcess = z.object({
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
  failuresPerSecond: quantity.describe(
    'Requests that failed because of the gateway or the upstream: 5xx responses, and responses that were cut off. A 5xx that the client caused does not count, such as a 501 for an unknown method.',
  ),
  lastMinute: z.object({
    requests: count,
    failed: z
      .object({ gateway: failed, upstream: failed })
      .describe('Failed requests, by the side at fault.'),
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
    sinceAt: instant.optional().describe('The time of the last change of `available`.'),
  }),
  targets: count.describe('Targets of all upstreams.'),
  healthyTargets: count,
  ageMs: quantity.describe('The age of this state.'),
});

const keptFile = z.object({
  file: z.string(),
  reason: z.string().describe('The first problem, with file, line and column.'),
  since: instant.describe('The time when the gateway found the invalid content.'),
  revokes: z
    .boolean()
    .describe(
      'Whether keys and tokens that the file disables or omits are refused although the file is not valid.',
    ),
});

const storeShown = z
  .object({
    kind: storeKind,
    available,
    onFailure: words('local', 'refuse').optional(),
    sinceAt: instant.optional().describe('The time of the last change of `available`.'),
    reason: z.string().optional().describe('The reason why Redis is away.'),
    missingCommands: list(z.string())
      .optional()
      .describe('Necessary commands that the ACL of the Redis user refuses.'),
    functionRefusal: z
      .string()
      .optional()
      .describe(
        'Why a Redis server decides with a script instead of a Redis Function. Absent if all servers run the function. The decisions are the same, and cost Redis up to 1.9 times the CPU.',
      ),
    servers: list(
      z.object({
        name: z.string().describe('Host and port.'),
        available,
        sinceAt: instant,
        reason: z.string().optional(),
      }),
    )
      .optional()
      .describe(
        'The servers of a Redis Cluster. A server that is away affects only its own keys. `available` of the store is true only if all servers are reachable.',
      ),
  })
  .describe('The store that counts the requests of keys, as this process sees it.');

/** A short form of an upstream for `/state`, which pages request once a second. */
export const upstreamInShort = z.object({
  name: z.string(),
  url: z.string(),
  lookupError,
  targets: list(z.object(targetShape)),
});

export const fleetState = z
  .object({
    verdict: verdictShown,
    environment: z.string(),
    config: z
      .object({
        version,
        loadedAt: instant,
        lastError: z
          .string()
          .optional()
          .describe('Every problem of the files that are not effective, in the form of `tollgate check`.'),
        kept: list(keptFile)
          .optional()
          .describe(
            'Files that are invalid by themselves or together with the other files. The gateway keeps using the last valid content of such a file.',
          ),
        waitsForRestart: list(z.string())
          .optional()
          .describe(
            'The names of changed settings that take effect at the next start. Absent when there are none.',
          ),
      })
      .describe('The present configuration of this process.'),
    store: storeShown,
    upstreams: list(upstreamInShort),
    usage: z
      .object({
        keptDays: positive,
        pausedBecause: z.string().optional().describe('The reason why recording pauses.'),
        lostRequests: count.describe('Requests of this process that were not recorded.'),
      })
      .optional()
      .describe('The usage record, as this process sees it; absent if `usage.keepDays` is 0.'),
    certificates: z
      .record(
        z.string(),
        z.object({
          expiresAt: instant,
          notice: z
            .string()
            .optional()
            .describe('Present when the certificate has expired or will expire soon.'),
        }),
      )
      .describe('The certificates of the listeners with TLS, by the name of the setting.'),
    isComplete,
    answeredBy: processId,
    token: z.object({ name: z.string(), may: words('read', 'write') }).describe('The token of this request.'),
    processes: list(gatewayProcess).describe(
      'All processes that serve requests. Each worker of a gateway is one process.',
    ),
    workers: z
      .object({
        configured: z.number().meta({ type: 'integer', minimum: 2 }),
        serving: count,
        replaced: count.describe('Workers that have ended since the start, and were replaced.'),
      })
      .optional()
      .describe(
        'The workers of the gateway that sends this response; absent if this gateway is one process.',
      ),
  })
  .register(components, { id: 'State' });

export const getStateWire = defineWire({
  method: 'GET',
  path: '/state',
  operationId: 'getState',
  tag: 'Fleet',
  summary: 'The state of the gateway',
  description:
    'The health of the fleet, every process, and the configuration, store and certificates of the process that answers.',
  answers: { 200: { description: 'The state.', schema: fleetState } },
});

export type FleetState = z.output<typeof fleetState>;

export type GatewayProcess = z.output<typeof gatewayProcess>;
