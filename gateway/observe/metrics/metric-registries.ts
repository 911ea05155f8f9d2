import { type Metric, Registry } from '@prometheus-io/client';
import { type Family, type ObservedState, families as ownFamilies } from './metric-families.ts';
import { createProcessRegistry, type ProcessMetrics } from './process-metrics.ts';

/**
 * The metrics of the gateway and of its process, as text for Prometheus and as data.
 *
 * @param others the metrics of the other processes of this gateway; undefined for a gateway in one process
 */
export interface Registries {
  text(observe: () => ObservedState, others: readonly ProcessMetrics[] | undefined): Promise<string>;
  data(
    observe: () => ObservedState,
    others: readonly ProcessMetrics[] | undefined,
  ): Promise<readonly MetricData[]>;
}

/** A metric with its values. A histogram has cumulative buckets with the label `le`, and its `_sum` and `_count`. */
export interface MetricData {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly values: readonly {
    readonly labels: Readonly<Partial<Record<string, string | number>>>;
    readonly value: number;
    /** The name of the value if it differs from the name of the metric. */
    readonly metricName?: string;
  }[];
}

/** @param families the families of capabilities, which follow the families of the gateway */
export function createRegistries(families: readonly Family[]): Registries {
  /** All metrics of one scrape come from the same state. */
  let state: ObservedState;
  const own = new Registry();
  for (const family of [...ownFamilies, ...families]) own.registerMetric(metricOf(family, () => state));
  const ofProcess = createProcessRegistry();

  const both = async (observe: () => ObservedState, others: readonly ProcessMetrics[] | undefined) => {
    const processes = others === undefined ? ofProcess : await joined(ofProcess, others);
    state = observe();
    return [own, processes] as const;
  };

  return {
    async text(...from) {
      const [own, processes] = await both(...from);
      return `${await own.metrics()}${await processes.metrics()}`;
    },
    async data(...from) {
      const [own, processes] = await both(...from);
      return [...(await own.getMetricsAsJSON()), ...(await processes.getMetricsAsJSON())];
    },
  };
}

/** Joins the metrics of all processes. A metric that cannot be joined, such as the start time, has the value of this process. */
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
