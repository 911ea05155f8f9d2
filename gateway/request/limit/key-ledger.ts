import { type BanPolicy, type Limits, planWindows } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import {
  addUnsent,
  decideQuota,
  emptyQuotaState,
  noCounts,
  openWindows,
  type QuotaCall,
  type QuotaOutcome,
  type QuotaState,
  roomIn,
  type Unsent,
  usedIn,
  type WindowCounts,
} from './store/decide-quota.ts';

/** What this process knows of each key: the counts in the store's last reply, and what it decided without the store since. */
export interface KeyLedger {
  /** Makes the call that decides requests of a key. It also carries what the store has not been told yet. */
  openCall(terms: KeyTerms, asked: Asked, generation?: number): QuotaCall;
  /** The store has decided the call: its counts replace those of before. */
  settle(call: QuotaCall, outcome: QuotaOutcome): void;
  /** The store did not reply, or decided nothing. What the call carried is sent again later, unless it may have arrived. */
  giveUp(call: QuotaCall, mayHaveRun: boolean): void;
  /**
   * Refuses one request of `units` units without asking the store: when the store's reply of the last
   * `bounds.refusalRememberedMs` shows a ban, or a window on these limits without room for it and the next ban so far away that
   * this refusal can be reported later. Undefined: ask the store.
   */
  refuse(terms: KeyTerms, units: number, nowMs: number): QuotaOutcome | undefined;
  /** Decides without the store, on the counts last seen. The result is sent later, unless the store may have charged it. */
  decideAlone(terms: KeyTerms, asked: Asked, nowMs: number, mayBeCharged: boolean): QuotaOutcome;
  /** The counts last seen, in the windows of `nowMs`. */
  lastSeen(terms: Pick<KeyTerms, 'keyId' | 'limits'>, nowMs: number): Readonly<QuotaState>;
  /** Somebody lifted the key's ban, reset it, or changed its grant. */
  replace(keyId: string, state: Readonly<QuotaState>): void;
  /** From now on `refuse` uses only replies that arrive after this call. */
  forgetRefusals(): void;
  /**
   * Calls that decide no request and only carry what the store has not been told; at most `keysMax` of them, of keys whose
   * part of the store is there.
   */
  openReports(keysMax: number, isThere?: (keyId: string) => boolean): QuotaCall[];
  unsentKeys(): number;
}

/** Whose request, and the terms it is decided on. */
export interface KeyTerms {
  readonly keyId: string;
  readonly limits: Limits;
  readonly bans: BanPolicy;
}

/** How many requests, and how many units each of them costs. */
export type Asked = Pick<QuotaCall, 'requests' | 'units'>;

interface Entry {
  readonly keyId: string;
  limits: Limits;
  bans: BanPolicy;
  state: Readonly<QuotaState>;
  /** The store's clock in the reply that `state` is from; undefined when it is from no reply, or was changed since without the store. */
  seenMs: number | undefined;
  /** The limits that the reply was given on. Of windows that are not among them it says nothing. */
  seenLimits: Limits | undefined;
  unsent: Unsent | undefined;
  /** Strikes in calls without a reply yet; the next reply may be of an earlier call and not contain them. */
  strikesSent: number;
}

/** What a ledger bounds, as in `timeouts-and-sizes.ts`. */
export type LedgerBounds = Pick<
  Bounds,
  'refusalRememberedMs' | 'strikesPerReportMax' | 'strikesHeldShareMax' | 'rememberedKeysMax' | 'windowsMs'
>;

