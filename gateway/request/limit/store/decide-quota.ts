import { type WindowsMs, windowIndex, windowStartMs } from '../../../shared/calendar-windows.ts';
import {
  type BanPolicy,
  type Grant,
  type Limits,
  type PlanWindow,
  planWindows,
} from '../../../shared/model.ts';

/**
 * Decides the requests of one key at one instant, in order of arrival: first by a ban, then by every window of its limits. An admitted
 * request is charged its units in all windows. A refused request is charged in none. `decide-quota.lua` is the same function inside
 * Redis, and tests compare the two.
 *
 * One decision on n requests equals n decisions on one request. In each run of equal cost the first requests have room, and the other
 * requests have none. The first `refused` requests without room are refused. The rest are `banned`, from the refusal that reached
 * `bans.after`.
 */
export function decideQuota(
  before: Readonly<QuotaState>,
  call: QuotaCall,
  windowsMs: WindowsMs,
  nowMs: number,
): QuotaOutcome {
  const { limits, bans, unsent } = call;
  const state = { ...before, grant: unendedGrant(before.grant, nowMs) };
  openWindows(state, limits, windowsMs, nowMs);
  endStrikes(state, bans, nowMs);
  if (unsent !== undefined) {
    addUnsent(state, unsent, call, nowMs);
    if (unsent.strikes > 0 && state.strikes >= bans.after) ban(state, bans, nowMs);
  }
  const { later } = call;
  const first = decideRun(state, call, call, nowMs);
  if (later === undefined) return { nowMs, ...first, state };
  const runs = [first, ...later.map((run) => decideRun(state, run, call, nowMs))];
  const sum = (kind: keyof DecidedRun) => runs.reduce((total, run) => total + run[kind], 0);
  return {
    nowMs,
    admitted: sum('admitted'),
    refused: sum('refused'),
    banned: sum('banned'),
    admittedOf: runs.map(({ admitted }) => admitted),
    state,
  };
}

type DecidedRun = Pick<QuotaOutcome, 'admitted' | 'refused' | 'banned'>;

function decideRun(
  state: QuotaState,
  { requests, units }: Run,
  { limits, bans }: QuotaCall,
  nowMs: number,
): DecidedRun {
  if (state.bannedUntilMs > nowMs) return { admitted: 0, refused: 0, banned: requests };
  const admitted = fitting(requests, units, roomIn(state, limits, nowMs));
  for (const { window } of limits) state[usedIn[window]] += admitted * units;
  const rest = requests - admitted;
  const refused = rest === 0 ? 0 : strike(state, rest, bans, nowMs);
  return { admitted, refused, banned: rest - refused };
}

/** The number of each window (`windowIndex`) by its name, and the charged units by `…Used`. */
export type WindowCounts = Record<PlanWindow, number> & Record<`${PlanWindow}Used`, number>;

/** The store's state of one key, with the fields of its hash. Instants are epoch ms on the store's clock. */
export interface QuotaState extends WindowCounts {
  /** Refusals that count towards the next ban, and the instant of the first refusal. */
  strikes: number;
  strikesFromMs: number;
  bannedUntilMs: number;
  /** Number of bans in a row. The next ban lasts `forMs` × 2^level. */
  banLevel: number;
  /**
   * The last instant at which a ban was lifted, and at which all counts were reset; 0 for never. These are the generations of bans and
   * counts. Decisions that a process made in an older generation are dropped.
   */
  liftedMs: number;
  resetMs: number;
  /** The grant of an operator. An ended grant may still be stored, but has no effect. */
  grant: Grant | undefined;
}

/** Local decisions of a process on a key that the store does not have yet. */
export interface Unsent extends Readonly<WindowCounts> {
  readonly strikes: number;
  readonly bannedUntilMs: number;
  readonly banLevel: number;
  /** The generation that the process knew. */
  readonly liftedMs: number;
  readonly resetMs: number;
}

/** Requests of equal cost, one after the other. */
export interface Run {
  readonly requests: number;
  /** Cost of each request in whole units. No window refuses a request that costs 0, but a ban does. */
  readonly units: number;
}

/** Requests of one key in order of arrival: a first run, 0 requests to only send `unsent`, and runs of other costs after it. */
export interface Asked extends Run {
  readonly later?: readonly Run[] | undefined;
}

export interface QuotaCall extends Asked {
  readonly keyId: string;
  readonly limits: Limits;
  readonly bans: BanPolicy;
  /** The generation of the key (`Key`). The store decides nothing when the key was changed since. */
  readonly generation?: number | undefined;
  readonly unsent?: Unsent | undefined;
}

export interface QuotaOutcome {
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  readonly admitted: number;
  readonly refused: number;
  readonly banned: number;
  /** The admitted requests of each run. Absent if the call has one run. */
  readonly admittedOf?: readonly number[];
  /** The counts after all requests. */
  readonly state: Readonly<QuotaState>;
}

