import { type BanCounts, isBanned, noBan } from '../../quota/bans.ts';
import { decideKey, type QuotaCall, type QuotaOutcome } from '../../quota/decide-key.ts';
import { applyGrant } from '../../quota/grants.ts';
import { emptyQuotaState, type QuotaState, sideOf } from '../../quota/hash.ts';
import type { Run } from '../../quota/runs.ts';
import { tellAll } from '../../quota/thresholds.ts';
import { readTrial } from '../../quota/trial.ts';
import { addDecided, addUnsent, addUnsentBan, addUp, type Unsent } from '../../quota/unsent.ts';
import { openWindows, roomIn } from '../../quota/windows.ts';
import { noCounts } from '../../shared/calendar-windows.ts';
import { limitsOn } from '../../shared/limits.ts';
import type { BanPolicy, Limits } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

export type KeyLedger = ReturnType<typeof createKeyLedger>;

/** The part of a call that is the same until the configuration or the key changes. */
type KeyTerms = Pick<QuotaCall, 'keyId' | 'limits' | 'trial' | 'bans' | 'thresholds'>;

interface Entry {
  readonly keyId: string;
  terms: KeyTerms;
  state: Readonly<QuotaState>;
  /** The time of the last reply that decided requests, on the store's clock; undefined without such a reply, or after a local change. */
  seenMs: number | undefined;
  /** The terms of the call to which the store replied. The reply contains no counts for other windows. */
  seen: KeyTerms | undefined;
  unsent: Unsent | undefined;
  /**
   * Strikes (counted refusals) in calls without a reply. The next reply may belong to an earlier call, and then does not include these
   * strikes.
   */
  strikesSent: number;
}

