import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { Family, ObservedState } from './metric-families.ts';
import type { MetricData, Registries } from './metric-registries.ts';
import type { ProcessMetrics } from './process-metrics.ts';

/**
 * Makes the text of the metrics for Prometheus, and the same metrics as data. The library formats the text and adds the metrics of the
 * process. The library is loaded at the first scrape.
 *
 * Requests are counted in plain numbers, because the library's counters build a text from the labels for each counted request. Making the
 * text takes at least a millisecond and sends a message to every worker. The text is therefore cached, and only one text is made at a time.
 *
 * @param others the metrics of the other processes of this gateway
 */
export function createMetrics({
  observe,
  others,
  families,
  bounds,
}: {
  readonly observe: () => ObservedState;
  readonly others: (() => Promise<readonly ProcessMetrics[]>) | undefined;
  readonly families: readonly Family[];
  readonly bounds: Pick<Bounds, 'metricsKeptMs'>;
}) {
  let registries: Promise<Registries> | undefined;
  let last: Promise<Buffer> = Promise.resolve(Buffer.alloc(0));
  /** When the cached text expires, on the clock of `performance.now()`; Infinity while a text is being made. */
  let dueMs = 0;

  function load(): Promise<Registries> {
    registries ??= import('./metric-registries.ts').then(({ createRegistries }) =>
      createRegistries(families),
    );
    return registries;
  }

  async function make(): Promise<Buffer> {
    return Buffer.from(await (await load()).text(observe, await others?.()));
  }

  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
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
    /** Returns the metrics of the text as data. */
    readData: async (): Promise<readonly MetricData[]> => (await load()).data(observe, await others?.()),
  };
}
