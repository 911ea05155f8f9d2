import { collectDefaultMetrics, type Metric, Registry } from '@prometheus-io/client';
import type { Settings } from '../../model.ts';
import { bucketsSeconds } from '../../structures/histogram.ts';
import { countKeys } from './key-states.ts';
import type { Durations, RequestCounts } from './request-metrics.ts';

/** What the metrics show: read when they are asked for. */
export interface ObservedState {
  readonly requests: RequestCounts;
  readonly inFlight: number;
  readonly config: { readonly version: string; readonly loadedAt: string; readonly lastError?: string };
  readonly storeAvailable: boolean;
  /** Servers of Redis that are away: in a Cluster each on its own. */
  readonly storeServersAway: number;
  /** Absent: there is none. */
  readonly directory?: { readonly lookUps: Iterable<readonly [string, number]>; readonly heldKeys: number };
  /** Absent: nothing is recorded. */
  readonly usage?: { readonly pausedBecause?: string; readonly lostRequests: number };
  /** Decisions that the store was asked for, by how it went; and requests decided without it. */
  readonly storeCalls: { readonly decided: number; readonly failed: number };
  readonly decidedLocally: number;
  readonly connections: number;
  readonly upstreams: Readonly<
    Record<string, { readonly targets: readonly { address: string; healthy: boolean; inFlight: number }[] }>
  >;
  /** Bans that this process saw begin, by plan. */
  readonly bans: ReadonlyMap<string, number>;
  /** Keys under a ban that it knows of. */
  readonly bannedKeys: Iterable<string>;
  /** Those of the listeners that speak TLS, by the name of the setting. */
  readonly certificates: Readonly<Record<string, { readonly notAfterMs: number }>>;
  readonly settings: Settings;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: number;
}

export interface MetricsText {
  readonly contentType: string;
  /** Prometheus's text exposition format, version 0.0.4. */
  read(): Promise<string>;
}

/**
 * The metrics as Prometheus reads them. The library writes the text, and adds those of the process; the figures are our
 * own plain numbers, since the library makes a label key anew with each count.
 */
export function createMetricsText(observe: () => ObservedState): MetricsText {
  let registry: Registry | undefined;
  /** All metrics of one scrape are of the same moment. */
  let state: ObservedState;
  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    read() {
      // Not before it is first asked for: the process's own metrics watch garbage collection and the event loop.
      state = observe();
      registry ??= createRegistry(() => state);
      return registry.metrics();
    },
  };
}

/** The library's gauges that end like a counter, and names with a type in them. */
const rejectedByPromtool = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
];

interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Where it is not that of the family: `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
}

function createRegistry(observe: () => ObservedState): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of rejectedByPromtool) registry.removeSingleMetric(name);

  family('requests_total', 'counter', 'Requests that are over, by operation, status and decision.', () =>
    [...observe().requests.requests].flatMap(([operation, byStatus]) =>
      [...byStatus].flatMap(([status, byDecision]) =>
        [...byDecision].map(([decision, value]) => ({ labels: { operation, status, decision }, value })),
      ),
    ),
  );
  histogram(
    'request_duration_seconds',
    'From the arrival of a request to its end.',
    ({ requestDuration }) => requestDuration,
  );
  histogram(
    'upstream_duration_seconds',
    'What of that passed at the upstream.',
    ({ upstreamDuration }) => upstreamDuration,
  );
  histogram(
    'decision_duration_seconds',
    'From the arrival to the decision.',
    ({ decisionDuration }) => decisionDuration,
  );
  family('requests_in_flight', 'gauge', 'Requests that are not over.', () => one(observe().inFlight));
  family('connections', 'gauge', 'Client connections.', () => one(observe().connections));
  family('rejected_total', 'counter', 'Requests refused before they had a key, by error code.', () =>
    by('code', observe().requests.rejected),
  );
  family('refused_total', 'counter', 'Requests of a key that a window refused, by plan and window.', () =>
    [...observe().requests.refused].flatMap(([plan, byWindow]) =>
      [...byWindow].map(([window, value]) => ({ labels: { plan, window }, value })),
    ),
  );
  family('deprecated_requests_total', 'counter', 'Requests of deprecated operations.', () =>
    deprecated().map(({ id }) => ({ labels: { operation: id }, value: total(observe().requests, id) })),
  );
  family('operation_sunset_timestamp_seconds', 'gauge', 'When a deprecated operation is removed.', () =>
    deprecated().flatMap(({ id, deprecation }) =>
      deprecation?.sunsetMs === undefined
        ? []
        : [{ labels: { operation: id }, value: deprecation.sunsetMs / 1000 }],
    ),
  );
  family('keys', 'gauge', 'Configured keys by state, as far as it is known without the store.', () => {
    const { settings, bannedKeys, nowMs } = observe();
    return countKeys(settings, bannedKeys, nowMs).map(({ state, plan, keys }) => ({
      labels: { state, plan },
      value: keys,
    }));
  });
  family('bans_total', 'counter', 'Bans that this process saw begin, by plan.', () =>
    by('plan', observe().bans),
  );
  family('store_available', 'gauge', '1 while the store of the counts replies, 0 while it is away.', () =>
    one(observe().storeAvailable ? 1 : 0),
  );
  family('store_servers_away', 'gauge', 'Servers of Redis that are away: in a Cluster each on its own.', () =>
    one(observe().storeServersAway),
  );
  family(
    'store_calls_total',
    'counter',
    'Decisions that the store was asked for, each on one key, by how they went.',
    () => by('result', Object.entries(observe().storeCalls)),
  );
  family('decided_locally_total', 'counter', 'Requests decided without the store.', () =>
    one(observe().decidedLocally),
  );
  family('directory_look_ups_total', 'counter', 'Look-ups in the key directory, by how they went.', () => {
    const { directory } = observe();
    return directory === undefined ? [] : by('result', directory.lookUps);
  });
  family('directory_held_keys', 'gauge', 'Keys of the directory that this process has read.', () => {
    const { directory } = observe();
    return directory === undefined ? [] : one(directory.heldKeys);
  });
  family('usage_recording', 'gauge', '1 while what keys use is recorded, 0 while that pauses.', () => {
    const { usage } = observe();
    return usage === undefined ? [] : one(usage.pausedBecause === undefined ? 1 : 0);
  });
  family('usage_lost_requests_total', 'counter', 'Requests that are in no record.', () => {
    const { usage } = observe();
    return usage === undefined ? [] : one(usage.lostRequests);
  });
  family('target_healthy', 'gauge', '1 while a target of an upstream is healthy.', () =>
    targets(({ healthy }) => (healthy ? 1 : 0)),
  );
  family('target_in_flight', 'gauge', 'Requests sent to a target or waiting for it.', () =>
    targets(({ inFlight }) => inFlight),
  );
  family('upstream_retries_total', 'counter', 'Attempts beyond the first of a request.', () =>
    one(observe().requests.upstreamRetries),
  );
  family('upstream_failures_total', 'counter', 'Requests that the upstream failed, by error code.', () =>
    by('cause', observe().requests.upstreamFailures),
  );
  family('config_last_reload_successful', 'gauge', '1 unless the configuration on disk is invalid.', () =>
    one(observe().config.lastError === undefined ? 1 : 0),
  );
  family('config_last_reload_timestamp_seconds', 'gauge', 'When the configuration in force was loaded.', () =>
    one(Date.parse(observe().config.loadedAt) / 1000),
  );
  family('config_info', 'gauge', 'The version of the configuration in force, as a label.', () => [
    { labels: { version: observe().config.version }, value: 1 },
  ]);
  family('certificate_expiry_timestamp_seconds', 'gauge', 'Until when a certificate is valid.', () =>
    Object.entries(observe().certificates).map(([listener, { notAfterMs }]) => ({
      labels: { listener },
      value: notAfterMs / 1000,
    })),
  );
  return registry;

  function deprecated(): Settings['operations'] {
    return observe().settings.operations.filter(({ deprecation }) => deprecation !== undefined);
  }

  function targets(figureOf: (target: { healthy: boolean; inFlight: number }) => number): Value[] {
    return Object.entries(observe().upstreams).flatMap(([upstream, state]) =>
      state.targets.map((target) => ({
        labels: { upstream, target: target.address },
        value: figureOf(target),
      })),
    );
  }

  function family(suffix: string, type: string, help: string, read: () => readonly Value[]): void {
    const name = `tollgate_${suffix}`;
    const get = () => Promise.resolve({ name, help, type, aggregator: 'sum', values: read() });
    // The library asks nothing else of a metric; its own classes would have to be counted into.
    registry.registerMetric({ name, get } as unknown as Metric<string>);
  }

  function histogram(suffix: string, help: string, read: (requests: RequestCounts) => Durations): void {
    family(suffix, 'histogram', help, () => {
      const { counts, sumMs } = read(observe().requests);
      const name = `tollgate_${suffix}`;
      let count = 0;
      const values: Value[] = counts.map((inBucket, index) => {
        count += inBucket;
        return {
          metricName: `${name}_bucket`,
          labels: { le: bucketsSeconds[index] ?? '+Inf' },
          value: count,
        };
      });
      values.push({ metricName: `${name}_sum`, labels: {}, value: sumMs / 1000 });
      values.push({ metricName: `${name}_count`, labels: {}, value: count });
      return values;
    });
  }
}

function one(value: number): Value[] {
  return [{ labels: {}, value }];
}

function by(label: string, counts: Iterable<readonly [string, number]>): Value[] {
  return [...counts].map(([name, value]) => ({ labels: { [label]: name }, value }));
}

function total({ requests }: RequestCounts, operation: string): number {
  let sum = 0;
  for (const byDecision of requests.get(operation)?.values() ?? []) {
    for (const count of byDecision.values()) sum += count;
  }
  return sum;
}
