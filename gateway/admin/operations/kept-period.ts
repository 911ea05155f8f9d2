import { isoSecondOf, type Period } from '../../shared/schema/dates-and-durations.ts';
import { dayMs } from '../../shared/words/figures.js';
import type { UsageState } from '../../usage/usage.ts';

/**
 * Shortens a period to the days for which minutes are kept. A query for 400 days then costs no more than a query for
 * the kept days.
 */
export function keptPeriod(
  { fromMs, toMs }: Period,
  { keptDays }: Pick<UsageState, 'keptDays'>,
  nowMs: number,
): Period {
  return { fromMs: Math.max(fromMs, keptFromMs(keptDays, nowMs)), toMs: Math.min(toMs, nowMs) };
}

/** Shortens a period whose whole hours are counted. An hour that begins at a past end of the period does not belong to it. */
export function keptHours(period: Period, usage: Pick<UsageState, 'keptDays'>, nowMs: number): Period {
  const { fromMs, toMs } = keptPeriod(period, usage, nowMs);
  return { fromMs, toMs: period.toMs < nowMs ? toMs - 1 : toMs };
}

/** Returns the beginning of the record if a period begins earlier. */
export function recordFromAt(
  { fromMs }: Period,
  usage: { readonly state: () => Pick<UsageState, 'keptDays'> } | undefined,
  nowMs: number,
): string | undefined {
  if (usage === undefined) return undefined;
  const keptMs = keptFromMs(usage.state().keptDays, nowMs);
  return fromMs < keptMs ? isoSecondOf(keptMs) : undefined;
}

/** Whether no minute of a period is kept. */
export function isBeforeRecord(
  { toMs }: Period,
  { keptDays }: Pick<UsageState, 'keptDays'>,
  nowMs: number,
): boolean {
  return toMs < keptFromMs(keptDays, nowMs);
}

/** The oldest day of the record, epoch ms. */
function keptFromMs(keptDays: number, nowMs: number): number {
  return (Math.floor(nowMs / dayMs) - keptDays) * dayMs;
}
