import type { Settings } from '../../shared/model.ts';
import { bucketsSeconds } from '../../shared/structures/histogram.ts';
import { countKeys } from './key-states.ts';
import type { Durations, RequestCounts } from './request-metrics.ts';

/** The state that the metrics show, read for each scrape. */
export interface ObservedState {
  readonly requests: RequestCounts;
  readonly inFlight: number;
  readonly config: {
    readonly version: string;
    readonly loadedAt: string;
    readonly lastError?: string | undefined;
  };
  readonly storeAvailable: boolean;
  /** The number of Redis servers that are away. Each server of a Cluster counts separately. */
  readonly storeServersAway: number;
  /** Figures of the key directory; undefined without a directory. */
  readonly directory?:
    | { readonly lookUps: Iterable<readonly [string, number]>; readonly heldKeys: number }
    | undefined;
  /** The state of the usage record; undefined when usage is not recorded. */
  readonly usage?: { readonly pausedBecause?: string | undefined; readonly lostRequests: number } | undefined;
  /** Decisions of the store by result, and requests decided without the store. */
  readonly storeCalls: { readonly decided: number; readonly failed: number };
  readonly decidedLocally: number;
  readonly connections: number;
  /** The numbers of workers; undefined when the gateway is one process. */
  readonly workers?:
    | { readonly configured: number; readonly serving: number; readonly replaced: number }
    | undefined;
  readonly upstreams: Readonly<
    Record<string, { readonly targets: readonly { address: string; healthy: boolean; inFlight: number }[] }>
  >;
  /** Bans that this process has seen, by plan. */
  readonly bans: ReadonlyMap<string, number>;
  /** The ids of banned keys whose ban this process has seen. */
  readonly bannedKeys: Iterable<string>;
  /** The certificates of listeners with TLS, by the name of the setting. */
  readonly certificates: Readonly<Record<string, { readonly notAfterMs: number }>>;
  readonly settings: Settings;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: number;
}

/** A metric with all its label sets. The metric's name is `tollgate_` and the suffix. */
export interface Family {
  readonly suffix: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly valuesOf: (state: ObservedState) => readonly Value[];
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** The name of the metric if it differs from the family's name: `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
}

/** All metrics of the gateway, in the order of the `/metrics` text. `observe/README.md` describes them. */
export const families: readonly Family[] = [
  counter('requests_total', 'Finished requests, by operation, status and decision.', ({ requests }) =>
    [...requests.requests].flatMap(([operation, byStatus]) =>
      [...byStatus].flatMap(([status, byDecision]) =>
        [...byDecision].map(([decision, value]) => ({ labels: { operation, status, decision }, value })),
      ),
    ),
  ),
  histogram(
    'request_duration_seconds',
    'Time from the arrival of a request to its end.',
    (counts) => counts.requestDuration,
  ),
  histogram(
    'upstream_duration_seconds',
    'Time of a request at the upstream.',
    (counts) => counts.upstreamDuration,
  ),
  histogram(
    'decision_duration_seconds',
    'Time from the arrival of a request to its decision.',
    (counts) => counts.decisionDuration,
  ),
  gauge('requests_in_flight', 'Requests in flight.', ({ inFlight }) => one(inFlight)),
  gauge('connections', 'Client connections.', ({ connections }) => one(connections)),
  gauge('workers', 'Workers that should serve requests.', ({ workers }) => one(workers?.configured)),
  gauge('workers_serving', 'Workers that serve requests.', ({ workers }) => one(workers?.serving)),
  counter('workers_replaced_total', 'Workers that ended and were replaced.', ({ workers }) =>
    one(workers?.replaced),
  ),
  counter('rejected_total', 'Requests refused before their key was known, by error code.', ({ requests }) =>
    by('code', requests.rejected),
  ),
  counter(
    'refused_total',
    'Requests of a key that a limit refused, by plan and window; `concurrent` is the limit of requests in progress.',
    ({ requests }) => byPlanAndWindow(requests.refused),
  ),
  counter(
    'trial_refused_total',
    'Requests of a key that the trial of its plan would have refused, by plan and window; `banned` is a ban of the trial.',
    (state) => byPlanAndWindow(trialRefused(state)),
  ),
  counter('deprecated_requests_total', 'Requests of keys for deprecated operations.', (state) =>
    deprecated(state).map(({ id }) => ({
      labels: { operation: id },
      value: totalOfKeys(state.requests, id),
    })),
  ),
  gauge('operation_sunset_timestamp_seconds', 'Time at which a deprecated operation is removed.', (state) =>
    deprecated(state).flatMap(({ id, deprecation }) =>
      deprecation?.sunsetMs === undefined
        ? []
        : [{ labels: { operation: id }, value: deprecation.sunsetMs / 1000 }],
    ),
  ),
  gauge(
    'keys',
    'Configured keys by state and plan, without reading the store.',
    ({ settings, bannedKeys, nowMs }) =>
      countKeys(settings, bannedKeys, nowMs).map(({ state, plan, keys }) => ({
        labels: { state, plan },
        value: keys,
      })),
  ),
  counter('bans_total', 'Bans that this gateway has seen, by plan.', ({ bans }) => by('plan', bans)),
  gauge('store_available', '1 while the store of the counts replies, otherwise 0.', (state) =>
    one(Number(state.storeAvailable)),
  ),
  gauge('store_servers_away', 'Redis servers that are away; each server of a Cluster counts.', (state) =>
    one(state.storeServersAway),
  ),
  counter(
    'store_calls_total',
    'Calls to the store for decisions, each for one key, by result.',
    ({ storeCalls }) => by('result', Object.entries(storeCalls)),
  ),
  counter('decided_locally_total', 'Requests decided without the store.', (state) =>
    one(state.decidedLocally),
  ),
  counter('directory_look_ups_total', 'Lookups in the key directory, by result.', ({ directory }) =>
    by('result', directory?.lookUps ?? []),
  ),
  gauge('directory_held_keys', 'Keys of the key directory in the cache of this process.', ({ directory }) =>
    one(directory?.heldKeys),
  ),
  gauge('usage_recording', '1 while usage is recorded, 0 while recording is paused.', ({ usage }) =>
    one(usage && Number(usage.pausedBecause === undefined)),
  ),
  counter('usage_lost_requests_total', 'Requests that are missing from the usage record.', ({ usage }) =>
    one(usage?.lostRequests),
  ),
  gauge('target_healthy', '1 while a target of an upstream is healthy, otherwise 0.', (state) =>
    targets(state, ({ healthy }) => Number(healthy)),
  ),
  gauge('target_in_flight', 'Requests sent to a target or waiting for it.', (state) =>
    targets(state, ({ inFlight }) => inFlight),
  ),
  gauge('upstream_healthy_targets', 'Healthy targets of an upstream.', ({ upstreams }) =>
    Object.entries(upstreams).map(([upstream, { targets }]) => ({
      labels: { upstream },
      value: targets.filter(({ healthy }) => healthy).length,
    })),
  ),
  counter('failures_total', 'Failed requests, by the side at fault: gateway or upstream.', ({ requests }) =>
    by('fault', requests.failures),
  ),
  counter(
    'upstream_retries_total',
    'Repeated attempts, without the first attempt of a request.',
    ({ requests }) => one(requests.upstreamRetries),
  ),
  counter('upstream_failures_total', 'Requests that failed at the upstream, by error code.', ({ requests }) =>
    by('cause', requests.upstreamFailures),
  ),
  gauge('config_last_reload_successful', '1 unless a file of the configuration is invalid.', ({ config }) =>
    one(Number(config.lastError === undefined)),
  ),
  gauge(
    'config_last_reload_timestamp_seconds',
    'Time at which the present configuration was loaded.',
    ({ config }) => one(Date.parse(config.loadedAt) / 1000),
  ),
  gauge('config_info', 'Version of the present configuration, as a label.', ({ config }) => [
    { labels: { version: config.version }, value: 1 },
  ]),
  gauge('certificate_expiry_timestamp_seconds', 'Time at which a certificate expires.', ({ certificates }) =>
    Object.entries(certificates).map(([listener, { notAfterMs }]) => ({
      labels: { listener },
      value: notAfterMs / 1000,
    })),
  ),
];

