import * as z from 'zod';
import {
  components,
  count,
  instant,
  isComplete,
  list,
  missing,
  positive,
  processId,
  version,
  words,
} from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';
import { available, gatewayProcess, storeKind } from './processes.ts';
import { lookupError, targetShape, targetsAbout } from './upstreams.ts';
import { verdictShown } from './verdict.ts';

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
    sinceAt: instant.optional().describe('The beginning of this state of the store.'),
    reason: z.string().optional().describe('Why Redis is away.'),
    missingCommands: list(z.string())
      .optional()
      .describe('Necessary commands that the ACL of the Redis user refuses.'),
    functionRefusal: z
      .string()
      .optional()
      .describe(
        'Why a Redis server decides with a script instead of a Redis Function. The decisions are the same, and cost Redis more CPU time. Absent without such a server, and for a gateway with workers.',
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
      .describe('The servers of a Redis Cluster. The store is available only if all of them are.'),
  })
  .describe('The store that counts the requests of keys, as this process sees it.');

/** A short form of an upstream for `/state`, which pages request once a second. */
export const upstreamInShort = z.object({
  name: z.string(),
  url: z.string(),
  lookupError,
  targets: list(z.object(targetShape)).describe(targetsAbout),
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
          .describe(
            'The problems of the configuration on disk, in the form of `tollgate check`; absent if it is valid.',
          ),
        kept: list(keptFile)
          .optional()
          .describe(
            'Files that are invalid by themselves or together with other files. The gateway uses their last valid content.',
          ),
        waitsForRestart: list(z.string())
          .optional()
          .describe('The names of changed settings that take effect at the next start.'),
      })
      .describe('The present configuration of this process.'),
    store: storeShown,
    upstreams: list(upstreamInShort),
    usage: z
      .object({
        keptDays: positive,
        pausedBecause: z.string().optional().describe('Why recording pauses.'),
        lostRequests: count.describe(
          'Requests of this gateway that were not recorded, because Redis was away or full for too long.',
        ),
      })
      .optional()
      .describe('The usage record, as this process sees it; absent if `usage.keepDays` is 0.'),
    certificates: z
      .record(
        z.string(),
        z.object({
          expiresAt: instant,
          notice: z.string().optional().describe('Present from 14 days before the expiry on.'),
        }),
      )
      .describe('The certificates of the listeners with TLS, by the name of the setting.'),
    isComplete,
    missing,
    answeredBy: processId,
    token: z.object({ name: z.string(), may: words('read', 'write') }).describe('The token of this request.'),
    processes: list(gatewayProcess).describe(
      'The processes that serve requests, about 2,000 at most. Each worker of a gateway is one process.',
    ),
    workers: z
      .object({
        configured: z.number().meta({ type: 'integer', minimum: 2 }),
        serving: count,
        replaced: count.describe(
          'The workers that have ended while the gateway was serving. Each is replaced.',
        ),
      })
      .optional()
      .describe('The workers of this gateway; absent if it is one process.'),
  })
  .register(components, { id: 'State' });

export const getStateWire = defineWire({
  method: 'GET',
  path: '/state',
  operationId: 'getState',
  tag: 'Fleet',
  summary: 'The state of the gateway',
  description:
    'The health of the fleet, the processes, the upstreams, and the configuration, store and certificates of the process that answers.',
  answers: { 200: { description: 'The state.', schema: fleetState } },
});

export type FleetState = z.output<typeof fleetState>;
