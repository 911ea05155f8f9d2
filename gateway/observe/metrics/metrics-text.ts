import { type Metric, Registry } from '@prometheus-io/client';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { type Family, families, type ObservedState } from './metric-families.ts';
import { createProcessRegistry, type ProcessMetrics } from './process-metrics.ts';

/**
 * The metrics as text for Prometheus. The library writes the text and adds the metrics of the process. Requests are counted in
 * plain numbers, because the library builds the key of a label set on each count. One text is made at a time and cached, because
 * it takes a millisecond or more and asks every worker.
 *
 * @param others the metrics of the other processes of this gateway
 */
export function createMetricsText({
  observe,
  others,
  bounds,
}: {
  readonly observe: () => ObservedState;
  readonly others: (() => Promise<readonly ProcessMetrics[]>) | undefined;
  readonly bounds: Pick<Bounds, 'metricsKeptMs'>;
}) {
  /** All metrics of one scrape come from the same state. */
  let state: ObservedState;
  const registry = new Registry();
  for (const family of families) registry.registerMetric(metricOf(family, () => state));
  let own: Registry | undefined;
  let last: Promise<Buffer> = Promise.resolve(Buffer.alloc(0));
  /** When the next text is due, on the clock of `performance.now()`. Infinity while one is being made. */
  let dueMs = 0;

  async function make(): Promise<Buffer> {
    own ??= createProcessRegistry();
    const processes = others === undefined ? own : await joined(own, await others());
    state = observe();
    return Buffer.from(`${await registry.metrics()}${await processes.metrics()}`);
  }

  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    /** Prometheus's text exposition format, version 0.0.4. */
    read(): Promise<Buffer> {
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

/** The metrics of all processes together. Metrics that cannot be joined, such as the start time, are those of this process. */
async function joined(own: Registry, others: readonly ProcessMetrics[]): Promise<Registry> {
  const all = [await own.getMetricsAsJSON(), ...others].map((metrics) => [...metrics]);
  const registry = Registry.aggregate(all);
  for (const metric of own.getMetricsAsArray()) {
    if (registry.getSingleMetric(metric.name) === undefined)
      registry.registerMetric(metric as unknown as Metric<string>);
  }
  return registry;
}

/** The library calls only `get` of a metric. Its own classes would have to count. */
function metricOf({ suffix, type, help, valuesOf }: Family, observe: () => ObservedState): Metric<string> {
  const name = `tollgate_${suffix}`;
  const get = () => Promise.resolve({ name, help, type, aggregator: 'sum', values: valuesOf(observe()) });
  return { name, get } as unknown as Metric<string>;
}
