import type { WindowsMs } from '../../shared/calendar-windows.ts';
import type { Decision, DecisionSource, Limits } from '../../shared/model.ts';
import { rateLimitState, roomAtMs } from './rate-limit-state.ts';
import type { QuotaOutcome } from './store/decide-quota.ts';

/** The decision on the request at `index` of a batch, with its own remaining units or its own retry time. */
export function decisionAt(
  index: number,
  { outcome, source, units, limits, windowsMs }: DecidedTogether,
): Extract<Decision, { kind: 'admitted' | 'refused' | 'banned' }> {
  const { nowMs, admitted, refused, state } = outcome;
  if (index < admitted) {
    const usedLater = (admitted - 1 - index) * units;
    return {
      kind: 'admitted',
      units,
      rateLimit: rateLimitState(state, { limits, windowsMs, nowMs, usedLater }),
      source,
    };
  }
  const terms = { limits, windowsMs, nowMs };
  const after = rateLimitState(state, terms);
  if (index < admitted + refused) {
    const retryAtMs = roomAtMs(after, state, terms, { units });
    return { kind: 'refused', units, rateLimit: after, source, retryAtMs };
  }
  const untilMs = state.bannedUntilMs;
  const retryAtMs = roomAtMs(after, state, terms, { units, fromMs: untilMs });
  return {
    kind: 'banned',
    units,
    rateLimit: { ...after, ban: { untilMs, retryAtMs } },
    source,
    retryAtMs,
  };
}

export interface DecidedTogether {
  readonly outcome: QuotaOutcome;
  readonly source: DecisionSource;
  /** Cost of each request in units. */
  readonly units: number;
  readonly limits: Limits;
  readonly windowsMs: WindowsMs;
}