/** The field with the charged units of a window. */
export const usedIn = Object.fromEntries(planWindows.map((window) => [window, `${window}Used`])) as {
  readonly [Window in PlanWindow]: `${Window}Used`;
};

export const noCounts = Object.freeze(
  Object.fromEntries(planWindows.flatMap((window) => [window, usedIn[window]]).map((name) => [name, 0])),
) as Readonly<WindowCounts>;

export const emptyQuotaState: Readonly<QuotaState> = Object.freeze({
  ...noCounts,
  strikes: 0,
  strikesFromMs: 0,
  bannedUntilMs: 0,
  banLevel: 0,
  liftedMs: 0,
  resetMs: 0,
  grant: undefined,
});

/** Units that have room in every window; negative when a limit fell below the used units. */
export function roomIn(state: Readonly<QuotaState>, limits: Limits, nowMs: number): number {
  let room = Number.POSITIVE_INFINITY;
  for (const { window, max } of limitsAt(nowMs, limits, state.grant)) {
    room = Math.min(room, max - state[usedIn[window]]);
  }
  return room;
}

/** Units that the admitted requests of a call were charged. */
export function chargedUnits({ units, later }: Asked, { admitted, admittedOf }: QuotaOutcome): number {
  if (later === undefined || admittedOf === undefined) return admitted * units;
  return later.reduce(
    (sum, run, at) => sum + run.units * (admittedOf[at + 1] ?? 0),
    units * (admittedOf[0] ?? 0),
  );
}

/** Number of requests, from the first, that have room. */
function fitting(requests: number, units: number, room: number): number {
  if (units === 0) return requests;
  return Math.max(0, Math.min(requests, Math.floor(room / units)));
}

/** The present limits. A running grant replaces the limits of the windows that it names. */
export function limitsAt(nowMs: number, limits: Limits, grant: Grant | undefined): Limits {
  if (grant === undefined || nowMs < (grant.fromMs ?? 0) || nowMs >= grant.untilMs) return limits;
  return limits.map((limit) => grant.limits.find(({ window }) => window === limit.window) ?? limit);
}

/** The grant, unless it has ended. It may begin later. */
export function unendedGrant(grant: Grant | undefined, nowMs: number): Grant | undefined {
  return grant !== undefined && nowMs < grant.untilMs ? grant : undefined;
}

/** The grant as operators and key holders see it. Its begin is only shown while it lies ahead. */
export function toldGrant(grant: Grant | undefined, nowMs: number): Grant | undefined {
  const unended = unendedGrant(grant, nowMs);
  if (unended?.fromMs === undefined || nowMs < unended.fromMs) return unended;
  return { limits: unended.limits, untilMs: unended.untilMs };
}

/** Opens the windows of `nowMs`. The index of a window never decreases, because a failover may bring an older clock. */
export function openWindows(state: QuotaState, limits: Limits, windowsMs: WindowsMs, nowMs: number): void {
  for (const { window } of limits) {
    const index = windowIndex(windowsMs[window], nowMs);
    if (index <= state[window]) continue;
    state[window] = index;
    state[usedIn[window]] = 0;
  }
}

/**
 * Adds the local decisions of a process. Units of an ended window are dropped, and no count decreases. Decisions of an older generation
 * are dropped, so a lifted ban stays lifted. A ban ends at most `maxMs` from now, whatever clock set the ban.
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

/** The instant from which the state has no effect, epoch ms. The store may drop the state then. */
export function expiresMs(state: Readonly<QuotaState>, bans: BanPolicy, windowsMs: WindowsMs): number {
  let atMs = Math.max(
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
 * Lifts the ban and resets the ban level. The key is admitted again if its windows have room. The new generation drops earlier strikes
 * and bans that processes send later.
 */
export function liftBan(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const liftedMs = Math.max(nowMs, before.liftedMs + 1);
  return { ...before, strikes: 0, strikesFromMs: 0, bannedUntilMs: 0, banLevel: 0, liftedMs };
}

/**
 * Resets all counts and bans. A grant stays. The new generation drops earlier decisions that processes send later.
 */
export function resetQuota(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const { liftedMs, grant } = liftBan(before, nowMs);
  return { ...emptyQuotaState, liftedMs, resetMs: liftedMs, grant };
}

/** Replaces the grant of the key, or removes it. Counts stay. */
export function setGrant(before: Readonly<QuotaState>, nowMs: number, grant: Grant | undefined): QuotaState {
  return { ...before, grant: unendedGrant(grant, nowMs) };
}

/** Strikes count within `withinMs` of the first of them. */
function endStrikes(state: QuotaState, bans: BanPolicy, nowMs: number): void {
  if (state.strikes === 0 || nowMs < state.strikesFromMs + bans.withinMs) return;
  state.strikes = 0;
  state.strikesFromMs = 0;
}

/** Counts refusals until one refusal bans. @returns the number of refusals before the ban */
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
