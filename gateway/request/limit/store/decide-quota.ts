import {
  noCounts,
  usedIn,
  type WindowCounts,
  type WindowsMs,
  windowIndex,
  windowStartMs,
} from '../../../shared/calendar-windows.ts';
import { type BanPolicy, type Grant, type Limits, planWindows } from '../../../shared/model.ts';
import type { Concurrency } from './leases.ts';
import { type Reached, type Told, untoldThresholds } from './thresholds.ts';
import { differencesOf, type TrialCounts, trialStateOf } from './trial-counts.ts';

/**
 * Decides the requests of one key, first with the limits of its plan, and then with the limits of the trial. The trial has counts and bans
 * of its own, and does not change the outcome of the plan. `decide-quota.lua` is the same function inside Redis, and tests compare the two
 * functions.
 */
export function decideQuota(
  before: Readonly<QuotaState>,
  call: QuotaCall,
  windowsMs: WindowsMs,
  nowMs: number,
  slots = Number.POSITIVE_INFINITY,
): QuotaOutcome {
  const outcome = decideWithLimits(before, call, windowsMs, nowMs, slots);
  if (call.trial === undefined) return outcome;
  const trial = decideTrial(before, { ...call, trial: call.trial, slots, outcome }, windowsMs, nowMs);
  const { state } = outcome;
  return { ...outcome, state: { ...state, trial: differencesOf(state, trial.state, call.limits) }, trial };
}

/**
 * Decides the requests of one key in order of arrival, all with the same timestamp. A ban is checked first, then every limited window. An
 * admitted request is charged its units in all windows. A refused request is charged in no window.
 *
 * A single decision on n requests has the same result as n decisions on one request each. All requests of a run have the same cost. Once
 * the windows have no room for one request of a run, they have no room for the rest of the run. A request is refused if a window has no
 * room for it. When the number of refusals reaches `bans.after`, the key is banned. This refusal and all later requests count as `banned`.
 *
 * Thresholds are compared with the counts after all requests, also if no request was admitted, because an edit may have lowered a limit. The
 * decision does not mark thresholds as reported. Each decision returns them until `confirmTold` is called.
 *
 * @param slots the number of requests that may begin now under the concurrency limit of the key. The concurrency limit is checked before
 *   the windows. A request that exceeds the concurrency limit is not counted as a strike.
 */
function decideWithLimits(
  before: Readonly<QuotaState>,
  call: QuotaCall,
  windowsMs: WindowsMs,
  nowMs: number,
  slots: number,
): QuotaOutcome {
  const state = { ...before, grant: unendedGrant(before.grant, nowMs) };
  bringUpToDate(state, call, windowsMs, nowMs);
  const decided = decideRuns(state, call, nowMs, slots);
  const reached = reachedIn(state, call, nowMs);
  return { nowMs, ...decided, ...(reached && { reached }), state };
}

/** Starts the current windows, ends expired strikes, and adds the decisions that a process made without the store. */
function bringUpToDate(
  state: QuotaState,
  terms: Pick<QuotaCall, 'limits' | 'bans' | 'unsent'>,
  windowsMs: WindowsMs,
  nowMs: number,
): void {
  const { limits, bans, unsent } = terms;
  openWindows(state, limits, windowsMs, nowMs);
  endStrikes(state, bans, nowMs);
  if (unsent === undefined) return;
  addUnsent(state, unsent, terms, nowMs);
  if (unsent.strikes > 0 && state.strikes >= bans.after) ban(state, bans, nowMs);
}

/**
 * Decides the requests with the limits of the trial. The concurrency limit refuses the same requests as for the plan, unless the trial has
 * banned the key.
 */