/** Keeps this process's counts of each key: the store's last reply, and later decisions that were made without the store. */
export function createKeyLedger(bounds: Bounds) {
  const { windowsMs } = bounds;
  const entries = new Map<string, Entry>();
  const unsentIds = new Set<string>();

  return {
    /** Returns the key's unsent local decisions, which the call must contain. The call must end with `settle` or `giveUp`. */
    takeUnsent: (call: KeyTerms): Unsent | undefined => takeUnsent(entryOf(call)),

    /** Records the store's reply to a call. The counts of the reply replace the earlier counts. */
    settle(call: QuotaCall, { state, nowMs }: QuotaOutcome) {
      const entry = entryOf(call);
      entry.strikesSent -= call.unsent?.strikes ?? 0;
      entry.state = withPending(state, entry, nowMs);
      // The reply to a report does not show whether the key has changed, so it does not prolong the time in which `refuse` may refuse.
      if (call.runs.length > 0) entry.seenMs = nowMs;
      entry.seen = entry.terms;
    },

    /** Ends a call that the store has not decided. The local decisions in the call are sent again later, unless the call may have run. */
    giveUp(call: QuotaCall, mayHaveRun: boolean) {
      const entry = entryOf(call);
      entry.strikesSent -= call.unsent?.strikes ?? 0;
      entry.seenMs = undefined;
      if (call.unsent === undefined || mayHaveRun) return;
      keep(entry, entry.unsent === undefined ? call.unsent : addUp(call.unsent, entry.unsent));
    },

    /**
     * Refuses a request without the store. The store's last reply must be less than `bounds.refusalRememberedMs` old, and must show a ban, or a
     * window that is too full for the request. A refusal by a full window counts towards the next ban, so the store must receive the refusal
     * before the next ban begins (`mayHoldStrike`). The trial must refuse the request too, because the store charges a request that the
     * trial admits. The trial receives the strikes of the plan, so it must not have a strike of its own.
     *
     * @param run one request
     * @returns undefined when the store must decide
     */
    refuse(terms: KeyTerms, run: Run, nowMs: number): QuotaOutcome | undefined {
      const entry = entries.get(terms.keyId);
      if (entry?.seenMs === undefined || !hasSameWindows(entry.seen, terms)) return undefined;
      // A negative difference means that a clock was set back. If the difference is too large in either direction, the store decides. Its
      // reply corrects the estimated clock.
      if (Math.abs(nowMs - entry.seenMs) >= bounds.refusalRememberedMs) return undefined;
      const { state, unsent } = entry;
      const { limits, bans } = terms;
      const inForce = limitsOn(applyGrant(limits, state.grant, nowMs), run.operation);
      const isRefused = isBanned(state, nowMs) || roomIn(state, inForce) < run.units;
      if (!isRefused) return undefined;
      const call = { ...terms, runs: [run] };
      const outcome = decideKey(state, call, windowsMs, nowMs);
      if (outcome.admitted > 0 || beginsBan(state, outcome) || !isSameInTrial(state, outcome))
        return undefined;
      if (outcome.refused === 1 && !mayHoldStrike(state, unsent, bans)) return undefined;
      entry.state = outcome.state;
      if (outcome.refused === 1) keep(entry, addDecided(unsent, call, outcome, outcome.state));
      return outcome;
    },

    /**
     * Decides without the store, with the last known counts. The decision is sent to the store later, unless the store may already have
     * charged the requests. Each threshold is returned once, because the store cannot mark it as reported.
     */
    decideAlone(asked: QuotaCall, nowMs: number, mayBeCharged: boolean, slots?: number) {
      const entry = entryOf(asked);
      // The counts of the entry include the unsent decisions.
      const call = { ...entry.terms, runs: asked.runs };
      const outcome = decideKey(entry.state, call, windowsMs, nowMs, slots);
      const { state, reached } = outcome;
      entry.state = reached === undefined ? state : { ...state, told: tellAll(state.told, reached) };
      entry.seenMs = undefined;
      if (!mayBeCharged) keep(entry, addDecided(entry.unsent, call, outcome, state));
      return outcome;
    },

    /** Returns the last known counts of a key, also of windows that have ended; undefined if this process knows none. */
    stateOf(keyId: string): Readonly<QuotaState> | undefined {
      const state = entries.get(keyId)?.state;
      return state === emptyQuotaState ? undefined : state;
    },

    /** Returns the last known counts of a key, in the windows that contain `nowMs`. */
    lastSeen({ keyId, limits }: Pick<KeyTerms, 'keyId' | 'limits'>, nowMs: number): Readonly<QuotaState> {
      const state = { ...(entries.get(keyId)?.state ?? emptyQuotaState) };
      openWindows(state, limits, windowsMs, nowMs);
      return state;
    },

    /** Returns the last known counts of the trial, in the windows that contain `nowMs`. */
    lastSeenTrial(
      { keyId, limits, trial }: Pick<KeyTerms, 'keyId' | 'limits'> & { readonly trial: Limits },
      nowMs: number,
    ): Readonly<QuotaState> {
      const plan = this.lastSeen({ keyId, limits }, nowMs);
      const state = readTrial(plan.trial, plan, { limits, trial });
      openWindows(state, trial, windowsMs, nowMs);
      return state;
    },

    /** Replaces a key's counts after an operator's change: a lifted ban, a reset, or a grant. */
    replace(keyId: string, state: Readonly<QuotaState>) {
      const entry = entries.get(keyId) ?? entryOf({ keyId, ...noTerms });
      entry.state = state;
      entry.seenMs = undefined;
    },

    /** Makes `refuse` ignore all replies that the store has sent so far. */
    forgetRefusals() {
      for (const entry of entries.values()) entry.seenMs = undefined;
    },
    /** Makes `refuse` ignore the store's last reply for one key. */
    forgetRefusalsOf(keyId: string) {
      const entry = entries.get(keyId);
      if (entry !== undefined) entry.seenMs = undefined;
    },

    /**
     * Makes calls that decide no request and only report unsent local decisions. There is one call for each key whose part of the store
     * is available, and at most `keysMax` calls.
     */
    openReports(keysMax: number, isThere?: (keyId: string) => boolean) {
      const calls: QuotaCall[] = [];
      for (const keyId of unsentIds) {
        if (calls.length === keysMax) break;
        if (isThere?.(keyId) === false) continue;
        const entry = entries.get(keyId);
        if (entry !== undefined) calls.push({ ...entry.terms, runs: [], unsent: takeUnsent(entry) });
      }
      return calls;
    },

    unsentKeys: () => unsentIds.size,
  };

  /**
   * Whether the process may report the next local refusal later instead of immediately. The process reports refusals sooner when the key
   * is close to its next ban, also in the trial.
   */
  function mayHoldStrike(
    { strikes, trial }: Readonly<QuotaState>,
    unsent: Unsent | undefined,
    { after }: BanPolicy,
  ): boolean {
    const held = (unsent?.strikes ?? 0) + 1;
    const left = after - Math.max(strikes, trial?.strikes ?? 0);
    return held < bounds.strikesPerReportMax && held <= left * bounds.strikesHeldShareMax;
  }

  function entryOf(newest: KeyTerms): Entry {
    const known = entries.get(newest.keyId);
    if (known !== undefined) {
      if (!hasSameTerms(known.terms, newest)) known.terms = termsIn(newest);
      return known;
    }
    const terms = termsIn(newest);
    if (entries.size >= bounds.rememberedKeysMax) forgetOldest();
    const entry: Entry = {
      keyId: terms.keyId,
      terms,
      state: emptyQuotaState,
      seenMs: undefined,
      seen: undefined,
      unsent: undefined,
      strikesSent: 0,
    };
    entries.set(terms.keyId, entry);
    return entry;
  }

  /**
   * Deletes the oldest entry whose strikes are not being sent to the store. An entry whose strikes are being sent is kept until the call
   * ends.
   */
  function forgetOldest(): void {
    for (const { keyId, strikesSent } of entries.values()) {
      if (strikesSent > 0) continue;
      entries.delete(keyId);
      unsentIds.delete(keyId);
      return;
    }
  }

  function takeUnsent(entry: Entry): Unsent | undefined {
    const { keyId, unsent } = entry;
    if (unsent === undefined) return undefined;
    entry.strikesSent += unsent.strikes;
    entry.unsent = undefined;
    unsentIds.delete(keyId);
    return unsent;
  }

  function keep(entry: Entry, unsent: Unsent): void {
    entry.unsent = unsent;
    unsentIds.add(entry.keyId);
  }
}

