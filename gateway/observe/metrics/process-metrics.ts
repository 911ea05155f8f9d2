import { collectDefaultMetrics, type MetricObject, Registry } from '@prometheus-io/client';

/** What the library knows of a process, `process_*` and `nodejs_*`, as plain data. */
export type ProcessMetrics = readonly MetricObject[];

/** The library's gauges that end like a counter, and names with a type in them. */
const rejectedByPromtool = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
];

/** Reads those of this process. To be made when they are first asked for: it watches garbage collection and the event loop. */
export function createProcessRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of rejectedByPromtool) registry.removeSingleMetric(name);
  return registry;
}

/** Those of several processes in one: added up, or the mean or the highest where the library says so. */
export async function joinProcessMetrics(all: readonly ProcessMetrics[]): Promise<ProcessMetrics> {
  return Registry.aggregate(all.map((metrics) => [...metrics])).getMetricsAsJSON();
}

/** What must not become less when a process ends. */
export function lastingMetrics(metrics: ProcessMetrics): ProcessMetrics {
  return metrics.filter(({ type }) => `${type}` === 'counter' || `${type}` === 'histogram');
}