function decideTrial(
  before: Readonly<QuotaState>,
  call: QuotaCall & { readonly trial: Limits; readonly slots: number; readonly outcome: QuotaOutcome },
  windowsMs: WindowsMs,
  nowMs: number,
): TrialDecided {
  const { trial: limits, bans, outcome } = call;
  const state = trialStateOf({ ...before, grant: unendedGrant(before.grant, nowMs) }, limits);
  bringUpToDate(state, { limits, bans, unsent: call.unsent?.trial ?? call.unsent }, windowsMs, nowMs);
  const asked = trialRuns(call, limits, state.grant, nowMs);
  let places = call.slots;
  const runs = [asked, ...(asked.later ?? [])].map(({ requests, units }, at) => {
    const left = places - (outcome.admittedOf?.[at] ?? outcome.admitted);
    const crowdedOut = left > 0 ? 0 : requests - Math.min(requests, Math.max(0, places));
    places = left;
    const run = { requests: requests - crowdedOut, units };
    const decided = decideRun(state, run, { limits, bans }, nowMs, Number.POSITIVE_INFINITY);
    return state.bannedUntilMs > nowMs ? { ...decided, banned: decided.banned + crowdedOut } : decided;
  });
  const { admittedOf, ...totals } = totalsOf(runs);
  return { ...totals, ...(asked.later !== undefined && { admittedOf }), state };
}

/**
 * Returns the largest cost of a request that the windows of a trial decide. A request that costs more would get 403, and would not be
 * charged (`request/path/decide-units.ts`). If only a grant makes a limit lower than the cost, a window would refuse the request.
 */
export function mostUnits(trial: Limits, grant: Grant | undefined, nowMs: number): number {
  const lowest = (limits: Limits) => Math.min(...limits.map(({ max }) => max));
  return Math.max(lowest(trial), lowest(limitsAt(nowMs, trial, grant)));
}

/** Returns the requests of a call as the trial charges them. */
export function trialRuns(asked: Asked, trial: Limits, grant: Grant | undefined, nowMs: number): Asked {
  const most = mostUnits(trial, grant, nowMs);
  const tried = ({ requests, units, trialUnits = units }: Run) => ({
    requests,
    units: trialUnits > most ? 0 : trialUnits,
  });
  return { ...tried(asked), ...(asked.later && { later: asked.later.map(tried) }) };
}

function decideRuns(state: QuotaState, call: QuotaCall, nowMs: number, slots: number): DecidedRuns {
  const first = decideRun(state, call, call, nowMs, slots);
  if (call.later === undefined) return first;
  const runs = [first];
  for (const run of call.later) {
    runs.push(decideRun(state, run, call, nowMs, slots - sumOf(runs, 'admitted')));
  }
  return { ...totalsOf(runs), ...(first.crowded !== undefined && { crowded: sumOf(runs, 'crowded') }) };
}

/** Returns the thresholds that the counts have reached and that are not reported. */
export function reachedIn(
  state: Readonly<QuotaState>,
  { limits, thresholds }: Pick<QuotaCall, 'limits' | 'thresholds'>,
  nowMs: number,
): readonly Reached[] | undefined {
  if (thresholds === undefined || thresholds.length === 0) return undefined;
  return untoldThresholds(state, limitsAt(nowMs, limits, state.grant), thresholds);
}

type DecidedRuns = DecidedRun & Pick<QuotaOutcome, 'admittedOf'>;
type DecidedRun = Pick<QuotaOutcome, 'admitted' | 'refused' | 'banned' | 'crowded'>;

function totalsOf(runs: readonly DecidedRun[]) {
  return {
    admitted: sumOf(runs, 'admitted'),
    refused: sumOf(runs, 'refused'),
    banned: sumOf(runs, 'banned'),
    admittedOf: runs.map(({ admitted }) => admitted),
  };
}

function sumOf(runs: readonly DecidedRun[], kind: keyof DecidedRun): number {
  return runs.reduce((total, run) => total + (run[kind] ?? 0), 0);
}

function decideRun(
  state: QuotaState,
  { requests, units }: Run,
  { limits, bans }: Pick<QuotaCall, 'limits' | 'bans'>,
  nowMs: number,
  slots: number,
): DecidedRun {
  const limited = slots === Number.POSITIVE_INFINITY ? undefined : { crowded: 0 };
  if (state.bannedUntilMs > nowMs) return { admitted: 0, refused: 0, banned: requests, ...limited };
  const admitted = Math.min(fitting(requests, units, roomIn(state, limits, nowMs)), Math.max(0, slots));
  for (const { window } of limits) state[usedIn[window]] += admitted * units;
  const rest = requests - admitted;
  if (rest > 0 && admitted >= slots) return { admitted, refused: 0, banned: 0, crowded: rest };
  const refused = rest === 0 ? 0 : strike(state, rest, bans, nowMs);
  return { admitted, refused, banned: rest - refused, ...limited };
}

