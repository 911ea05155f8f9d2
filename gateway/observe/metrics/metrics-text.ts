import { type Metric, Registry } from '@prometheus-io/client';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { type Family, type ObservedState, families as ownFamilies } from './metric-families.ts';
import { createProcessRegistry, type ProcessMetrics } from './process-metrics.ts';

/**
 * Makes the text of the metrics for Prometheus. The library formats the text and adds the metrics of the process.
 * Requests are counted in plain numbers, because the library's counters build a text from the labels for each counted
 * request. Making the text takes at least a millisecond and sends a message to every worker. The text is therefore
 * cached, and only one text is made at a time.
 *
 * @param others the metrics of the other processes of this gateway
 */
export function createMetricsText({
  observe,
  others,
  families,
  bounds,
}: {
  readonly observe: () => ObservedState;
  readonly others: (() => Promise<readonly ProcessMetrics[]>) | undefined;
  /** The families of capabilities, which follow the families of the gateway. */
  readonly families: readonly Family[];
  readonly bounds: Pick<Bounds, 'metricsKeptMs'>;
}) {
  /** All metrics of one scrape come from the same state. */
  let state: ObservedState;
  const registry = new Registry();
  for (const family of [...ownFamilies, ...families]) registry.registerMetric(metricOf(family, () => state));
  let ofProcess: Registry | undefined;
  let last: Promise<Buffer> = Promise.resolve(Buffer.alloc(0));
  /**
   * The time at which the cached text expires, on the clock of `performance.now()`; Infinity while a text is being
   * made.
   */
  let dueMs = 0;

  async function make(): Promise<Buffer> {
    ofProcess ??= createProcessRegistry();
    const processes = others === undefined ? ofProcess : await joined(ofProcess, await others());
    state = observe();
    return Buffer.from(`${await registry.metrics()}${await processes.metrics()}`);
  }

  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    /** Returns the text in Prometheus's exposition format, version 0.0.4. */
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

/**
 * Joins the metrics of all processes. A metric that cannot be joined, such as the start time, has the value of this
 * process.
 */
async function joined(ofProcess: Registry, others: readonly ProcessMetrics[]): Promise<Registry> {
  const all = [await ofProcess.getMetricsAsJSON(), ...others].map((metrics) => [...metrics]);
  const registry = Registry.aggregate(all);
  for (const metric of ofProcess.getMetricsAsArray()) {
    if (registry.getSingleMetric(metric.name) === undefined)
      registry.registerMetric(metric as unknown as Metric<string>);
  }
  return registry;
}

/**
 * Makes a metric that reads its values when the library calls `get`. The library's own classes would keep a second
 * count of each request.
 */
function metricOf({ suffix, type, help, valuesOf }: Family, observe: () => ObservedState): Metric<string> {
  const name = `tollgate_${suffix}`;
  const get = () => Promise.resolve({ name, help, type, aggregator: 'sum', values: valuesOf(observe()) });
  return { name, get } as unknown as Metric<string>;
}
