import type { Family } from '../../../observe/metrics/metric-families.ts';
import { spanCounts } from '../otel.ts';

/** The metrics about spans. They have no values if `otel` was never set. */
export const otelFamilies: readonly Family[] = [
  {
    suffix: 'otel_spans_total',
    type: 'counter',
    labels: ['result'],
    help: 'Spans for the OpenTelemetry collector. `result` is `sent` (the collector has taken them) or `lost`. Absent if `otel` was never set.',
    valuesOf: ({ ofParts }) =>
      Object.entries(spanCounts).flatMap(([result, name]) => {
        const value = ofParts[name];
        return value === undefined ? [] : [{ labels: { result }, value }];
      }),
  },
];
