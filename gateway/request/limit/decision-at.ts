import { isBanned } from '../../quota/bans.ts';
import type { QuotaOutcome, TrialDecided } from '../../quota/decide-key.ts';
import { applyGrant, isRunning } from '../../quota/grants.ts';
import { type Asked, chargedUnits, type Run } from '../../quota/runs.ts';
import { costsTooMuch } from '../../quota/trial.ts';
import type { WindowsMs } from '../../shared/calendar-windows.ts';
import type { Decision, DecisionSource, Limits, PlanWindow, TrialOutcome } from '../../shared/model.ts';
import { rateLimitState, roomAtMs } from './rate-limit-state.ts';

/** Returns the decision on the request at `index` of a run, with the remaining units or the retry time of this request. */
export function decisionAt(
  index: number,
  together: DecidedTogether,
): Exclude<Decision, { kind: 'unavailable' }> {
  const decision = decisionOfPlan(index, together);
  const { trial } = together;
  return trial === undefined ? decision : { ...decision, trial: trialOutcomeAt(index, trial, together) };
}

function decisionOfPlan(
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
  const after = rateLimitState(state, { limits, windowsMs, nowMs, usedLater });
  // Later requests of the call may have filled a window or led to a ban, so the time to retry follows from the final counts.
  const final = { limits, windowsMs, nowMs };
  const untilMs = isBanned(state, nowMs) ? state.bannedUntilMs : 0;
  const retryAtMs = roomAtMs(rateLimitState(state, final), state, final, { units, fromMs: untilMs });
  if (index < admitted + refused) return { kind: 'refused', units, rateLimit: after, source, retryAtMs };
  if (crowded > 0 && index >= admitted + refused + banned) {
    // The gateway does not know when a running request ends, so the client retries after a fixed time.
    return { kind: 'crowded', units, rateLimit: after, source, retryAtMs: nowMs + crowdedRetryMs };
  }
  return {
    kind: 'banned',
    units,
    rateLimit: { ...after, ban: { untilMs, retryAtMs } },
    source,
    retryAtMs,
  };
}

/** Returns what the trial decided on the request at `index` of a run. */
function trialOutcomeAt(
  index: number,
  { admitted, refused, banned, state, limits, units, usedLater = 0 }: TrialOfRun,
  { outcome: { nowMs }, windowsMs }: DecidedTogether,
): TrialOutcome {
  if (index < admitted) {
    if (!costsTooMuch(units, limits, state.grant, nowMs)) return 'admitted';
    // The request would get 403, and the message would name the smallest limit.
    const inForce = applyGrant(limits, state.grant, nowMs);
    return inForce.reduce((one, other) => (other.max < one.max ? other : one)).window;
  }
  if (index < admitted + refused) {
    // A key has no buckets among its windows.
    return rateLimitState(state, { limits, windowsMs, nowMs, usedLater }).inForce.name as PlanWindow;
  }
  return index < admitted + refused + banned ? 'banned' : 'concurrent';
}

/** The time after which a client may repeat a request that the concurrency limit refused. */
const crowdedRetryMs = 1_000;

/** The decisions on a run of consecutive requests with equal cost. */
export interface DecidedTogether extends Omit<RunTerms, 'trial'>, Partial<Pick<Share, 'usedLater'>> {
  readonly outcome: Pick<QuotaOutcome, 'nowMs' | 'admitted' | 'refused' | 'banned' | 'crowded' | 'state'>;
  /** The cost of each request in units. */
  readonly units: number;
  /** Absent without a trial. */
  readonly trial?: TrialOfRun | undefined;
}

/** The outcome of the trial for a run. The remaining requests exceeded the concurrency limit. */
interface TrialOfRun extends Omit<Share, 'crowded' | 'usedLater'>, Pick<TrialDecided, 'state'> {
  readonly limits: Limits;
  /** The cost of each request in the trial. */
  readonly units: number;
  readonly usedLater?: number;
}

interface RunTerms {
  readonly source: DecisionSource;
  readonly limits: Limits;
  /** The limits of the trial; absent without a trial. */
  readonly trial?: Limits | undefined;
  readonly windowsMs: WindowsMs;
}

/** The part of an outcome that belongs to one run. */
interface Share {
  readonly admitted: number;
  readonly refused: number;
  readonly banned: number;
  readonly crowded: number;
  /** Charged units in the outcome that belong to later runs. */
  readonly usedLater: number;
}

/** Divides the outcome of a call among its runs, in the order of the runs. */
export function decidedRuns(
  asked: Asked,
  outcome: QuotaOutcome,
  { source, limits, trial, windowsMs }: RunTerms,
): readonly DecidedTogether[] {
  const { nowMs, state } = outcome;
  const tried = triedRuns(asked, outcome, trial);
  const { units, later } = asked;
  if (later === undefined) return [{ outcome, source, units, limits, windowsMs, trial: tried?.[0] }];
  return shares(asked, outcome).map(({ usedLater, ...decided }, at) => ({
    outcome: { nowMs, ...decided, state },
    source,
    units: at === 0 ? units : (later[at - 1]?.units ?? 0),
    limits,
    windowsMs,
    trial: tried?.[at],
    usedLater,
  }));
}

function triedRuns(
  asked: Asked,
  { trial, nowMs }: QuotaOutcome,
  limits: Limits | undefined,
): readonly TrialOfRun[] | undefined {
  if (trial === undefined || limits === undefined) return undefined;
  const { state } = trial;
  const unitsOf = ({ units, trialUnits = units }: Run) => trialUnits;
  const { later } = asked;
  if (later === undefined) return [{ ...trial, limits, units: unitsOf(asked) }];
  // A request that costs more than a limit is not charged.
  const charged = (run: Run) => {
    const units = unitsOf(run);
    return { ...run, units: costsTooMuch(units, limits, state.grant, nowMs) ? 0 : units };
  };
  return shares({ ...charged(asked), later: later.map(charged) }, trial).map((share, at) => ({
    ...share,
    state,
    limits,
    units: unitsOf(later[at - 1] ?? asked),
  }));
}

function shares(
  asked: Asked,
  outcome: Pick<QuotaOutcome, 'admitted' | 'refused' | 'banned' | 'admittedOf'>,
): readonly Share[] {
  const { admittedOf = [] } = outcome;
  let usedLater = chargedUnits(asked, outcome);
  // In each call to the store, the refused requests come before the banned requests.
  let refusedLeft = outcome.refused;
  // The requests that exceed the concurrency limit are the last requests of the call.
  let overWindowsLeft = outcome.refused + outcome.banned;
  return [asked, ...(asked.later ?? [])].map(({ requests, units }, at) => {
    const admitted = admittedOf[at] ?? 0;
    const overWindows = Math.min(requests - admitted, overWindowsLeft);
    overWindowsLeft -= overWindows;
    const refused = Math.min(overWindows, refusedLeft);
    refusedLeft -= refused;
    usedLater -= admitted * units;
    const crowded = requests - admitted - overWindows;
    return { admitted, refused, banned: overWindows - refused, crowded, usedLater };
  });
}
