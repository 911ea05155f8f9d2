import * as z from 'zod';
import type { Fleet, KnownProcess } from '../../fleet/presence.ts';
import type { Fault } from '../../fleet/process-state.ts';
import type { AdminToken, Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { GatewayState } from '../readiness.ts';
import { judgeFleet, verdictShown } from '../verdict/judge-fleet.ts';
import {
  byName,
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
import { upstreamInShort, upstreamsInShort } from './upstreams-view.ts';

const storeKind = words('memory', 'redis');
const available = z.boolean();

const failed = z.object({
  requests: count,
  sinceAt: instant
    .optional()
    .describe('Since when a hundredth of the requests fails or more; absent while less do.'),
});
const ownPart = quantity
  .optional()
  .describe(
    "The gateway's own part in half, or 99 of 100, of the last ten seconds' requests; absent without any.",
  );
const upstreamPart = quantity.optional().describe('The same of what passed at the upstream.');

/** The published state of a process. A process that stopped is listed for five seconds more. */
const gatewayProcess = z.object({
  id: processId,
  host: z.string(),
  pid: count,
  worker: positive
    .optional()
    .describe('Its number among the workers of its gateway; absent where that is one process.'),
  startedAt: instant,
  phase: words('starting', 'serving', 'draining'),
  configVersion: version,
  configLoadedAt: instant,
  requestsPerSecond: quantity.describe('In the last ten seconds.'),
  outcomes: byName(quantity)
    .meta({ required: ['2xx', '3xx', '4xx', '429', '5xx'] })
    .describe(
      'The same by what they were answered. `429` is what the gateway refused; a 429 of the upstream’s own is in `4xx`.',
    ),
  failuresPerSecond: quantity.describe(
    'Those that failed by fault of the gateway or the upstream: 5xx, and responses that were cut off; not a 5xx by fault of the client, such as a 501 of an unknown method.',
  ),
  lastMinute: z.object({
    requests: count,
    failed: z
      .object({ gateway: failed, upstream: failed })
      .describe('How many of them failed, by whose fault that was.'),
  }),
  p50Ms: ownPart,
  p99Ms: ownPart,
  upstreamP50Ms: upstreamPart,
  upstreamP99Ms: upstreamPart,
  inFlight: count.describe('Requests that are not over.'),
  connections: count.describe('Client connections.'),
  store: z.object({
    kind: storeKind,
    available,
    sinceAt: instant.optional().describe('Since when it is there, or away.'),
  }),
  targets: count.describe('Targets of all upstreams.'),
  healthyTargets: count,
  ageMs: quantity.describe('How long ago it said so.'),
});

const keptFile = z.object({
  file: z.string(),
  reason: z.string().describe('The first problem, with file, line and column.'),
  since: instant.describe('When that content was found.'),
  revokes: z
    .boolean()
    .describe('Whether keys and tokens that it disables or leaves out are refused all the same.'),
});

const storeShown = z
  .object({
    kind: storeKind,
    available,
    onFailure: words('local', 'refuse').optional(),
    sinceAt: instant.optional().describe('Since when it is there, or away.'),
    reason: z.string().optional().describe('Why it is away.'),
    missingCommands: list(z.string())
      .optional()
      .describe('What the ACL of the Redis user refuses, though it is needed.'),
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
        'Those of a Redis Cluster: each may be away on its own, with the keys that it keeps. `available` of the store is whether all of them are.',
      ),
  })
  .describe('What counts the requests of keys, as this process sees it.');

export const fleetState = z.object({
  verdict: verdictShown,
  environment: z.string(),
  config: z
    .object({
      version,
      loadedAt: instant,
      lastError: z
        .string()
        .optional()
        .describe(
          'Why something that the files hold now is not in force: every problem, as `tollgate check` prints it.',
        ),
      kept: list(keptFile)
        .optional()
        .describe(
          'The files that are not valid, or do not fit the others. Each keeps its last valid content.',
        ),
      waitsForRestart: list(z.string())
        .optional()
        .describe(
          'The names of changed settings that take effect at the next start. Absent when there are none.',
        ),
    })
    .describe('The configuration that this process has in force.'),
  store: storeShown,
  upstreams: list(upstreamInShort),
  usage: z
    .object({
      keptDays: positive,
      pausedBecause: z.string().optional().describe('Why nothing is recorded at the moment.'),
      lostRequests: count.describe('Requests of this process that are in no record.'),
    })
    .optional()
    .describe('The record of what keys use, as this process has it; absent where `usage.keepDays` is 0.'),
  certificates: z
    .record(
      z.string(),
      z.object({
        expiresAt: instant,
        notice: z.string().optional().describe('Set when it has expired or soon will.'),
      }),
    )
    .describe('Those of the listeners that speak TLS, by the name of the setting.'),
  isComplete,
  answeredBy: processId,
  token: z.object({ name: z.string(), may: words('read', 'write') }).describe('Whose token asks.'),
  processes: list(gatewayProcess).describe(
    'Those that serve requests: of a gateway with workers each of them.',
  ),
  workers: z
    .object({
      configured: z.number().meta({ type: 'integer', minimum: 2 }),
      serving: count,
      replaced: count.describe('How many have ended since its start, and were replaced.'),
    })
    .optional()
    .describe('Those of the gateway that answers; absent where it is one process.'),
});

export type FleetState = z.output<typeof fleetState>;
export type GatewayProcess = z.output<typeof gatewayProcess>;

export function stateView(
  state: GatewayState,
  {
    upstreams,
    fleet,
    faults,
    token: { name, may },
    bounds,
  }: {
    readonly upstreams: Settings['upstreams'];
    readonly fleet: Fleet;
    /** The faults of this gateway. */
    readonly faults: readonly Fault[];
    readonly token: AdminToken;
    readonly bounds: Bounds;
  },
): FleetState {
  const { environment, config, store, certificates, usage, workers } = state;
  return {
    verdict: judgeFleet({ store, fleet, own: faults, bounds }),
    environment,
    config,
    store: storeView(store),
    usage,
    upstreams: upstreamsInShort(upstreams, fleet),
    certificates: Object.fromEntries(
      Object.entries(certificates).map(([listener, { notAfter, notice }]) => [
        listener,
        { expiresAt: notAfter, notice },
      ]),
    ),
    workers,
    isComplete: fleet.isComplete,
    answeredBy: fleet.answeredBy,
    token: { name, may },
    processes: fleet.processes.map(processView),
  };
}

function storeView(store: GatewayState['store']): FleetState['store'] {
  if (store.kind === 'memory') return { kind: 'memory', available: true };
  const { since, servers, ...rest } = store;
  return {
    ...rest,
    sinceAt: since,
    servers: servers?.map(({ since: sinceAt, ...server }) => ({ ...server, sinceAt })),
  };
}

/** A process without its targets, which are in `/upstreams`, and without its faults, which are in the verdict. */
function processView({ upstreams, faults: _, ...process }: KnownProcess): FleetState['processes'][number] {
  const targets = upstreams.flatMap((upstream) => upstream.targets);
  return {
    ...process,
    targets: targets.length,
    healthyTargets: targets.filter(({ healthy }) => healthy).length,
  };
}
