import { capabilityFamilies } from '../../../gateway/capabilities/lists/parts.ts';
import { type Family, families } from '../../../gateway/observe/metrics/metric-families.ts';
import { bullet, code, page, pageHead } from './markdown.ts';

/** The metrics of the gateway and of its capabilities. */
export function metricsPage(): string {
  const all: readonly Family[] = [...families, ...capabilityFamilies];
  return page([
    pageHead('Metrics', '`gateway/observe/metrics/metric-families.ts` and the capabilities'),
    '`/metrics` of the admin listener shows Prometheus the figures of one gateway, unless a metric says otherwise, with counters since its start. The counters of all workers are added up. No label is a key, a client’s address or a raw path, so the text does not grow with the number of keys. `process_*` and `nodejs_*` show memory, CPU, event loop and garbage collection.',
    '`decision` is `admitted`, `refused` (by a window), `banned`, `crowded` (the key has reached its limit of requests in progress), `unavailable` (Redis is away under `refuse`), `counted` (charged to a bucket of an address, or to the bucket for reads of key holders), `bucket_refused` (such a bucket was used up), or `none` (ended before a decision).',
    all
      .map(({ suffix, type, labels = [], help }) => {
        const names = labels.length === 0 ? type : `${type} by ${labels.map(code).join(', ')}`;
        return bullet(`${code(`tollgate_${suffix}`)} (${names}): ${help}`);
      })
      .join('\n'),
  ]);
}