export function createKeyLedger(bounds: LedgerBounds): KeyLedger {
  const { windowsMs } = bounds;
  const entries = new Map<string, Entry>();
  const unsentIds = new Set<string>();

  return {
    openCall(terms, asked, generation) {
      return toCall(entryOf(terms), asked, generation);
    },

    settle(call, { state, nowMs }) {
      const entry = entryOf(call);
      entry.strikesSent -= call.unsent?.strikes ?? 0;
      entry.state = withPending(state, entry, nowMs);
      entry.seenMs = nowMs;
      entry.seenLimits = call.limits;
    },

    giveUp(call, mayHaveRun) {
      const entry = entryOf(call);
      entry.strikesSent -= call.unsent?.strikes ?? 0;
      entry.seenMs = undefined;
      if (call.unsent === undefined || mayHaveRun) return;
      keep(entry, entry.unsent === undefined ? call.unsent : addUp(call.unsent, entry.unsent));
    },

    refuse(terms, units, nowMs) {
      const entry = entries.get(terms.keyId);
      if (entry?.seenMs === undefined) return undefined;
      // A clock that was set back, the gateway's or Redis's, is learned from the next reply: so the store is asked.
      if (Math.abs(nowMs - entry.seenMs) >= bounds.refusalRememberedMs) return undefined;
      const { keyId, limits, bans } = terms;
      if (entry.seenLimits !== limits) return undefined;
      const { state } = entry;
      const isBanned = state.bannedUntilMs > nowMs;
      if (!isBanned && (roomIn(state, limits, nowMs) >= units || !mayHoldStrike(entry, bans)))
        return undefined;
      const outcome = decideQuota(state, { keyId, limits, bans, requests: 1, units }, windowsMs, nowMs);
      if (outcome.admitted === 1) return undefined;
      entry.state = outcome.state;
      if (outcome.refused === 1) keep(entry, decidedAlone(entry.unsent, outcome, units, limits));
      return outcome;
    },

    decideAlone(terms, { requests, units }, nowMs, mayBeCharged) {
      const entry = entryOf(terms);
      const { keyId, limits, bans } = terms;
      const outcome = decideQuota(entry.state, { keyId, limits, bans, requests, units }, windowsMs, nowMs);
      entry.state = outcome.state;
      entry.seenMs = undefined;
      if (!mayBeCharged) keep(entry, decidedAlone(entry.unsent, outcome, units, limits));
      return outcome;
    },

    lastSeen({ keyId, limits }, nowMs) {
      const state = { ...(entries.get(keyId)?.state ?? emptyQuotaState) };
      openWindows(state, limits, windowsMs, nowMs);
      return state;
    },

    replace(keyId, state) {
      const entry = entries.get(keyId);
      if (entry === undefined) return;
      entry.state = state;
      entry.seenMs = undefined;
    },

    forgetRefusals() {
      for (const entry of entries.values()) entry.seenMs = undefined;
    },

    openReports(keysMax, isThere) {
      const calls: QuotaCall[] = [];
      for (const keyId of unsentIds) {
        if (calls.length === keysMax) break;
        if (isThere?.(keyId) === false) continue;
        const entry = entries.get(keyId);
        if (entry !== undefined) calls.push(toCall(entry, nothingAsked));
      }
      return calls;
    },

    unsentKeys: () => unsentIds.size,
  };

  /** Whether one more refusal may wait for its report: few may, the nearer the ban is. */
  function mayHoldStrike({ state, unsent }: Entry, { after }: BanPolicy): boolean {
    const held = (unsent?.strikes ?? 0) + 1;
    return held < bounds.strikesPerReportMax && held <= (after - state.strikes) * bounds.strikesHeldShareMax;
  }

  function entryOf(terms: KeyTerms): Entry {
    const { keyId, limits, bans } = terms;
    const known = entries.get(keyId);
    if (known !== undefined) {
      known.limits = limits;
      known.bans = bans;
      return known;
    }
    if (entries.size >= bounds.rememberedKeysMax) forgetOldest();
    const entry: Entry = {
      keyId,
      limits,
      bans,
      state: emptyQuotaState,
      seenMs: undefined,
      seenLimits: undefined,
      unsent: undefined,
      strikesSent: 0,
    };
    entries.set(keyId, entry);
    return entry;
  }

  /** Not one whose strikes are under way: their reply would be settled with an entry that never sent them. */
  function forgetOldest(): void {
    for (const { keyId, strikesSent } of entries.values()) {
      if (strikesSent > 0) continue;
      entries.delete(keyId);
      unsentIds.delete(keyId);
      return;
    }
  }

  function toCall(entry: Entry, { requests, units }: Asked, generation?: number): QuotaCall {
    const { keyId, limits, bans, unsent } = entry;
    if (unsent !== undefined) {
      entry.strikesSent += unsent.strikes;
      entry.unsent = undefined;
      unsentIds.delete(keyId);
    }
    return { keyId, limits, bans, requests, units, generation, unsent };
  }

  function keep(entry: Entry, unsent: Unsent): void {
    entry.unsent = unsent;
    unsentIds.add(entry.keyId);
  }
}

const nothingAsked: Asked = { requests: 0, units: 0 };

/** A reply, and on top of it what the store will only hear of later. */
function withPending(state: Readonly<QuotaState>, entry: Entry, nowMs: number): Readonly<QuotaState> {
  const { unsent, strikesSent } = entry;
  if (unsent === undefined && strikesSent === 0) return state;
  const pending = { ...state };
  const known = unsent ?? { ...noCounts, ...banOf(state), strikes: 0 };
  addUnsent(pending, { ...known, strikes: known.strikes + strikesSent }, entry, nowMs);
  return pending;
}

/** Adds what was just decided alone. Strikes that have passed, or have led to a ban, are not sent. */
function decidedAlone(
  unsent: Unsent | undefined,
  { admitted, refused, state }: QuotaOutcome,
  units: number,
  limits: Limits,
): Unsent {
  const decided = { ...countsOf(state, admitted * units, limits), ...banOf(state), strikes: refused };
  const all = unsent === undefined ? decided : addUp(unsent, decided);
  return { ...all, strikes: Math.min(all.strikes, state.strikes) };
}

/** `used` units in each limited window. */
function countsOf(state: Readonly<WindowCounts>, used: number, limits: Limits): WindowCounts {
  const counts = { ...noCounts };
  for (const { window } of limits) {
    counts[window] = state[window];
    counts[usedIn[window]] = used;
  }
  return counts;
}

function banOf({ bannedUntilMs, banLevel, liftedMs, resetMs }: Readonly<QuotaState>) {
  return { bannedUntilMs, banLevel, liftedMs, resetMs };
}

/** Of an earlier generation of counts or bans nothing is added. */
function addUp(earlier: Unsent, later: Unsent): Unsent {
  const sum = { ...later };
  if (earlier.resetMs === later.resetMs) {
    for (const window of planWindows) {
      if (earlier[window] === later[window]) sum[usedIn[window]] += earlier[usedIn[window]];
    }
  }
  if (earlier.liftedMs !== later.liftedMs) return sum;
  return {
    ...sum,
    strikes: earlier.strikes + later.strikes,
    bannedUntilMs: Math.max(earlier.bannedUntilMs, later.bannedUntilMs),
    banLevel: Math.max(earlier.banLevel, later.banLevel),
  };
}
