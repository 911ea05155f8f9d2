import { handBanOf, isBanned } from '../../quota/bans.ts';
import type { QuotaCall, QuotaOutcome } from '../../quota/decide-key.ts';
import { applyGrant, isRunning } from '../../quota/grants.ts';
import type { QuotaState } from '../../quota/hash.ts';
import type { Outcome, Run } from '../../quota/runs.ts';
import { costsTooMuch } from '../../quota/trial.ts';
import type { WindowsMs } from '../../shared/calendar-windows.ts';
import { groupNames, hasGroups, limitsOn } from '../../shared/limits.ts';
import type {
  Decision,
  DecisionSource,
  Limits,
  PlanWindow,
  RateLimitState,
  TrialOutcome,
} from '../../shared/model.ts';
import { noneLater, rateLimitState, roomAtMs, type UsedLater } from './rate-limit-state.ts';

/** Returns the decision on the request at `index` of a run, with the remaining units or the retry time of this request. */
export function decisionAt(index: number, run: DecidedRun): Exclude<Decision, { kind: 'unavailable' }> {
  const decision = decisionOfPlan(index, run);
  const { trial } = run;
  return trial === undefined ? decision : { ...decision, trial: trialOutcomeAt(index, trial) };
}

function decisionOfPlan(
  index: number,
  {
    source,
    nowMs,
    windowsMs,
    limits,
    units,
    admitted,
    refused,
    banned,
    crowded,
    state,
    usedLater,
  }: DecidedRun,
): Exclude<Decision, { kind: 'unavailable' }> {
  if (index < admitted) {
    const later = plusLater(usedLater, limits, (admitted - 1 - index) * units);
    const rateLimit = rateLimitState(state, { limits, windowsMs, nowMs, usedLater: later });
    const decision = { kind: 'admitted', units, rateLimit, source } as const;
    const exemptions = isRunning(state.grant, nowMs) ? state.grant.exemptions : undefined;
    return exemptions === undefined ? decision : { ...decision, exemptions };
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
    rateLimit: { ...after, ban: { untilMs, retryAtMs, ...byHandIn(state) } },
    source,
    retryAtMs,
  };
}

/** Of a banned key. */
export function byHandIn(
  state: Readonly<QuotaState>,
): Pick<NonNullable<RateLimitState['ban']>, 'byHand'> | undefined {
  const made = handBanOf(state);
  return made && { byHand: { reason: made.reason } };
}

function trialOutcomeAt(
  index: number,
  { nowMs, windowsMs, limits, units, admitted, refused, banned, state, usedLater }: DecidedRun,
): TrialOutcome {
  if (index < admitted) {
    if (!costsTooMuch(units, limits, state.grant, nowMs)) return 'admitted';
    // The request would get 403, and the message would name the smallest limit.
    const inForce = applyGrant(limits, state.grant, nowMs);
    const { window, group } = inForce.reduce((one, other) => (other.max < one.max ? other : one));
    return group === undefined ? window : 'group';
  }
  if (index < admitted + refused) {
    const { name, group } = rateLimitState(state, { limits, windowsMs, nowMs, usedLater }).inForce;
    // The windows of a key have no address bucket among them.
    return group === undefined ? (name as PlanWindow) : 'group';
  }
  return index < admitted + refused + banned ? 'banned' : 'concurrent';
}

/** The time after which a client may repeat a request that the concurrency limit refused. */
const crowdedRetryMs = 1_000;

/** The decisions on the requests of one run, by the plan or by the trial. */
export interface DecidedRun extends Terms, Omit<Readonly<Outcome>, 'admittedOf'> {
  readonly units: number;
  /** The counts after all requests of the call. */
  readonly state: Readonly<QuotaState>;
  /** Charged units in the counts that belong to later runs. */
  readonly usedLater: UsedLater;
  /** Absent without a trial, and in the trial. */
  readonly trial?: DecidedRun | undefined;
}

interface Terms {
  readonly source: DecisionSource;
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  readonly windowsMs: WindowsMs;
  /** The limits that the requests are charged in. */
  readonly limits: Limits;
}

/** Divides the outcome of a call among its runs, in the order of the runs. */
export function decidedRuns(
  { runs, limits, trial }: Pick<QuotaCall, 'runs' | 'limits' | 'trial'>,
  outcome: QuotaOutcome,
  { source, windowsMs }: Omit<Terms, 'nowMs' | 'limits'>,
): readonly DecidedRun[] {
  const { nowMs } = outcome;
  const ofPlan = divide(runs, outcome, { source, nowMs, windowsMs, limits });
  if (trial === undefined || outcome.trial === undefined) return ofPlan;
  const { grant } = outcome.trial.state;
  const costs = runs.map(({ units, trialUnits = units, ...run }) => ({ ...run, units: trialUnits }));
  // A request that costs more than a limit is not charged.
  const isFree = ({ units, limits: charged }: DecidedRun) => costsTooMuch(units, charged, grant, nowMs);
  const ofTrial = divide(costs, outcome.trial, { source, nowMs, windowsMs, limits: trial }, isFree);
  return ofPlan.map((run, at) => ({ ...run, trial: ofTrial[at] }));
}

function divide(
  runs: readonly Run[],
  { admittedOf, refused, banned, state }: Omit<QuotaOutcome, 'nowMs'>,
  { source, nowMs, windowsMs, limits }: Terms,
  isFree?: (run: DecidedRun) => boolean,
): readonly DecidedRun[] {
  // In each call to the store, the refused requests come before the banned requests.
  let refusedLeft = refused;
  // The requests that exceed the concurrency limit are the last requests of the call.
  let overWindowsLeft = refused + banned;
  const decided = runs.map(({ requests, units, operation }, at) => {
    const admitted = admittedOf[at] ?? 0;
    const overWindows = Math.min(requests - admitted, overWindowsLeft);
    const ofRefused = Math.min(overWindows, refusedLeft);
    overWindowsLeft -= overWindows;
    refusedLeft -= ofRefused;
    return {
      source,
      nowMs,
      windowsMs,
      limits: limitsOn(limits, operation),
      units,
      admitted,
      refused: ofRefused,
      banned: overWindows - ofRefused,
      crowded: requests - admitted - overWindows,
      state,
      usedLater: noneLater,
    };
  });
  decided.reduceRight((usedLater, run) => {
    run.usedLater = usedLater;
    return isFree?.(run) ? usedLater : plusLater(usedLater, run.limits, run.units * run.admitted);
  }, noneLater);
  return decided;
}

/** Adds units that later requests have charged in the windows of `limits`. */
function plusLater(later: UsedLater, limits: Limits, units: number): UsedLater {
  if (units === 0) return later;
  const all = later.all + units;
  if (!hasGroups(limits)) return { all, groups: later.groups };
  const added = groupNames(limits).map((name) => [name, (later.groups.get(name) ?? 0) + units] as const);
  return { all, groups: new Map([...later.groups, ...added]) };
}
