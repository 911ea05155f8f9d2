import type { Period } from '../../shared/schema/dates-and-durations.ts';
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
  const keptFromMs = (Math.floor(nowMs / dayMs) - keptDays) * dayMs;
  return { fromMs: Math.max(fromMs, keptFromMs), toMs: Math.min(toMs, nowMs) };
}
