import { type Metric, Registry } from '@prometheus-io/client';
import type { Settings } from '../../shared/model.ts';
import { bucketsSeconds } from '../../shared/structures/histogram.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { countKeys } from './key-states.ts';
import { createProcessRegistry, type ProcessMetrics } from './process-metrics.ts';
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
  /** Absent: one process is all there is. */
  readonly workers?: { readonly configured: number; readonly serving: number; readonly replaced: number };
  readonly upstreams: Readonly<
    Record<string, { readonly targets: readonly { address: string; healthy: boolean; inFlight: number }[] }>
  >;
  /** Bans that this process has seen, by plan. */
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
  read(): Promise<Buffer>;
}

/**
 * The metrics as Prometheus reads them. The library writes the text, and adds those of the process; the figures are our
 * own plain numbers, since the library makes a label key anew with each count. One text is made at a time and kept for a
 * while: it costs a millisecond or more, and asks every worker.
 *
 * @param others what it knows of the other processes of this gateway
 */
export function createMetricsText({
  observe,
  others,
  bounds,
}: {
  readonly observe: () => ObservedState;
  readonly others: (() => Promise<readonly ProcessMetrics[]>) | undefined;
  readonly bounds: Pick<Bounds, 'metricsKeptMs'>;
}): MetricsText {
  /** All metrics of one scrape are of the same moment. */
  let state: ObservedState;
  const registry = createRegistry(() => state);
  let own: Registry | undefined;
  let last: Promise<Buffer> = Promise.resolve(Buffer.alloc(0));
  /** When another text is due, of `performance.now()`: not while one is being made. */
  let dueMs = 0;

  async function make(): Promise<Buffer> {
    own ??= createProcessRegistry();
    const processes = others === undefined ? own : await joined(own, await others());
    state = observe();
    return Buffer.from(`${await registry.metrics()}${await processes.metrics()}`);
  }

  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    read() {
      if (performance.now() >= dueMs) {
        dueMs = Number.POSITIVE_INFINITY;
        last = make().finally(() => {
          dueMs = performance.now() + bounds.metricsKeptMs;
        });
      }
      return last;
    },
  };
}

/** All processes as one. When it was started, and what else cannot be joined, is that of this process. */
async function joined(own: Registry, others: readonly ProcessMetrics[]): Promise<Registry> {
  const all = [await own.getMetricsAsJSON(), ...others].map((metrics) => [...metrics]);
  const registry = Registry.aggregate(all);
  for (const metric of own.getMetricsAsArray()) {
    if (registry.getSingleMetric(metric.name) === undefined)
      registry.registerMetric(metric as unknown as Metric<string>);
  }
  return registry;
}

interface Value {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Where it is not that of the family: `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
}

function createRegistry(observe: () => ObservedState): Registry {
  const registry = new Registry();

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
  family('workers', 'gauge', 'Processes that should serve requests.', () => {
    const { workers } = observe();
    return workers === undefined ? [] : one(workers.configured);
  });
  family('workers_serving', 'gauge', 'Processes that do.', () => {
    const { workers } = observe();
    return workers === undefined ? [] : one(workers.serving);
  });
  family('workers_replaced_total', 'counter', 'Workers that ended and were replaced.', () => {
    const { workers } = observe();
    return workers === undefined ? [] : one(workers.replaced);
  });
  family('rejected_total', 'counter', 'Requests refused before they had a key, by error code.', () =>
    by('code', observe().requests.rejected),
  );
  family('refused_total', 'counter', 'Requests of a key that a window refused, by plan and window.', () =>
    [...observe().requests.refused].flatMap(([plan, byWindow]) =>
      [...byWindow].map(([window, value]) => ({ labels: { plan, window }, value })),
    ),
  );
  family('deprecated_requests_total', 'counter', 'Requests of keys for deprecated operations.', () =>
    deprecated().map(({ id }) => ({ labels: { operation: id }, value: totalOfKeys(observe().requests, id) })),
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
  family('bans_total', 'counter', 'Bans that this gateway has seen, by plan.', () =>
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
  family('upstream_healthy_targets', 'gauge', 'Healthy targets of an upstream.', () =>
    Object.entries(observe().upstreams).map(([upstream, { targets }]) => ({
      labels: { upstream },
      value: targets.filter(({ healthy }) => healthy).length,
    })),
  );
  family('failures_total', 'counter', 'Requests that failed, by whose fault: gateway or upstream.', () =>
    by('fault', observe().requests.failures),
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

/** Without those that had no valid key: nobody can be told that the operation ends. */
function totalOfKeys({ requests }: RequestCounts, operation: string): number {
  let sum = 0;
  for (const byDecision of requests.get(operation)?.values() ?? []) {
    for (const decision of decisionsOfKeys) sum += byDecision.get(decision) ?? 0;
  }
  return sum;
}

const decisionsOfKeys = ['admitted', 'refused', 'banned', 'unavailable'] as const;
