import { fetchOnce } from './fetch-once.ts';

export interface Metrics {
  readonly text: string;
  readonly contentType: string | null;
  /**
   * The figures. The key of the Map is the name of the metric with its labels, such as
   * `tollgate_rejected_total{code="invalid_key"}`.
   */
  readonly figures: ReadonlyMap<string, number>;
  /** The sum of a metric over all its labels. */
  sum(name: string): number;
}

/** The metrics that a gateway returns to Prometheus. */
export async function readMetrics(adminUrl: string): Promise<Metrics> {
  const response = await fetchOnce(`${adminUrl}/metrics`);
  if (!response.ok) throw new Error(`/metrics answered ${response.status}`);
  const text = await response.text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const figures = new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
  return {
    text,
    contentType: response.headers.get('content-type'),
    figures,
    sum(name) {
      const ofName = [...figures].filter(([series]) => series.split('{')[0] === name);
      return ofName.reduce((sum, [, value]) => sum + value, 0);
    },
  };
}
