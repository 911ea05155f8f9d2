import { noCounts, usedIn, type WindowCounts } from '../../../shared/calendar-windows.ts';
import { type Limits, planWindows } from '../../../shared/model.ts';

interface BanCounts {
  strikes: number;
  strikesFromMs: number;
  bannedUntilMs: number;
  banLevel: number;
}

/** The counts of a plan, and how the counts of its trial differ (`QuotaState`). */
type Tried = WindowCounts & BanCounts & { trial?: TrialCounts | undefined };

/**
 * The counts of a trial, as differences from the counts of the plan. A request that is decided without the trial, for example by a process
 * with an older configuration, therefore counts in the trial as it counts in the plan.
 */
export interface TrialCounts extends Readonly<WindowCounts & BanCounts> {
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
export function trialStateOf<State extends Tried>(state: State, limits: Limits): State {
  const { trial } = state;
  const ofTrial = { ...state };
  ofTrial.trial = undefined;
  if (trial === undefined || trial.windows !== windowBits(limits)) return ofTrial;
  ofTrial.strikes = trial.strikes;
  ofTrial.strikesFromMs = trial.strikesFromMs;
  ofTrial.bannedUntilMs = trial.bannedUntilMs;
  ofTrial.banLevel = trial.banLevel;
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

/** Parses the field `trial` of a key's hash (`decide-quota.lua`). Returns undefined for an unknown form. */
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
