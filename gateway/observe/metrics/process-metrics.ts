import { collectDefaultMetrics, type MetricObject, Registry } from '@prometheus-io/client';

/** The library's metrics of a process, `process_*` and `nodejs_*`, as plain data. */
export type ProcessMetrics = readonly MetricObject[];

/** Gauges of the library that are named like a counter, and names with a type in them. */
const rejectedByPromtool = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
];

/** Metrics of this process. It watches garbage collection and the event loop, so it is made only when it is first needed. */
export function createProcessRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of rejectedByPromtool) registry.removeSingleMetric(name);
  return registry;
}

/** Joins the metrics of several processes: the sum, or the mean or maximum that the library defines. */
export async function joinProcessMetrics(all: readonly ProcessMetrics[]): Promise<ProcessMetrics> {
  return Registry.aggregate(all.map((metrics) => [...metrics])).getMetricsAsJSON();
}

/** The metrics that must not fall when a process ends. */
export function lastingMetrics(metrics: ProcessMetrics): ProcessMetrics {
  return metrics.filter(({ type }) => `${type}` === 'counter' || `${type}` === 'histogram');
}
