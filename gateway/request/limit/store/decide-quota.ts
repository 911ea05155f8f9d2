import { type WindowsMs, windowIndex, windowStartMs } from '../../../shared/calendar-windows.ts';
import type { BanPolicy, Grant, Limits, PlanWindow } from '../../../shared/model.ts';

/**
 * Decides `requests` requests of one key, of `units` units each, at one instant: ban first, then every window of its limits.
 * An admitted request is charged its units in all windows, a refused one in none. `decide-quota.lua` is the same function
 * inside Redis; the tests hold the two against each other.
 *
 * Deciding n at once equals deciding n times one: the first `admitted` requests find room, the next `refused` ones
 * do not, and the rest are `banned`, beginning with the refusal that reached `bans.after`.
 */
export function decideQuota(
  before: Readonly<QuotaState>,
  call: QuotaCall,
  windowsMs: WindowsMs,
  nowMs: number,
): QuotaOutcome {
  const { limits, bans, requests, units, unsent } = call;
  const state = { ...before, grant: unendedGrant(before.grant, nowMs) };
  openWindows(state, limits, windowsMs, nowMs);
  endStrikes(state, bans, nowMs);
  if (unsent !== undefined) {
    addUnsent(state, unsent, call, nowMs);
    if (unsent.strikes > 0 && state.strikes >= bans.after) ban(state, bans, nowMs);
  }
  if (state.bannedUntilMs > nowMs) return { nowMs, admitted: 0, refused: 0, banned: requests, state };

  const admitted = fitting(requests, units, roomIn(state, limits, nowMs));
  for (const { window } of limits) state[usedIn[window]] += admitted * units;
  const rest = requests - admitted;
  const refused = rest === 0 ? 0 : strike(state, rest, bans, nowMs);
  return { nowMs, admitted, refused, banned: rest - refused, state };
}

/** By the window's name its number (`windowIndex`), and by `…Used` the units charged in it. */
export type WindowCounts = Record<PlanWindow, number> & Record<`${PlanWindow}Used`, number>;

/** What the store holds of one key: the fields of its hash. Times are epoch ms on the store's clock. */
export interface QuotaState extends WindowCounts {
  /** Refusals counted towards the next ban, and when the first of them was. */
  strikes: number;
  strikesFromMs: number;
  bannedUntilMs: number;
  /** How many bans led here: the next one lasts `forMs` × 2^level. */
  banLevel: number;
  /**
   * When a ban was lifted last, and when all counts were reset last; 0: never. They are the generation of bans and of
   * counts: what a process collected before is of an older one, and is dropped when it arrives.
   */
  liftedMs: number;
  resetMs: number;
  /** What an operator gave the key. One that has ended counts no more, and may still be there. */
  grant: Grant | undefined;
}

/** What a process decided on its own for a key and has not told the store yet. */
export interface Unsent extends Readonly<WindowCounts> {
  readonly strikes: number;
  readonly bannedUntilMs: number;
  readonly banLevel: number;
  /** The generation that the process knew of. */
  readonly liftedMs: number;
  readonly resetMs: number;
}

export interface QuotaCall {
  readonly keyId: string;
  readonly limits: Limits;
  readonly bans: BanPolicy;
  /** How many requests to decide; 0 only hands over `unsent`. */
  readonly requests: number;
  /** What each of them costs: a whole number. Requests that cost nothing are refused by no window, and by a ban. */
  readonly units: number;
  /** That of the key (`Key`): the store decides nothing where the key was changed since. */
  readonly generation?: number | undefined;
  readonly unsent?: Unsent | undefined;
}

export interface QuotaOutcome {
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  readonly admitted: number;
  readonly refused: number;
  readonly banned: number;
  /** The counts after all of them. */
  readonly state: Readonly<QuotaState>;
}

/** The field of a window's use. */
export const usedIn = {
  second: 'secondUsed',
  minute: 'minuteUsed',
  hour: 'hourUsed',
  day: 'dayUsed',
  month: 'monthUsed',
} as const satisfies Record<PlanWindow, keyof WindowCounts>;

export const noCounts: Readonly<WindowCounts> = Object.freeze({
  second: 0,
  secondUsed: 0,
  minute: 0,
  minuteUsed: 0,
  hour: 0,
  hourUsed: 0,
  day: 0,
  dayUsed: 0,
  month: 0,
  monthUsed: 0,
});

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

