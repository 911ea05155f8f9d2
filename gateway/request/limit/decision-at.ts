import type { WindowsMs } from '../../shared/calendar-windows.ts';
import type { Decision, DecisionSource, Limits } from '../../shared/model.ts';
import { rateLimitState, roomAtMs } from './rate-limit-state.ts';
import { type Asked, chargedUnits, isRunning, type QuotaOutcome } from './store/decide-quota.ts';

/** Returns the decision on the request at `index` of a run, with the remaining units or the retry time of this request. */
export function decisionAt(
  index: number,
  { outcome, source, units, limits, windowsMs, usedLater = 0 }: DecidedTogether,
): Exclude<Decision, { kind: 'unavailable' }> {
  const { nowMs, admitted, refused, banned, crowded = 0, state } = outcome;
  if (index < admitted) {
    const later = usedLater + (admitted - 1 - index) * units;
    const rateLimit = rateLimitState(state, { limits, windowsMs, nowMs, usedLater: later });
    const decision = { kind: 'admitted', units, rateLimit, source } as const;
    const { grant } = state;
    return isRunning(grant, nowMs) && grant.noBrownouts ? { ...decision, noBrownouts: true } : decision;
  }
  const terms = { limits, windowsMs, nowMs, usedLater };
  const after = rateLimitState(state, terms);
  if (index < admitted + refused) {
    const retryAtMs = roomAtMs(after, state, terms, { units });
    return { kind: 'refused', units, rateLimit: after, source, retryAtMs };
  }
  if (crowded > 0 && index >= admitted + refused + banned) {
    // The gateway does not know when a running request ends, so the client retries after a fixed time.
    return { kind: 'crowded', units, rateLimit: after, source, retryAtMs: nowMs + crowdedRetryMs };
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

/** The time after which a client may repeat a request that the concurrency limit refused. */
const crowdedRetryMs = 1_000;

/** The decisions on a run of consecutive requests with equal cost. */
export interface DecidedTogether extends RunTerms {
  readonly outcome: Pick<QuotaOutcome, 'nowMs' | 'admitted' | 'refused' | 'banned' | 'crowded' | 'state'>;
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
  // In each call to the store, the refused requests come before the banned requests.
  let refusedLeft = outcome.refused;
  // The requests that exceed the concurrency limit are the last requests of the call.
  let overWindowsLeft = outcome.refused + outcome.banned;
  return [asked, ...later].map(({ requests, units }, at) => {
    const admitted = admittedOf[at] ?? 0;
    const overWindows = Math.min(requests - admitted, overWindowsLeft);
    overWindowsLeft -= overWindows;
    const refused = Math.min(overWindows, refusedLeft);
    refusedLeft -= refused;
    const banned = overWindows - refused;
    const crowded = requests - admitted - overWindows;
    usedLater -= admitted * units;
    return {
      outcome: { nowMs, admitted, refused, banned, crowded, state },
      source,
      units,
      limits,
      windowsMs,
      usedLater,
    };
  });
}