/** The store's state of one key. The members are the fields of the key's Redis hash. Timestamps are epoch ms on the store's clock. */
export interface QuotaState extends WindowCounts {
  /** The number of refusals that count towards the next ban. `strikesFromMs` is the time of the first of these refusals. */
  strikes: number;
  strikesFromMs: number;
  bannedUntilMs: number;
  /** The number of bans in a row. The next ban lasts `forMs` × 2^`banLevel`, but at most `maxMs`. */
  banLevel: number;
  /**
   * `liftedMs` is the time at which a ban was last lifted, and `resetMs` the time at which all counts were last reset; 0 for never.
   * These times identify generations of bans and counts. Local decisions from an older generation are dropped.
   */
  liftedMs: number;
  resetMs: number;
  /** Temporary limits that an operator has set. An ended grant may still be stored, but has no effect. */
  grant: Grant | undefined;
  /** The reported thresholds. In the store's reply, the member is undefined while no window has reached the lowest threshold. */
  told: Told | undefined;
  /** The counts of the trial; undefined while they are equal to the counts of the plan. */
  trial?: TrialCounts | undefined;
}

/** A process's decisions on a key that were made without the store and have not been sent to the store. */
export interface Unsent extends Readonly<WindowCounts> {
  readonly strikes: number;
  readonly bannedUntilMs: number;
  readonly banLevel: number;
  /** The generation in the last reply that the process received. */
  readonly liftedMs: number;
  readonly resetMs: number;
  /** The decisions of the trial. Without this member, the trial decided as the plan. */
  readonly trial?: Unsent | undefined;
}

/** Consecutive requests of equal cost. */
export interface Run {
  readonly requests: number;
  /** The cost of each request in whole units. A request that costs 0 is refused only during a ban. */
  readonly units: number;
  /** The cost of each request in the trial, if it differs from `units` (`request/path/decide-units.ts`). */
  readonly trialUnits?: number | undefined;
}

/**
 * Requests of one key in order of arrival. The object itself is the first run. `later` contains the other runs. A call without requests
 * only sends `unsent`.
 */
export interface Asked extends Run {
  readonly later?: readonly Run[] | undefined;
}

export interface QuotaCall extends Asked {
  readonly keyId: string;
  readonly limits: Limits;
  /** The limits of the trial, with the same windows as `limits` (`alignLimits`). */
  readonly trial?: Limits | undefined;
  readonly bans: BanPolicy;
  /** The percentages of a limit that are reported when the key reaches them: whole numbers, ascending. Absent or empty: none. */
  readonly thresholds?: readonly number[] | undefined;
  /**
   * The `generation` of the `Key`. The store does not decide the requests if the key has a newer generation. For a key of the configuration,
   * the negative time of the last leaked secret that the process knows.
   */
  readonly generation?: number | undefined;
  readonly unsent?: Unsent | undefined;
  /** Undefined for a key without a concurrency limit. */
  readonly concurrency?: Concurrency | undefined;
}

export interface QuotaOutcome {
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  readonly admitted: number;
  readonly refused: number;
  readonly banned: number;
  /**
   * The number of requests that exceeded the concurrency limit. These are the last requests of the call. These requests are not charged and
   * do not count as strikes. Absent without a concurrency limit.
   */
  readonly crowded?: number;
  /** The number of admitted requests of each run. Absent if the call has one run. */
  readonly admittedOf?: readonly number[];
  /** The thresholds that the key has reached and that are not reported, the shortest window first. Absent if there are none. */
  readonly reached?: readonly Reached[];
  /** The counts after all requests of the call. */
  readonly state: Readonly<QuotaState>;
  /** The outcome of the trial. Absent if the call has no trial. */
  readonly trial?: TrialDecided;
}

