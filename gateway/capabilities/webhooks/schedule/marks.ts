import { dayMs } from '../../../shared/words/figures.js';

/** A period of a scan, epoch ms. The scan reports marks after `fromMs`, up to and including `toMs`. */
export interface ScanPeriod {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * The mark that receivers get, as a number of days before the end; undefined if no mark was reached in the period, or if the end is over.
 * After an outage of the gateway, a period may have several marks. Receivers then get only the mark that is nearest to the end.
 *
 * @param days the marks
 * @param endMs the end, epoch ms
 */
export function nearestMark(
  days: readonly number[],
  endMs: number,
  { fromMs, toMs }: ScanPeriod,
): number | undefined {
  if (endMs <= toMs) return undefined;
  const reached = days.filter((day) => endMs - day * dayMs > fromMs && endMs - day * dayMs <= toMs);
  return reached.length === 0 ? undefined : Math.min(...reached);
}