/** How many units every window still has room for; negative where a limit fell below what was used. */
export function roomIn(state: Readonly<QuotaState>, limits: Limits, nowMs: number): number {
  let room = Number.POSITIVE_INFINITY;
  for (const { window, max } of limitsAt(nowMs, limits, state.grant)) {
    room = Math.min(room, max - state[usedIn[window]]);
  }
  return room;
}

/** How many of the requests find room, in order: the first ones. */
function fitting(requests: number, units: number, room: number): number {
  if (units === 0) return requests;
  return Math.max(0, Math.min(requests, Math.floor(room / units)));
}

/** The limits in force: while a grant runs, its own for those windows of the key that it names. */
export function limitsAt(nowMs: number, limits: Limits, grant: Grant | undefined): Limits {
  if (grant === undefined || nowMs < (grant.fromMs ?? 0) || nowMs >= grant.untilMs) return limits;
  return limits.map((limit) => grant.limits.find(({ window }) => window === limit.window) ?? limit);
}

/** The grant, unless it has ended. It may not have begun. */
export function unendedGrant(grant: Grant | undefined, nowMs: number): Grant | undefined {
  return grant !== undefined && nowMs < grant.untilMs ? grant : undefined;
}

/** The grant as operators and key holders are told of it: with its beginning only while that lies ahead. */
export function toldGrant(grant: Grant | undefined, nowMs: number): Grant | undefined {
  const unended = unendedGrant(grant, nowMs);
  if (unended?.fromMs === undefined || nowMs < unended.fromMs) return unended;
  return { limits: unended.limits, untilMs: unended.untilMs };
}

/** Opens the windows that `nowMs` lies in. Never a smaller index: a failover may bring an older clock. */
export function openWindows(state: QuotaState, limits: Limits, windowsMs: WindowsMs, nowMs: number): void {
  for (const { window } of limits) {
    const index = windowIndex(windowsMs[window], nowMs);
    if (index <= state[window]) continue;
    state[window] = index;
    state[usedIn[window]] = 0;
  }
}

/**
 * Adds what a process decided on its own. Use of a window that has ended counts no more, nothing is ever lowered, and
 * what is of an older generation is dropped: a ban that was lifted stays lifted. A ban ends at most `maxMs` from now,
 * whatever the clock it was set by.
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

/** When nothing of the state matters any more, epoch ms: the store may drop it then. */
export function expiresMs(state: Readonly<QuotaState>, bans: BanPolicy, windowsMs: WindowsMs): number {
  let atMs = Math.max(
    state.strikes === 0 ? 0 : state.strikesFromMs + bans.withinMs,
    state.bannedUntilMs === 0 ? 0 : state.bannedUntilMs + bans.maxMs,
    state.liftedMs === 0 ? 0 : state.liftedMs + bans.maxMs,
    state.grant?.untilMs ?? 0,
  );
  for (const window of Object.keys(usedIn) as PlanWindow[]) {
    if (state[window] > 0) atMs = Math.max(atMs, windowStartMs(windowsMs[window], state[window] + 1));
  }
  return atMs;
}

/**
 * Lifts the ban: the key is admitted again where its windows have room, and the ladder starts over. The new generation
 * keeps out strikes and bans that processes collected before.
 */
export function liftBan(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const liftedMs = Math.max(nowMs, before.liftedMs + 1);
  return { ...before, strikes: 0, strikesFromMs: 0, bannedUntilMs: 0, banLevel: 0, liftedMs };
}

/**
 * Forgets all that was counted, bans included; a grant stays. The new generation keeps out what processes collected before.
 */
export function resetQuota(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const { liftedMs, grant } = liftBan(before, nowMs);
  return { ...emptyQuotaState, liftedMs, resetMs: liftedMs, grant };
}

/** Gives the key a grant in place of the one that it has, or none. What was counted stays. */
export function setGrant(before: Readonly<QuotaState>, nowMs: number, grant: Grant | undefined): QuotaState {
  return { ...before, grant: unendedGrant(grant, nowMs) };
}

/** Strikes count within `withinMs` of the first of them. */
function endStrikes(state: QuotaState, bans: BanPolicy, nowMs: number): void {
  if (state.strikes === 0 || nowMs < state.strikesFromMs + bans.withinMs) return;
  state.strikes = 0;
  state.strikesFromMs = 0;
}

/** Counts refusals until one of them bans; answers how many stayed plain refusals. */
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
