import type { Decision, DecisionSource, Limits } from '../model.ts';
import { bannedState, rateLimit, roomAtMs } from './rate-limit-state.ts';
import type { QuotaOutcome, WindowLengths } from './store/decide-quota.ts';

/** What the request at `index` of those decided together is told: its own remaining, or when to come back. */
export function decisionAt(
  index: number,
  { outcome, source, limits, lengths }: DecidedTogether,
): Extract<Decision, { kind: 'admitted' | 'refused' | 'banned' }> {
  const { nowMs, admitted, refused, state } = outcome;
  if (index < admitted) {
    const usedLater = admitted - 1 - index;
    const own = {
      minute: state.minute,
      minuteUsed: state.minuteUsed - usedLater,
      day: state.day,
      dayUsed: state.dayUsed - usedLater,
    };
    return { kind: 'admitted', rateLimit: rateLimit(own, limits, lengths, nowMs), source };
  }
  const after = rateLimit(state, limits, lengths, nowMs);
  const freeAtMs = roomAtMs(after);
  if (index < admitted + refused) return { kind: 'refused', rateLimit: after, source, retryAtMs: freeAtMs };
  const banUntilMs = state.bannedUntilMs;
  const retryAtMs = Math.max(banUntilMs, freeAtMs);
  return { kind: 'banned', rateLimit: bannedState(after, { banUntilMs, retryAtMs }), source, retryAtMs };
}

export interface DecidedTogether {
  readonly outcome: QuotaOutcome;
  readonly source: DecisionSource;
  readonly limits: Limits;
  readonly lengths: WindowLengths;
}
