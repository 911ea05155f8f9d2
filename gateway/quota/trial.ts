import { noCounts, usedIn } from '../shared/calendar-windows.ts';
import { type BanPolicy, type Grant, type Limits, planWindows } from '../shared/model.ts';
import { banOf, isBanned, type SideCounts } from './bans.ts';
import { applyGrant } from './grants.ts';
import { type Asked, decideRun, newOutcome, type Outcome, type Run } from './runs.ts';
import { charge, roomIn } from './windows.ts';

/** The counts of a plan, and how the counts of its trial differ (`QuotaState`). */
type Tried = SideCounts & { trial?: TrialCounts | undefined };

/**
 * The counts of a trial, as differences from the counts of the plan. A request that is decided without the trial, for example by a process
 * with an older configuration, therefore counts in the trial as it counts in the plan.
 */
export interface TrialCounts extends Readonly<SideCounts> {
  /** The windows of the plan and of the trial, as bits (`windowBits`). Counts of other windows are ignored, so the trial begins again. */
  readonly windows: number;
}

/** The limits of a plan and of its trial. Both lists have the same windows. The limit of a window that is not limited is Infinity. */
export interface TriedLimits {
  readonly limits: Limits;
  readonly trial?: Limits | undefined;
}

const aligned = new WeakMap<Limits, { readonly of: Limits; readonly tried: TriedLimits }>();

/**
 * Adds the windows to each list that only the other list has. The plan counts a window that only the trial limits, so that the trial can
 * store the difference. The result for the same lists is the same object.
 */
export function alignLimits(limits: Limits, trial: Limits | undefined): TriedLimits {
  if (trial === undefined) return { limits };
  const known = aligned.get(trial);
  if (known?.of === limits) return known.tried;
  const windows = planWindows.filter((window) => [...limits, ...trial].some((one) => one.window === window));
  const inAll = (of: Limits): Limits =>
    windows.map(
      (window) => of.find((one) => one.window === window) ?? { window, max: Number.POSITIVE_INFINITY },
    );
  const tried = { limits: inAll(limits), trial: inAll(trial) };
  aligned.set(trial, { of: limits, tried });
  return tried;
}

/** The windows of a list as bits: 1 is the second, 2 is the minute, and so on. */
export function windowBits(limits: Limits): number {
  return limits.reduce((bits, { window }) => bits | (1 << planWindows.indexOf(window)), 0);
}

/** Returns the counts of the trial. Until the trial differs from the plan for the first time, these are the counts of the plan. */
export function readTrial<State extends Tried>(state: State, limits: Limits): State {
  const { trial } = state;
  const ofTrial = { ...state };
  ofTrial.trial = undefined;
  if (trial === undefined || trial.windows !== windowBits(limits)) return ofTrial;
  Object.assign(ofTrial, banOf(trial));
  for (const { window } of limits) {
    if (trial[window] !== state[window]) continue;
    const used = usedIn[window];
    ofTrial[used] = Math.max(0, state[used] + trial[used]);
  }
  return ofTrial;
}

/** Returns how the counts of the trial differ from the counts of the plan; undefined if they are equal. */
export function differencesOf(
  state: Readonly<Tried>,
  ofTrial: Readonly<Tried>,
  limits: Limits,
): TrialCounts | undefined {
  const { strikes, strikesFromMs, bannedUntilMs, banLevel } = ofTrial;
  const counts = {
    ...noCounts,
    windows: windowBits(limits),
    strikes,
    strikesFromMs,
    bannedUntilMs,
    banLevel,
  };
  let differs =
    strikes !== state.strikes ||
    strikesFromMs !== state.strikesFromMs ||
    bannedUntilMs !== state.bannedUntilMs ||
    banLevel !== state.banLevel;
  for (const { window } of limits) {
    const used = usedIn[window];
    counts[window] = state[window];
    counts[used] = ofTrial[used] - state[used];
    if (counts[used] !== 0) differs = true;
  }
  return differs ? counts : undefined;
}

/** Parses the field `trial` of a key's hash (`trial.lua`). Returns undefined for an unknown form. */
export function unpackTrial(packed: Buffer): TrialCounts | undefined {
  const bits = packed.at(22) ?? 0;
  const windows = planWindows.filter((_, index) => bits & (1 << index));
  if (packed.length !== 23 + 13 * windows.length) return undefined;
  const counts = { ...noCounts };
  for (const [index, window] of windows.entries()) {
    const at = 23 + 13 * index;
    counts[window] = packed.readUIntLE(at, 5);
    counts[usedIn[window]] = packed.readDoubleLE(at + 5);
  }
  return {
    ...counts,
    windows: bits,
    strikes: packed.readUInt32LE(0),
    strikesFromMs: packed.readDoubleLE(4),
    bannedUntilMs: packed.readDoubleLE(12),
    banLevel: packed.readUInt16LE(20),
  };
}

/**
 * Returns the largest cost of a request that the windows of a trial decide. A request that costs more would get 403, and would not be
 * charged (`request/path/decide-units.ts`). If only a grant makes a limit lower than the cost, a window would refuse the request.
 */
export function mostUnits(trial: Limits, grant: Grant | undefined, nowMs: number): number {
  const lowest = (limits: Limits) => Math.min(...limits.map(({ max }) => max));
  return Math.max(lowest(trial), lowest(applyGrant(trial, grant, nowMs)));
}

/** Returns the requests of a run as the trial charges them. @param most see `mostUnits` */
export function runInTrial({ requests, units, trialUnits = units }: Run, most: number): Run {
  return { requests, units: trialUnits > most ? 0 : trialUnits };
}

/** Returns the requests of a call as the trial charges them. */
export function trialRuns(asked: Asked, trial: Limits, grant: Grant | undefined, nowMs: number): Asked {
  const most = mostUnits(trial, grant, nowMs);
  return {
    ...runInTrial(asked, most),
    ...(asked.later && { later: asked.later.map((run) => runInTrial(run, most)) }),
  };
}

/**
 * Decides the runs with the limits of the trial. The concurrency limit refuses the same requests as for the plan, unless the trial has banned
 * the key.
 */
export function decideTrial(
  counts: SideCounts,
  trial: Limits,
  runs: readonly Run[],
  {
    bans,
    grant,
    slots,
    nowMs,
  }: {
    readonly bans: BanPolicy;
    readonly grant: Grant | undefined;
    readonly slots: number;
    readonly nowMs: number;
  },
  ofPlan: Outcome,
): Outcome {
  const outcome = newOutcome();
  const most = mostUnits(trial, grant, nowMs);
  const room = roomIn(counts, applyGrant(trial, grant, nowMs));
  let places = slots;
  for (const [n, run] of runs.entries()) {
    const { requests, units } = runInTrial(run, most);
    const left = places - (ofPlan.admittedOf[n] ?? 0);
    const crowdedOut = left > 0 ? 0 : requests - Math.min(requests, Math.max(0, places));
    const rules = { bans, room, slots: Number.POSITIVE_INFINITY, nowMs };
    outcome.admittedOf.push(decideRun(counts, { requests: requests - crowdedOut, units }, rules, outcome));
    if (isBanned(counts, nowMs)) outcome.banned += crowdedOut;
    places = left;
  }
  charge(counts, trial, outcome.charged);
  return outcome;
}
