import { type BanPolicy, type Limits, planWindows } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import {
  type Asked,
  addUnsent,
  chargedUnits,
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

export type KeyLedger = ReturnType<typeof createKeyLedger>;

/** A key, and the terms on which its requests are decided. */
export interface KeyTerms {
  readonly keyId: string;
  readonly limits: Limits;
  readonly bans: BanPolicy;
}

interface Entry {
  readonly keyId: string;
  limits: Limits;
  bans: BanPolicy;
  state: Readonly<QuotaState>;
  /** The store's clock in the reply of `state`; undefined without a reply, or after a local change. */
  seenMs: number | undefined;
  /** The limits of the reply's call. The reply has no counts of other windows. */
  seenLimits: Limits | undefined;
  unsent: Unsent | undefined;
  /** Strikes in open calls. The next reply may belong to an earlier call and lack these strikes. */
  strikesSent: number;
}

/** This process's counts of each key: the store's last reply, and the decisions since then without the store. */
export function createKeyLedger(bounds: Bounds) {
  const { windowsMs } = bounds;
  const entries = new Map<string, Entry>();
  const unsentIds = new Set<string>();

  return {
    /** Makes the call that decides requests of a key. The call also carries the unsent local decisions. */
    openCall: (terms: KeyTerms, asked: Asked, generation?: number) =>
      toCall(entryOf(terms), asked, generation),

    /** Takes over the store's reply to a call. The counts of the reply replace the earlier counts. */
    settle(call: QuotaCall, { state, nowMs }: QuotaOutcome) {
      const entry = entryOf(call);
      entry.strikesSent -= call.unsent?.strikes ?? 0;
      entry.state = withPending(state, entry, nowMs);
      entry.seenMs = nowMs;
      entry.seenLimits = call.limits;
    },

    /** Ends a call without a decision. Its unsent decisions are sent again later, unless the call may have run. */
    giveUp(call: QuotaCall, mayHaveRun: boolean) {
      const entry = entryOf(call);
      entry.strikesSent -= call.unsent?.strikes ?? 0;
      entry.seenMs = undefined;
      if (call.unsent === undefined || mayHaveRun) return;
      keep(entry, entry.unsent === undefined ? call.unsent : addUp(call.unsent, entry.unsent));
    },

    /**
     * Refuses one request of `units` units without a call, if the store's reply of the last `bounds.refusalRememberedMs` shows a ban
     * or a window without room. In the second case the next ban must be so far away that this refusal can be reported later.
     *
     * @returns undefined when the store must decide
     */
    refuse(terms: KeyTerms, units: number, nowMs: number): QuotaOutcome | undefined {
      const entry = entries.get(terms.keyId);
      if (entry?.seenMs === undefined) return undefined;
      // A large difference means that a clock was set back. The store decides then, and its reply corrects the estimate.
      if (Math.abs(nowMs - entry.seenMs) >= bounds.refusalRememberedMs) return undefined;
      const { keyId, limits, bans } = terms;
      if (entry.seenLimits !== limits) return undefined;
      const { state } = entry;
      const isBanned = state.bannedUntilMs > nowMs;
      if (!isBanned && (roomIn(state, limits, nowMs) >= units || !mayHoldStrike(entry, bans)))
        return undefined;
      const call = { keyId, limits, bans, requests: 1, units };
      const outcome = decideQuota(state, call, windowsMs, nowMs);
      if (outcome.admitted === 1) return undefined;
      entry.state = outcome.state;
      if (outcome.refused === 1) keep(entry, decidedAlone(entry.unsent, outcome, call));
      return outcome;
    },

    /** Decides without the store, on the last known counts. The result is sent later, unless the store may have charged it. */
    decideAlone(terms: KeyTerms, { requests, units, later }: Asked, nowMs: number, mayBeCharged: boolean) {
      const entry = entryOf(terms);
      const { keyId, limits, bans } = terms;
      const call = { keyId, limits, bans, requests, units, later };
      const outcome = decideQuota(entry.state, call, windowsMs, nowMs);
      entry.state = outcome.state;
      entry.seenMs = undefined;
      if (!mayBeCharged) keep(entry, decidedAlone(entry.unsent, outcome, call));
      return outcome;
    },

    /** The last known counts, in the windows of `nowMs`. */
    lastSeen({ keyId, limits }: Pick<KeyTerms, 'keyId' | 'limits'>, nowMs: number): Readonly<QuotaState> {
      const state = { ...(entries.get(keyId)?.state ?? emptyQuotaState) };
      openWindows(state, limits, windowsMs, nowMs);
      return state;
    },

    /** Replaces a key's counts after an operator's change: a lifted ban, a reset, or a grant. */
    replace(keyId: string, state: Readonly<QuotaState>) {
      const entry = entries.get(keyId);
      if (entry === undefined) return;
      entry.state = state;
      entry.seenMs = undefined;
    },

    /** After this, `refuse` uses only later replies. */
    forgetRefusals() {
      for (const entry of entries.values()) entry.seenMs = undefined;
    },

    /**
     * Calls that decide no request and only carry unsent local decisions: at most `keysMax` calls, of keys whose part of the store is
     * available.
     */
    openReports(keysMax: number, isThere?: (keyId: string) => boolean) {
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

  /** Whether one more refusal may wait for its report. The nearer the ban, the fewer may wait. */
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

  /** Forgets the oldest key without open strikes. The reply to open strikes needs the entry that sent them. */
  function forgetOldest(): void {
    for (const { keyId, strikesSent } of entries.values()) {
      if (strikesSent > 0) continue;
      entries.delete(keyId);
      unsentIds.delete(keyId);
      return;
    }
  }

  function toCall(entry: Entry, { requests, units, later }: Asked, generation?: number): QuotaCall {
    const { keyId, limits, bans, unsent } = entry;
    if (unsent !== undefined) {
      entry.strikesSent += unsent.strikes;
      entry.unsent = undefined;
      unsentIds.delete(keyId);
    }
    return { keyId, limits, bans, requests, units, later, generation, unsent };
  }

  function keep(entry: Entry, unsent: Unsent): void {
    entry.unsent = unsent;
    unsentIds.add(entry.keyId);
  }
}

const nothingAsked: Asked = { requests: 0, units: 0 };

/** A reply plus the decisions that the store does not have yet. */
function withPending(state: Readonly<QuotaState>, entry: Entry, nowMs: number): Readonly<QuotaState> {
  const { unsent, strikesSent } = entry;
  if (unsent === undefined && strikesSent === 0) return state;
  const pending = { ...state };
  const known = unsent ?? { ...noCounts, ...banOf(state), strikes: 0 };
  addUnsent(pending, { ...known, strikes: known.strikes + strikesSent }, entry, nowMs);
  return pending;
}

/** Adds a local decision. Strikes that expired, or that led to a ban, are not sent. */
function decidedAlone(unsent: Unsent | undefined, outcome: QuotaOutcome, call: QuotaCall): Unsent {
  const { refused, state } = outcome;
  const counts = countsOf(state, chargedUnits(call, outcome), call.limits);
  const decided = { ...counts, ...banOf(state), strikes: refused };
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

/** Adds two sets of unsent decisions. Counts or bans of an earlier generation are dropped. */
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
