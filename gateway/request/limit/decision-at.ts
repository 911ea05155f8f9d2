import type { WindowsMs } from '../../shared/calendar-windows.ts';
import type { Decision, DecisionSource, Limits } from '../../shared/model.ts';
import { rateLimitState, roomAtMs } from './rate-limit-state.ts';
import { type Asked, chargedUnits, type QuotaOutcome } from './store/decide-quota.ts';

/** Returns the decision on the request at `index` of a run, with the remaining units or the retry time of this request. */
export function decisionAt(
  index: number,
  { outcome, source, units, limits, windowsMs, usedLater = 0 }: DecidedTogether,
): Extract<Decision, { kind: 'admitted' | 'refused' | 'banned' }> {
  const { nowMs, admitted, refused, state } = outcome;
  if (index < admitted) {
    const later = usedLater + (admitted - 1 - index) * units;
    return {
      kind: 'admitted',
      units,
      rateLimit: rateLimitState(state, { limits, windowsMs, nowMs, usedLater: later }),
      source,
    };
  }
  const terms = { limits, windowsMs, nowMs, usedLater };
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

/** The decisions on a run of consecutive requests with equal cost. */
export interface DecidedTogether extends RunTerms {
  readonly outcome: Pick<QuotaOutcome, 'nowMs' | 'admitted' | 'refused' | 'state'>;
  /** The cost of each request in units. */
  readonly units: number;
  /** Charged units in `outcome` that belong to later runs. */
  readonly usedLater?: number;
}

interface RunTerms {
  readonly source: DecisionSource;
  readonly limits: Limits;
  readonly windowsMs: WindowsMs;
}

/** Divides the outcome of a call among its runs, in the order of the runs. */
export function decidedRuns(
  asked: Asked,
  outcome: QuotaOutcome,
  terms: RunTerms,
): readonly DecidedTogether[] {
  const { source, limits, windowsMs } = terms;
  const { units, later } = asked;
  if (later === undefined) return [{ outcome, source, units, limits, windowsMs }];
  const { nowMs, state, admittedOf = [] } = outcome;
  let usedLater = chargedUnits(asked, outcome);
  // The refused requests of a call all precede its banned requests.
  let refusedLeft = outcome.refused;
  return [asked, ...later].map(({ requests, units }, at) => {
    const admitted = admittedOf[at] ?? 0;
    const refused = Math.min(requests - admitted, refusedLeft);
    refusedLeft -= refused;
    usedLater -= admitted * units;
    return { outcome: { nowMs, admitted, refused, state }, source, units, limits, windowsMs, usedLater };
  });
}
