import type { Logger } from 'pino';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

/** Logs what the collector does not get: at once, and then at most once in `otelLogPauseMs`, with the number since the last line. */
export function createLossReport(
  what: 'spans' | 'metrics',
  { log, bounds }: { readonly log: Pick<Logger, 'warn'>; readonly bounds: Pick<Bounds, 'otelLogPauseMs'> },
) {
  const reasons = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;

  function write(): void {
    timer = undefined;
    if (reasons.size === 0) return;
    const lost = [...reasons.values()].reduce((sum, count) => sum + count, 0);
    log.warn({ lost, reasons: Object.fromEntries(reasons) }, `${what} did not reach the collector`);
    reasons.clear();
    timer = setTimeout(write, bounds.otelLogPauseMs).unref();
  }

  return {
    /** @param reason one of a few texts */
    add(count: number, reason: string): void {
      const known = reasons.has(reason) || reasons.size < reasonsMax ? reason : 'other reasons';
      reasons.set(known, (reasons.get(known) ?? 0) + count);
      if (timer === undefined) write();
    },
    /** Writes the last line. */
    close(): void {
      clearTimeout(timer);
      write();
      clearTimeout(timer);
    },
  };
}

/** Reasons in one line. */
const reasonsMax = 5;
