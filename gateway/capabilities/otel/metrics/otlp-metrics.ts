import type { MetricData } from '../../../observe/metrics/metric-registries.ts';
import { attributesOf, type KeyValue } from '../resource.ts';

type Value = MetricData['values'][number];

interface Point {
  readonly attributes: readonly KeyValue[];
  readonly startTimeUnixNano: string;
  readonly timeUnixNano: string;
}

/**
 * Converts the metrics of `/metrics` to JSON of OTLP (opentelemetry-proto, metrics.proto). The names stay the same. A counter becomes a
 * cumulative monotonic sum, and a histogram has the count of each bucket alone.
 *
 * @param from the start of the counts, and the time of the values; epoch ms
 */
export function otlpMetrics(
  metrics: readonly MetricData[],
  from: { readonly startMs: number; readonly nowMs: number },
): readonly object[] {
  const times = { startTimeUnixNano: nanos(from.startMs), timeUnixNano: nanos(from.nowMs) };
  return metrics.flatMap(({ name, help, type, values }): readonly object[] => {
    if (values.length === 0) return [];
    const common = { name, description: help, unit: unitOf(name) };
    const points = () =>
      values
        .filter(({ value }) => Number.isFinite(value))
        .map(({ labels, value }) => ({ ...pointOf(labels, times), asDouble: value }));
    switch (type) {
      case 'counter':
        return [
          { ...common, sum: { aggregationTemporality: cumulative, isMonotonic: true, dataPoints: points() } },
        ];
      case 'gauge':
        return [{ ...common, gauge: { dataPoints: points() } }];
      case 'histogram':
        return [
          {
            ...common,
            histogram: { aggregationTemporality: cumulative, dataPoints: histogramPoints(values, times) },
          },
        ];
      default:
        return [];
    }
  });
}

/** AGGREGATION_TEMPORALITY_CUMULATIVE. The number of the enum, because names are not valid in JSON of OTLP. */
const cumulative = 2;

/** A histogram of Prometheus has cumulative buckets. The last bucket is `+Inf`. */
function histogramPoints(values: readonly Value[], times: Times): readonly object[] {
  const series = Map.groupBy(values, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  return [...series].map(([labels, ofSeries]) => {
    const buckets = ofSeries.filter(({ labels }) => labels.le !== undefined);
    const figureOf = (end: string) =>
      ofSeries.find(({ metricName }) => metricName?.endsWith(end))?.value ?? 0;
    return {
      ...pointOf(JSON.parse(labels), times),
      count: String(figureOf('_count')),
      sum: figureOf('_sum'),
      bucketCounts: buckets.map(({ value }, index) => String(value - (buckets[index - 1]?.value ?? 0))),
      explicitBounds: buckets.map(({ labels }) => Number(labels.le)).filter(Number.isFinite),
    };
  });
}

type Times = Pick<Point, 'startTimeUnixNano' | 'timeUnixNano'>;

function pointOf(labels: Partial<Record<string, string | number>>, times: Times): Point {
  const stated = Object.entries(labels).filter(
    (entry): entry is [string, string | number] => entry[1] !== undefined,
  );
  return { attributes: attributesOf(Object.fromEntries(stated)), ...times };
}

/** The unit in the name of a metric, by UCUM. */
function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return 's';
  return /_bytes(_total)?$/.test(name) ? 'By' : '';
}

function nanos(epochMs: number): string {
  return `${Math.round(epochMs)}000000`;
}