/** The terms of a key until its first request. */
const noTerms = { limits: [], bans: { after: Number.POSITIVE_INFINITY, withinMs: 0, forMs: 0, maxMs: 0 } };

function termsIn({ keyId, limits, trial, bans, thresholds }: KeyTerms): KeyTerms {
  return { keyId, limits, trial, bans, thresholds };
}

function hasSameTerms(one: KeyTerms, other: KeyTerms): boolean {
  return hasSameWindows(one, other) && one.bans === other.bans && one.thresholds === other.thresholds;
}

/** Whether the trial refuses a request that the plan refuses, and with the same strikes. A process cannot report strikes of one side. */
function isSameInTrial({ trial: before }: Readonly<QuotaState>, { refused, trial }: QuotaOutcome): boolean {
  if (trial === undefined) return true;
  return trial.admitted === 0 && trial.refused === refused && !beginsBan(before ?? noBan, trial);
}

function beginsBan(before: Readonly<BanCounts>, { state }: { readonly state: Readonly<BanCounts> }): boolean {
  return state.bannedUntilMs !== before.bannedUntilMs;
}

/** Whether a reply to a call with the terms `seen` has the counts of all windows of `terms`. */
function hasSameWindows(seen: KeyTerms | undefined, terms: KeyTerms): boolean {
  return seen?.limits === terms.limits && seen.trial === terms.trial;
}

/** Returns the state of a reply, plus local decisions that the store had not received at the time of the reply. */
function withPending(
  state: Readonly<QuotaState>,
  { unsent, strikesSent, terms }: Entry,
  nowMs: number,
): Readonly<QuotaState> {
  if (unsent === undefined && strikesSent === 0) return state;
  const { bannedUntilMs, banLevel, liftedMs, resetMs } = state;
  const known = unsent ?? { ...noCounts, bannedUntilMs, banLevel, liftedMs, resetMs, strikes: 0 };
  const pending = { ...known, strikes: known.strikes + strikesSent };
  const { limits, trial, bans } = terms;
  const plan = { ...state };
  addUnsentBan(plan, pending, bans, nowMs);
  addUnsent(plan, pending, limits, nowMs);
  if (trial === undefined || state.trial === undefined) return plan;
  const trialState = { ...state, ...state.trial };
  addUnsent(trialState, pending, trial, nowMs);
  return { ...plan, trial: sideOf(trialState) };
}
