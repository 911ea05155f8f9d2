import type { BanPolicy, Limits } from '../../model.ts';

/**
 * The decision on `requests` requests of one key at one instant: ban first, then both windows, charged in both or in
 * none. `decide-quota.lua` is the same function inside Redis; the tests hold the two against each other.
 *
 * Deciding n at once equals deciding n times one: the first `admitted` requests find room, the next `refused` ones
 * do not, and the rest are `banned`, beginning with the refusal that reached `bans.after`.
 */
export function decideQuota(
  before: QuotaState,
  call: QuotaCall,
  lengths: WindowLengths,
  nowMs: number,
): QuotaOutcome {
  const { limits, bans, requests, unsent } = call;
  const state = { ...before };
  rollWindows(state, lengths, nowMs);
  endStrikes(state, bans, nowMs);
  if (unsent !== undefined) {
    addUnsent(state, unsent, bans, nowMs);
    if (unsent.strikes > 0 && state.strikes >= bans.after) ban(state, bans, nowMs);
  }
  if (state.bannedUntilMs > nowMs) return { nowMs, admitted: 0, refused: 0, banned: requests, state };

  const room = Math.min(limits.perMinute - state.minuteUsed, limits.perDay - state.dayUsed);
  const admitted = Math.max(0, Math.min(requests, room));
  state.minuteUsed += admitted;
  state.dayUsed += admitted;
  const rest = requests - admitted;
  const refused = rest === 0 ? 0 : strike(state, rest, bans, nowMs);
  return { nowMs, admitted, refused, banned: rest - refused, state };
}

/** What the store holds of one key; times are epoch ms on the store's clock. */
export interface QuotaState {
  /** Index of the minute window (epoch ms / its length) and what was admitted in it; likewise the day. */
  minute: number;
  minuteUsed: number;
  day: number;
  dayUsed: number;
  /** Refusals counted towards the next ban, and when the first of them was. */
  strikes: number;
  strikesFromMs: number;
  bannedUntilMs: number;
  /** How many bans led here: the next one lasts `forMs` × 2^level. */
  banLevel: number;
}

/** What a process decided on its own for a key and has not told the store yet. */
export interface Unsent {
  readonly minute: number;
  readonly minuteUsed: number;
  readonly day: number;
  readonly dayUsed: number;
  readonly strikes: number;
  readonly bannedUntilMs: number;
  readonly banLevel: number;
}

export interface QuotaCall {
  readonly keyId: string;
  readonly limits: Limits;
  readonly bans: BanPolicy;
  /** How many requests to decide; 0 only hands over `unsent`. */
  readonly requests: number;
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

/** A minute and a day; tests use seconds. */
export interface WindowLengths {
  readonly minuteMs: number;
  readonly dayMs: number;
}

export const emptyQuotaState: Readonly<QuotaState> = Object.freeze({
  minute: 0,
  minuteUsed: 0,
  day: 0,
  dayUsed: 0,
  strikes: 0,
  strikesFromMs: 0,
  bannedUntilMs: 0,
  banLevel: 0,
});

/** Opens the windows that `nowMs` lies in. Never a smaller index: a failover may bring an older clock. */
export function rollWindows(state: QuotaState, lengths: WindowLengths, nowMs: number): void {
  const minute = Math.floor(nowMs / lengths.minuteMs);
  if (minute > state.minute) {
    state.minute = minute;
    state.minuteUsed = 0;
  }
  const day = Math.floor(nowMs / lengths.dayMs);
  if (day > state.day) {
    state.day = day;
    state.dayUsed = 0;
  }
}

/**
 * Adds what a process decided on its own. Use of a window that has ended counts no more, and nothing is ever lowered.
 * A ban ends at most `maxMs` from now, whatever the clock it was set by.
 */
export function addUnsent(state: QuotaState, unsent: Unsent, bans: BanPolicy, nowMs: number): void {
  if (unsent.minute === state.minute) state.minuteUsed += unsent.minuteUsed;
  if (unsent.day === state.day) state.dayUsed += unsent.dayUsed;
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
export function expiresMs(state: Readonly<QuotaState>, bans: BanPolicy, lengths: WindowLengths): number {
  return Math.max(
    (state.minute + 1) * lengths.minuteMs,
    (state.day + 1) * lengths.dayMs,
    state.strikes === 0 ? 0 : state.strikesFromMs + bans.withinMs,
    state.bannedUntilMs === 0 ? 0 : state.bannedUntilMs + bans.maxMs,
  );
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