function counter(suffix: string, help: string, valuesOf: Family['valuesOf']): Family {
  return { suffix, type: 'counter', help, valuesOf };
}

function gauge(suffix: string, help: string, valuesOf: Family['valuesOf']): Family {
  return { suffix, type: 'gauge', help, valuesOf };
}

function histogram(suffix: string, help: string, durationsOf: (counts: RequestCounts) => Durations): Family {
  const valuesOf = ({ requests }: ObservedState) => {
    const { counts, sumMs } = durationsOf(requests);
    const name = `tollgate_${suffix}`;
    let count = 0;
    const values: Value[] = counts.map((inBucket, index) => {
      count += inBucket;
      return { metricName: `${name}_bucket`, labels: { le: bucketsSeconds[index] ?? '+Inf' }, value: count };
    });
    values.push({ metricName: `${name}_sum`, labels: {}, value: sumMs / 1000 });
    values.push({ metricName: `${name}_count`, labels: {}, value: count });
    return values;
  };
  return { suffix, type: 'histogram', help, valuesOf };
}

/** A metric without labels. It has no value if the gateway runs without the part that it describes, such as workers. */
function one(value: number | undefined): Value[] {
  return value === undefined ? [] : [{ labels: {}, value }];
}

function by(label: string, counts: Iterable<readonly [string, number]>): Value[] {
  return [...counts].map(([name, value]) => ({ labels: { [label]: name }, value }));
}

/** A trial that has refused no request has zeros, so that operators can tell it from a plan without a trial. */
function trialRefused({ requests, settings }: ObservedState): RequestCounts['trialRefused'] {
  const found = new Map(requests.trialRefused);
  for (const { name, trial } of settings.plans.values()) {
    if (trial === undefined) continue;
    const zeros = [
      ...trial.map(({ window, group }) => (group === undefined ? window : 'group')),
      'banned',
    ].map((window) => [window, 0] as const);
    found.set(name, new Map([...zeros, ...(found.get(name) ?? [])]));
  }
  return found;
}

function byPlanAndWindow(counts: RequestCounts['refused']): Value[] {
  return [...counts].flatMap(([plan, byWindow]) =>
    [...byWindow].map(([window, value]) => ({ labels: { plan, window }, value })),
  );
}

function targets(
  { upstreams }: ObservedState,
  figureOf: (target: { healthy: boolean; inFlight: number }) => number,
): Value[] {
  return Object.entries(upstreams).flatMap(([upstream, state]) =>
    state.targets.map((target) => ({
      labels: { upstream, target: target.address },
      value: figureOf(target),
    })),
  );
}

function deprecated({ settings }: ObservedState): Settings['operations'] {
  return settings.operations.filter(({ deprecation }) => deprecation !== undefined);
}

/** Operators use the metric to inform key holders, so requests without a valid key do not count. */
function totalOfKeys({ requests }: RequestCounts, operation: string): number {
  let sum = 0;
  for (const byDecision of requests.get(operation)?.values() ?? []) {
    for (const decision of decisionsOfKeys) sum += byDecision.get(decision) ?? 0;
  }
  return sum;
}

const decisionsOfKeys = ['admitted', 'refused', 'banned', 'crowded', 'unavailable'] as const;
