import * as z from 'zod';

/**
 * Members of the admin API's responses that commands read. Commands ignore other members, so a command can ask a gateway of a
 * later version.
 */
const count = z.number();
const epochMs = z.number();

export const keyItem = z.object({
  id: z.string(),
  name: z.string().optional(),
  plan: z.string(),
  state: z.string(),
  source: z.string().optional(),
  file: z.string().optional(),
  line: count.optional(),
  windows: z.array(
    z.object({ name: z.string(), limit: count, used: count, remaining: count, resetMs: epochMs }),
  ),
  ban: z.object({ untilMs: epochMs, level: count }).optional(),
  grant: z
    .object({ limits: z.record(z.string(), count), fromMs: epochMs.optional(), untilMs: epochMs })
    .optional(),
  lastSeenMs: epochMs.optional(),
  offered24h: count.optional(),
  refused24h: count.optional(),
});

export const plans = z.object({ plans: z.array(z.object({ name: z.string() })) });

export const keyPage = z.object({ keys: z.array(keyItem), next: z.string().optional() });

const usageRow = z.object({
  at: z.string(),
  offered: count,
  admitted: count,
  refused: z.record(z.string(), count),
  banned: count,
  undecided: count.optional(),
  unauthorized: count.optional(),
});

export const usage = z.object({ step: z.string(), rows: z.array(usageRow) });

export const monthUsage = z.object({
  month: z.string(),
  fromAt: z.string(),
  toAt: z.string(),
  keys: z.array(
    z.object({
      id: z.string(),
      name: z.string().optional(),
      plan: z.string().optional(),
      offered: count,
      admitted: count,
    }),
  ),
});

/** Further stated members of the key are kept. */
export const keyDetail = keyItem.loose().extend({
  operations: z.array(z.string()).optional(),
  secrets: z.array(
    z.object({
      digestStart: z.string(),
      createdAt: z.string().optional(),
      lastUsedAt: z.string().optional(),
      unauthorized: z.object({ requests: count, lastAt: z.string() }).optional(),
      expiresAt: z.string().optional(),
      isExpired: z.boolean(),
    }),
  ),
  strikes: count,
  operations24h: z
    .array(z.object({ operationId: z.string(), requests: count, clientErrors: count, serverErrors: count }))
    .optional(),
  recentRefusals: z.array(usageRow).optional(),
  why: z.object({ sentence: z.string() }),
});

export const callers = z.object({
  operationId: z.string(),
  fromAt: z.string(),
  toAt: z.string(),
  callers: z.array(
    z.object({
      id: z.string(),
      name: z.string().optional(),
      plan: z.string().optional(),
      requests: count,
      clientErrors: count,
      serverErrors: count,
      lastSeenMs: epochMs,
    }),
  ),
  more: count.optional(),
});

/** The version of a configuration, or members of a key. */
const changed = z.union([z.string(), z.record(z.string(), z.unknown())]).optional();

export const changes = z.object({
  isComplete: z.boolean(),
  changes: z.array(
    z.object({
      id: z.string(),
      at: z.string(),
      action: z.string(),
      by: z.string(),
      files: z.array(z.string()).optional(),
      text: z.string(),
      inForce: z.object({ processes: count, of: count }).optional(),
      before: changed,
      after: changed,
      error: z.string().optional(),
      process: z.string(),
      processes: count,
    }),
  ),
  next: z.string().optional(),
});

export const events = z.object({
  isComplete: z.boolean(),
  events: z.array(
    z.object({
      at: z.string(),
      beganAt: z.string().optional(),
      kind: z.string(),
      group: z.string(),
      text: z.string(),
      processes: count,
    }),
  ),
});

const gatewayProcess = z.object({
  id: z.string(),
  host: z.string(),
  pid: count,
  worker: count.optional(),
  startedAt: z.string(),
  phase: z.string(),
  configVersion: z.string(),
  requestsPerSecond: count,
  outcomes: z.record(z.string(), count),
  failuresPerSecond: count,
  p50Ms: count.optional(),
  p99Ms: count.optional(),
  upstreamP50Ms: count.optional(),
  upstreamP99Ms: count.optional(),
  inFlight: count,
  connections: count,
  store: z.object({ kind: z.string(), available: z.boolean() }),
  targets: count,
  healthyTargets: count,
  ageMs: count,
});

export const state = z.object({
  verdict: z.object({
    severity: z.string(),
    sentence: z.string(),
    faults: z.array(z.object({ severity: z.string(), text: z.string(), sinceAt: z.string() })),
  }),
  environment: z.string(),
  config: z.object({ version: z.string() }),
  store: z.object({
    kind: z.string(),
    available: z.boolean(),
    sinceAt: z.string().optional(),
  }),
  upstreams: z.array(
    z.object({
      name: z.string(),
      targets: z.array(z.object({ address: z.string(), healthy: z.boolean(), inFlight: count })),
    }),
  ),
  isComplete: z.boolean(),
  processes: z.array(gatewayProcess),
});

export type KeyItem = z.output<typeof keyItem>;
export type KeyDetail = z.output<typeof keyDetail>;
export type Usage = z.output<typeof usage>;
export type MonthUsage = z.output<typeof monthUsage>;
export type UsageRow = z.output<typeof usageRow>;
export type Callers = z.output<typeof callers>;
export type Events = z.output<typeof events>;
export type Changes = z.output<typeof changes>;
export type State = z.output<typeof state>;
export type GatewayProcess = z.output<typeof gatewayProcess>;
