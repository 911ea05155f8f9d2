import type { Period } from '../../shared/schema/dates-and-durations.ts';
import type { UsageState } from '../../usage/usage.ts';

const dayMs = 86_400_000;

/**
 * The part of a period whose minutes and hours may still be recorded. A query for 400 days therefore costs no more than
 * a query for the recorded days.
 */
export function keptPeriod(
  { fromMs, toMs }: Period,
  { keptDays }: Pick<UsageState, 'keptDays'>,
  nowMs: number,
): Period {
  const keptFromMs = (Math.floor(nowMs / dayMs) - keptDays) * dayMs;
  return { fromMs: Math.max(fromMs, keptFromMs), toMs: Math.min(toMs, nowMs) };
}
