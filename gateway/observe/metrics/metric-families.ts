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
  /** The counters of capabilities by name, added up over all processes. */
  readonly ofParts: Readonly<Record<string, number>>;
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
  /** Without `le`. Absent for a metric without labels. */
  readonly labels?: readonly string[];
  /** What the metric counts and what its labels mean, for `/metrics` and for the reference. */
  readonly help: string;
  readonly valuesOf: (state: ObservedState) => readonly Value[];
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** The name of the metric if it differs from the family's name: `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
}

/** The metrics of the gateway, in the order of the `/metrics` text. `config/reference/metrics.md` is generated from them. */
export const families: readonly Family[] = [
  counter(
    'requests_total',
    ['operation', 'status', 'decision'],
    'Finished requests. `operation` is empty if no operation was found. `status` is 499 if the client was gone before the response ended, and 101 for an opened WebSocket.',
    ({ requests }) =>
      [...requests.requests].flatMap(([operation, byStatus]) =>
        [...byStatus].flatMap(([status, byDecision]) =>
          [...byDecision].map(([decision, value]) => ({ labels: { operation, status, decision }, value })),
        ),
      ),
  ),
  histogram(
    'request_duration_seconds',
    [],
    'Time from the arrival of a request to its end. The smallest bucket of each histogram is 0.25 ms.',
    (counts) => counts.requestDuration,
  ),
  histogram(
    'upstream_duration_seconds',
    [],
    'Time of a request at the upstream, including the request body, for requests that had a target.',
    (counts) => counts.upstreamDuration,
  ),
  histogram(
    'decision_duration_seconds',
    [],
    'Time from the arrival of a request to the decision by the limits of its key.',
    (counts) => counts.decisionDuration,
  ),
  gauge('requests_in_flight', [], 'Unfinished requests, without open WebSockets.', ({ inFlight }) =>
    one(inFlight),
  ),
  gauge('connections', [], 'Client connections.', ({ connections }) => one(connections)),
  gauge(
    'workers',
    [],
    'The configured number of workers. The metrics of workers are absent if the gateway is one process.',
    ({ workers }) => one(workers?.configured),
  ),
  gauge('workers_serving', [], 'Workers that serve requests.', ({ workers }) => one(workers?.serving)),
  counter('workers_replaced_total', [], 'Workers that ended and were replaced.', ({ workers }) =>
    one(workers?.replaced),
  ),
  counter(
    'rejected_total',
    ['code'],
    'Requests refused before a key was accepted, by error code.',
    ({ requests }) => by('code', requests.rejected),
  ),
  counter(
    'refused_total',
    ['plan', 'window'],
    'Requests of keys that a window or the limit of requests in progress refused. `window` is a window such as `minute`, `reports-minute` for a window of the group `reports` of the plan, `group` for all groups that the plan does not have, and `concurrent` for the limit of requests in progress.',
    ({ requests }) => byPlanAndWindow(requests.refused),
  ),
  counter(
    'trial_refused_total',
    ['plan', 'window'],
    'Requests of keys that the trial of their plan would have refused. `window` is the window that a response would have named, `group` for all groups, `banned` for a ban of the trial, and `concurrent` for the limit of requests in progress. A trial without refusals has zeros.',
    (state) => byPlanAndWindow(trialRefused(state)),
  ),
  counter(
    'deprecated_requests_total',
    ['operation'],
    'Requests of keys for deprecated operations. `tollgate_requests_total` also counts requests without a valid key.',
    (state) =>
      deprecated(state).map(({ id }) => ({
        labels: { operation: id },
        value: totalOfKeys(state.requests, id),
      })),
  ),
  gauge('operation_sunset_timestamp_seconds', ['operation'], 'Sunset of a deprecated operation.', (state) =>
    deprecated(state).flatMap(({ id, deprecation }) =>
      deprecation?.sunsetMs === undefined
        ? []
        : [{ labels: { operation: id }, value: deprecation.sunsetMs / 1000 }],
    ),
  ),
  gauge(
    'keys',
    ['state', 'plan'],
    'Keys of the configuration, without the directory. `state` is `ok`, `banned` (this gateway has seen the ban), `expired` (all secrets have expired), `no_secret` or `disabled`.',
    ({ settings, bannedKeys, nowMs }) =>
      countKeys(settings, bannedKeys, nowMs).map(({ state, plan, keys }) => ({
        labels: { state, plan },
        value: keys,
      })),
  ),
  counter(
    'bans_total',
    ['plan'],
    'Bans that this gateway has seen, including bans that began before its start.',
    ({ bans }) => by('plan', bans),
  ),
  gauge(
    'store_available',
    [],
    '1 while Redis, or each server of a Cluster, is available, otherwise 0. Always 1 without Redis.',
    (state) => one(Number(state.storeAvailable)),
  ),
  gauge('store_servers_away', [], 'Redis servers that are away.', (state) => one(state.storeServersAway)),
  counter(
    'store_calls_total',
    ['result'],
    'Calls to the store, counted for each key. One call may decide several requests of a key. `result` is `decided`, or `failed` without a usable reply in time.',
    ({ storeCalls }) => by('result', Object.entries(storeCalls)),
  ),
  counter(
    'decided_locally_total',
    [],
    'Requests that a process decided alone, because Redis was away, did not reply in time, or had no usable counts of the key.',
    (state) => one(state.decidedLocally),
  ),
  counter(
    'directory_look_ups_total',
    ['result'],
    'Lookups in the key directory, for secrets that are not cached. `result` is `found`, `absent`, `away` (no reply in time) or `busy` (too many lookups waited). The metrics of the directory are absent without one.',
    ({ directory }) => by('result', directory?.lookUps ?? []),
  ),
  gauge(
    'directory_held_keys',
    [],
    'Keys of the key directory in the caches of this gateway.',
    ({ directory }) => one(directory?.heldKeys),
  ),
  gauge(
    'usage_recording',
    [],
    '1 while usage is recorded, 0 while the record pauses, in a Cluster on any server. The metrics of usage are absent if `usage.keepDays` is 0.',
    ({ usage }) => one(usage && Number(usage.pausedBecause === undefined)),
  ),
  counter(
    'usage_lost_requests_total',
    [],
    'Requests that were not recorded because the store was away or full for too long.',
    ({ usage }) => one(usage?.lostRequests),
  ),
  gauge(
    'target_healthy',
    ['upstream', 'target'],
    '1 while every process of the gateway finds the target healthy, otherwise 0.',
    (state) => targets(state, ({ healthy }) => Number(healthy)),
  ),
  gauge(
    'target_in_flight',
    ['upstream', 'target'],
    'Requests at a target, and requests that wait for a connection to it, without WebSockets.',
    (state) => targets(state, ({ inFlight }) => inFlight),
  ),
  gauge(
    'upstream_healthy_targets',
    ['upstream'],
    'Healthy targets of an upstream. Also 0 if DNS never resolved its host name.',
    ({ upstreams }) =>
      Object.entries(upstreams).map(([upstream, { targets }]) => ({
        labels: { upstream },
        value: targets.filter(({ healthy }) => healthy).length,
      })),
  ),
  counter(
    'failures_total',
    ['fault'],
    'Requests that failed because of the `gateway` or the `upstream`: 5xx responses of the gateway and of the backend, and incomplete responses. A failure that the client caused is not counted, such as a slow download.',
    ({ requests }) => by('fault', requests.failures),
  ),
  counter('upstream_retries_total', [], 'Attempts after the first attempt of a request.', ({ requests }) =>
    one(requests.upstreamRetries),
  ),
  counter(
    'upstream_failures_total',
    ['cause'],
    'Requests that failed at the upstream, by the error code of the gateway. 5xx responses of the backend are not included.',
    ({ requests }) => by('cause', requests.upstreamFailures),
  ),
  gauge(
    'config_last_reload_successful',
    [],
    '1 unless a file of the configuration is invalid, or the configuration cannot be loaded.',
    ({ config }) => one(Number(config.lastError === undefined)),
  ),
  gauge(
    'config_last_reload_timestamp_seconds',
    [],
    'Time at which the present configuration was loaded.',
    ({ config }) => one(Date.parse(config.loadedAt) / 1000),
  ),
  gauge(
    'config_info',
    ['version'],
    'Always 1. The label is the version of the present configuration.',
    ({ config }) => [{ labels: { version: config.version }, value: 1 }],
  ),
  gauge(
    'certificate_expiry_timestamp_seconds',
    ['listener'],
    'Time at which the certificate of `listen` or `admin` expires.',
    ({ certificates }) =>
      Object.entries(certificates).map(([listener, { notAfterMs }]) => ({
        labels: { listener },
        value: notAfterMs / 1000,
      })),
  ),
];

type Labels = readonly string[];

function counter(suffix: string, labels: Labels, help: string, valuesOf: Family['valuesOf']): Family {
  return { suffix, type: 'counter', labels, help, valuesOf };
}

function gauge(suffix: string, labels: Labels, help: string, valuesOf: Family['valuesOf']): Family {
  return { suffix, type: 'gauge', labels, help, valuesOf };
}

function histogram(
  suffix: string,
  labels: Labels,
  help: string,
  durationsOf: (counts: RequestCounts) => Durations,
): Family {
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
  return { suffix, type: 'histogram', labels, help, valuesOf };
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