/** The outcome of the trial for the requests of a call. The remaining requests exceeded the concurrency limit. */
export interface TrialDecided extends Pick<QuotaOutcome, 'admitted' | 'refused' | 'banned' | 'admittedOf'> {
  /** The counts of the trial after all requests of the call. */
  readonly state: Readonly<QuotaState>;
}

export const emptyQuotaState: Readonly<QuotaState> = Object.freeze({
  ...noCounts,
  strikes: 0,
  strikesFromMs: 0,
  bannedUntilMs: 0,
  banLevel: 0,
  liftedMs: 0,
  resetMs: 0,
  grant: undefined,
  told: undefined,
});

/** Returns the number of units that every window still has room for; negative if a limit was lowered below the used units. */
export function roomIn(state: Readonly<QuotaState>, limits: Limits, nowMs: number): number {
  let room = Number.POSITIVE_INFINITY;
  for (const { window, max } of limitsAt(nowMs, limits, state.grant)) {
    room = Math.min(room, max - state[usedIn[window]]);
  }
  return room;
}

/** Returns the units that were charged for the admitted requests of a call. */
export function chargedUnits(
  { units, later }: Asked,
  { admitted, admittedOf }: Pick<QuotaOutcome, 'admitted' | 'admittedOf'>,
): number {
  if (later === undefined || admittedOf === undefined) return admitted * units;
  return later.reduce(
    (sum, run, at) => sum + run.units * (admittedOf[at + 1] ?? 0),
    units * (admittedOf[0] ?? 0),
  );
}

/** Returns the number of requests for which the windows have room. */
function fitting(requests: number, units: number, room: number): number {
  if (units === 0) return requests;
  return Math.max(0, Math.min(requests, Math.floor(room / units)));
}

/** Returns the limits at `nowMs`. A running grant replaces the limits of its windows, except limits of Infinity. */
export function limitsAt(nowMs: number, limits: Limits, grant: Grant | undefined): Limits {
  if (!isRunning(grant, nowMs)) return limits;
  return limits.map((limit) =>
    limit.max === Number.POSITIVE_INFINITY
      ? limit
      : (grant.limits.find(({ window }) => window === limit.window) ?? limit),
  );
}

/** Whether a grant has begun and has not ended. */
export function isRunning(grant: Grant | undefined, nowMs: number): grant is Grant {
  return grant !== undefined && nowMs >= (grant.fromMs ?? 0) && nowMs < grant.untilMs;
}

/** Returns a running or future grant; undefined for an ended grant. */
export function unendedGrant(grant: Grant | undefined, nowMs: number): Grant | undefined {
  return grant !== undefined && nowMs < grant.untilMs ? grant : undefined;
}

/** Returns the grant as operators and key holders see it. A grant that has started is returned without `fromMs`. */
export function toldGrant(grant: Grant | undefined, nowMs: number): Grant | undefined {
  const unended = unendedGrant(grant, nowMs);
  if (unended?.fromMs === undefined || nowMs < unended.fromMs) return unended;
  const { fromMs: _, ...begun } = unended;
  return begun;
}

/** Starts the windows that contain `nowMs`. The number of a window never decreases, even if the clock of a new master is behind. */
export function openWindows(state: QuotaState, limits: Limits, windowsMs: WindowsMs, nowMs: number): void {
  for (const { window } of limits) {
    const index = windowIndex(windowsMs[window], nowMs);
    if (index <= state[window]) continue;
    state[window] = index;
    state[usedIn[window]] = 0;
  }
}

/**
 * Adds the local decisions of a process to the state. Units of an ended window are dropped. Counts never decrease. Decisions of an older
 * generation are dropped, so a lifted ban stays lifted. The added ban ends at most `maxMs` from now, even if the clock of the process was
 * wrong.
 */
