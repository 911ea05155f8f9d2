import { collectDefaultMetrics, type MetricObject, Registry } from '@prometheus-io/client';

/** The metrics `process_*` and `nodejs_*` of a process, which the library collects, as plain data. */
export type ProcessMetrics = readonly MetricObject[];

/**
 * Metrics of the library that are omitted because promtool rejects their names: gauges with the name of a counter,
 * and names that contain a type.
 */
const rejectedByPromtool = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
];

/**
 * Creates the registry with the metrics of this process. The registry watches garbage collection and the event loop,
 * so it is created only at the first scrape.
 */
export function createProcessRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of rejectedByPromtool) registry.removeSingleMetric(name);
  return registry;
}

/** The library defines for each metric whether the joined value is the sum, the mean or the maximum. */
export async function joinProcessMetrics(all: readonly ProcessMetrics[]): Promise<ProcessMetrics> {
  return Registry.aggregate(all.map((metrics) => [...metrics])).getMetricsAsJSON();
}

/** Returns the metrics whose values must not decrease when a process ends. */
export function lastingMetrics(metrics: ProcessMetrics): ProcessMetrics {
  return metrics.filter(({ type }) => `${type}` === 'counter' || `${type}` === 'histogram');
}