export function addUnsent(
  state: QuotaState,
  unsent: Unsent,
  { limits, bans }: { readonly limits: Limits; readonly bans: BanPolicy },
  nowMs: number,
): void {
  if (unsent.resetMs === state.resetMs) {
    for (const { window } of limits) {
      if (unsent[window] === state[window]) state[usedIn[window]] += unsent[usedIn[window]];
    }
  }
  if (unsent.liftedMs !== state.liftedMs) return;
  if (unsent.bannedUntilMs > state.bannedUntilMs) {
    state.bannedUntilMs = Math.max(state.bannedUntilMs, Math.min(unsent.bannedUntilMs, nowMs + bans.maxMs));
    state.banLevel = Math.max(state.banLevel, unsent.banLevel);
  }
  // Refusals during a ban are not counted.
  if (unsent.strikes === 0 || state.bannedUntilMs > nowMs) return;
  if (state.strikes === 0) state.strikesFromMs = nowMs;
  state.strikes += unsent.strikes;
}

/** Returns the time from which the state has no effect, epoch ms. The store may then delete the state. */
export function expiresMs(state: Readonly<QuotaState>, bans: BanPolicy, windowsMs: WindowsMs): number {
  const { trial } = state;
  let atMs = Math.max(
    trial === undefined ? 0 : expiresMs({ ...emptyQuotaState, ...banCounts(trial) }, bans, windowsMs),
    state.strikes === 0 ? 0 : state.strikesFromMs + bans.withinMs,
    state.bannedUntilMs === 0 ? 0 : state.bannedUntilMs + bans.maxMs,
    state.liftedMs === 0 ? 0 : state.liftedMs + bans.maxMs,
    state.grant?.untilMs ?? 0,
  );
  for (const window of planWindows) {
    if (state[window] > 0) atMs = Math.max(atMs, windowStartMs(windowsMs[window], state[window] + 1));
  }
  return atMs;
}

/**
 * Lifts the ban and resets the ban level, also in the trial. Requests are admitted again if the windows have room. The new generation makes
 * the store ignore older strikes and bans, even if processes send them later.
 */
export function liftBan(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const liftedMs = Math.max(nowMs, before.liftedMs + 1);
  const { trial } = before;
  return { ...before, ...noBan, ...(trial && { trial: { ...trial, ...noBan } }), liftedMs };
}

const noBan = { strikes: 0, strikesFromMs: 0, bannedUntilMs: 0, banLevel: 0 };

function banCounts({ strikes, strikesFromMs, bannedUntilMs, banLevel }: TrialCounts): typeof noBan {
  return { strikes, strikesFromMs, bannedUntilMs, banLevel };
}

/**
 * Resets all counts, bans and reported thresholds, but not a grant. The new generation makes the store ignore older decisions, even if
 * processes send them later.
 */
export function resetQuota(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const { liftedMs, grant } = liftBan(before, nowMs);
  return { ...emptyQuotaState, liftedMs, resetMs: liftedMs, grant };
}

/** Replaces or removes the grant of the key. Does not change the counts. */
export function setGrant(before: Readonly<QuotaState>, nowMs: number, grant: Grant | undefined): QuotaState {
  return { ...before, grant: unendedGrant(grant, nowMs) };
}

/** Resets the strikes when `withinMs` has passed since the first strike. */
export function endStrikes(state: QuotaState, bans: BanPolicy, nowMs: number): void {
  if (state.strikes === 0 || nowMs < state.strikesFromMs + bans.withinMs) return;
  state.strikes = 0;
  state.strikesFromMs = 0;
}

/** Counts refusals, and bans the key when there are too many. @returns the number of refusals before the ban */
function strike(state: QuotaState, refusals: number, bans: BanPolicy, nowMs: number): number {
  const plain = Math.min(refusals, Math.max(0, bans.after - 1 - state.strikes));
  if (refusals > plain) {
    ban(state, bans, nowMs);
    return plain;
  }
  if (state.strikes === 0) state.strikesFromMs = nowMs;
  state.strikes += plain;
  return plain;
}

function ban(state: QuotaState, bans: BanPolicy, nowMs: number): void {
  if (nowMs >= state.bannedUntilMs + bans.maxMs) state.banLevel = 0;
  state.bannedUntilMs = nowMs + Math.min(bans.forMs * 2 ** state.banLevel, bans.maxMs);
  state.banLevel += 1;
  state.strikes = 0;
  state.strikesFromMs = 0;
}
