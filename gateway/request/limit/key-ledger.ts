import { decideKey, type KnownChanges, type QuotaCall, type QuotaOutcome } from '../../quota/decide-key.ts';
import { applyGrant } from '../../quota/grants.ts';
import { emptyQuotaState, type QuotaState } from '../../quota/hash.ts';
import { type Asked, chargedUnits, type Run } from '../../quota/runs.ts';
import { tellAll } from '../../quota/thresholds.ts';
import { alignLimits, differencesOf, readTrial, type TriedLimits, trialRuns } from '../../quota/trial.ts';
import { addUnsent, type Unsent } from '../../quota/unsent.ts';
import { openWindows, roomIn } from '../../quota/windows.ts';
import { noCounts, usedIn, type WindowCounts } from '../../shared/calendar-windows.ts';
import { type BanPolicy, type Limits, planWindows } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

export type KeyLedger = ReturnType<typeof createKeyLedger>;

/** A key with its limits and the rules that apply to it. */
export interface KeyTerms {
  readonly keyId: string;
  readonly limits: Limits;
  /** The limits of the trial of the key's plan. */
  readonly trial?: Limits | undefined;
  readonly bans: BanPolicy;
  /** See `QuotaCall`. */
  readonly thresholds?: readonly number[] | undefined;
}

interface Entry {
  readonly keyId: string;
  /** The limits of the plan and of its trial, aligned. */
  tried: TriedLimits;
  bans: BanPolicy;
  thresholds: readonly number[] | undefined;
  state: Readonly<QuotaState>;
  /** The time of the last reply that decided requests, on the store's clock; undefined without such a reply, or after a local change. */
  seenMs: number | undefined;
  /** The limits in the call to which the store replied. The reply contains no counts for other windows. */
  seen: TriedLimits | undefined;
  unsent: Unsent | undefined;
  /**
   * Strikes (counted refusals) in calls without a reply. The next reply may belong to an earlier call, and then does not include these
   * strikes. `trialStrikesSent` counts the strikes of the trial.
   */
  strikesSent: number;
  trialStrikesSent: number;
}

/** Keeps this process's counts of each key: the store's last reply, and later decisions that were made without the store. */
export function createKeyLedger(bounds: Bounds) {
  const { windowsMs } = bounds;
  const entries = new Map<string, Entry>();
  const unsentIds = new Set<string>();

  return {
    /** Makes the call that decides requests of a key. The call also contains the key's unsent local decisions. */
    openCall: (terms: KeyTerms, asked: Asked, known?: KnownChanges) =>
      toCall(entryOf(terms, alignLimits(terms.limits, terms.trial)), asked, known),

    /** Records the store's reply to a call. The counts of the reply replace the earlier counts. */
    settle(call: QuotaCall, { state, nowMs }: QuotaOutcome) {
      const entry = entryOf(call, triedIn(call));
      noteReply(entry, call);
      entry.state = withPending(state, entry, nowMs);
      // The reply to a report does not show whether the key has changed, so it does not prolong the time in which `refuse` may refuse.
      if (call.requests > 0) entry.seenMs = nowMs;
      entry.seen = entry.tried;
    },

    /** Ends a call that the store has not decided. The local decisions in the call are sent again later, unless the call may have run. */
    giveUp(call: QuotaCall, mayHaveRun: boolean) {
      const entry = entryOf(call, triedIn(call));
      noteReply(entry, call);
      entry.seenMs = undefined;
      if (call.unsent === undefined || mayHaveRun) return;
      keep(entry, entry.unsent === undefined ? call.unsent : addUp(call.unsent, entry.unsent));
    },

    /**
     * Refuses one request without a call to the store. The store's last reply must be less than `bounds.refusalRememberedMs` old, and must
     * show a ban, or a window that is too full for the request. A refusal by a full window counts towards the next ban, so the store must
     * receive the refusal before the next ban begins. If no ban is running, the function refuses only if the refusal may be reported later
     * (`mayHoldStrike`). The same must be true in the trial, because the store charges a request that the trial admits.
     *
     * @returns undefined when the store must decide
     */
    refuse(
      terms: KeyTerms,
      { units, trialUnits = units }: Omit<Run, 'requests'>,
      nowMs: number,
    ): QuotaOutcome | undefined {
      const entry = entries.get(terms.keyId);
      if (entry?.seenMs === undefined) return undefined;
      // A negative difference means that a clock was set back. If the difference is too large in either direction, the store decides. Its
      // reply corrects the estimated clock.
      if (Math.abs(nowMs - entry.seenMs) >= bounds.refusalRememberedMs) return undefined;
      const { keyId, bans } = terms;
      const tried = alignLimits(terms.limits, terms.trial);
      if (!isSame(entry.seen, tried)) return undefined;
      const { state, unsent } = entry;
      const { limits, trial } = tried;
      if (!mayRefuse(state, unsent, { limits, bans }, units, nowMs)) return undefined;
      if (trial !== undefined) {
        const held = unsent?.trial ?? unsent;
        if (!mayRefuse(readTrial(state, trial), held, { limits: trial, bans }, trialUnits, nowMs))
          return undefined;
      }
      const call = { keyId, ...tried, bans, requests: 1, units, trialUnits };
      const outcome = decideKey(state, call, windowsMs, nowMs);
      if (outcome.admitted === 1 || outcome.trial?.admitted === 1) return undefined;
      entry.state = outcome.state;
      if (outcome.refused === 1 || outcome.trial?.refused === 1)
        keep(entry, decidedAlone(unsent, outcome, call, nowMs));
      return outcome;
    },

    /**
     * Decides without the store, with the last known counts. The decision is sent to the store later, unless the store may already have
     * charged the requests. Each threshold is returned once, because the store cannot mark it as reported.
     */
    decideAlone(
      terms: KeyTerms,
      { requests, units, trialUnits, later }: Asked,
      nowMs: number,
      mayBeCharged: boolean,
      slots?: number,
    ) {
      const entry = entryOf(terms, alignLimits(terms.limits, terms.trial));
      const { keyId, bans, thresholds } = terms;
      const call = { keyId, ...entry.tried, bans, thresholds, requests, units, trialUnits, later };
      const outcome = decideKey(entry.state, call, windowsMs, nowMs, slots);
      const { state, reached } = outcome;
      entry.state = reached === undefined ? state : { ...state, told: tellAll(state.told, reached) };
      entry.seenMs = undefined;
      if (!mayBeCharged) keep(entry, decidedAlone(entry.unsent, outcome, call, nowMs));
      return outcome;
    },

    /** Returns the last known counts of a key, in the windows that contain `nowMs`. */
    lastSeen({ keyId, limits }: Pick<KeyTerms, 'keyId' | 'limits'>, nowMs: number): Readonly<QuotaState> {
      const state = { ...(entries.get(keyId)?.state ?? emptyQuotaState) };
      openWindows(state, limits, windowsMs, nowMs);
      return state;
    },

    /** Returns the last known counts of the trial, in the windows that contain `nowMs`. */
    lastSeenTrial(
      terms: Pick<KeyTerms, 'keyId' | 'limits'> & { readonly trial: Limits },
      nowMs: number,
    ): Readonly<QuotaState> {
      const { trial = [] } = alignLimits(terms.limits, terms.trial);
      const state = readTrial(entries.get(terms.keyId)?.state ?? emptyQuotaState, trial);
      openWindows(state, trial, windowsMs, nowMs);
      return state;
    },

    /** Replaces a key's counts after an operator's change: a lifted ban, a reset, or a grant. */
    replace(keyId: string, state: Readonly<QuotaState>) {
      const entry = entries.get(keyId);
      if (entry === undefined) return;
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
        if (entry !== undefined) calls.push(toCall(entry, nothingAsked));
      }
      return calls;
    },

    unsentKeys: () => unsentIds.size,
  };

  /** Whether a ban is running, or a window is too full for a request and the refusal may be reported later. */
  function mayRefuse(
    state: Readonly<QuotaState>,
    unsent: Unsent | undefined,
    { limits, bans }: Pick<KeyTerms, 'limits' | 'bans'>,
    units: number,
    nowMs: number,
  ): boolean {
    if (state.bannedUntilMs > nowMs) return true;
    return (
      roomIn(state, applyGrant(limits, state.grant, nowMs)) < units &&
      mayHoldStrike(state.strikes, unsent, bans)
    );
  }

  /**
   * Whether the process may report the next local refusal later instead of immediately. The process reports refusals sooner when the key
   * is close to its next ban.
   */
  function mayHoldStrike(strikes: number, unsent: Unsent | undefined, { after }: BanPolicy): boolean {
    const held = (unsent?.strikes ?? 0) + 1;
    return held < bounds.strikesPerReportMax && held <= (after - strikes) * bounds.strikesHeldShareMax;
  }

  function entryOf(
    { keyId, bans, thresholds }: Omit<KeyTerms, keyof TriedLimits>,
    tried: TriedLimits,
  ): Entry {
    const known = entries.get(keyId);
    if (known !== undefined) {
      known.tried = tried;
      known.bans = bans;
      known.thresholds = thresholds;
      return known;
    }
    if (entries.size >= bounds.rememberedKeysMax) forgetOldest();
    const entry: Entry = {
      keyId,
      tried,
      bans,
      thresholds,
      state: emptyQuotaState,
      seenMs: undefined,
      seen: undefined,
      unsent: undefined,
      strikesSent: 0,
      trialStrikesSent: 0,
    };
    entries.set(keyId, entry);
    return entry;
  }

  /**
   * Deletes the oldest entry whose strikes are not being sent to the store. An entry whose strikes are being sent is kept until the call
   * ends.
   */
  function forgetOldest(): void {
    for (const { keyId, strikesSent, trialStrikesSent } of entries.values()) {
      if (strikesSent + trialStrikesSent > 0) continue;
      entries.delete(keyId);
      unsentIds.delete(keyId);
      return;
    }
  }

  function toCall(
    entry: Entry,
    { requests, units, trialUnits, later }: Asked,
    { changedMs, leaksReadMs }: KnownChanges = {},
  ): QuotaCall {
    const { keyId, bans, thresholds, unsent } = entry;
    const { limits, trial } = entry.tried;
    if (unsent !== undefined) {
      entry.strikesSent += unsent.strikes;
      entry.trialStrikesSent += trialStrikes(unsent);
      entry.unsent = undefined;
      unsentIds.delete(keyId);
    }
    return {
      ...{ keyId, limits, trial, bans, thresholds, requests, units, trialUnits, later },
      ...{ changedMs, leaksReadMs, unsent },
    };
  }

  function keep(entry: Entry, unsent: Unsent): void {
    entry.unsent = unsent;
    unsentIds.add(entry.keyId);
  }
}

const nothingAsked: Asked = { requests: 0, units: 0 };

function triedIn({ limits, trial }: QuotaCall): TriedLimits {
  return { limits, trial };
}

function isSame(one: TriedLimits | undefined, other: TriedLimits): boolean {
  return one?.limits === other.limits && one.trial === other.trial;
}

/** The strikes of the trial. Decisions that were made without the trial count in the trial too. */
function trialStrikes(unsent: Unsent | undefined): number {
  return (unsent?.trial ?? unsent)?.strikes ?? 0;
}

/** Notes that the strikes of a call are no longer being sent to the store. */
function noteReply(entry: Entry, { unsent }: QuotaCall): void {
  entry.strikesSent -= unsent?.strikes ?? 0;
  entry.trialStrikesSent -= trialStrikes(unsent);
}

/** Returns the state of a reply, plus local decisions that the store had not received at the time of the reply. */
function withPending(state: Readonly<QuotaState>, entry: Entry, nowMs: number): Readonly<QuotaState> {
  const { unsent, strikesSent, trialStrikesSent, bans } = entry;
  const { limits, trial } = entry.tried;
  if (unsent === undefined && strikesSent + trialStrikesSent === 0) return state;
  const pending = { ...state };
  addPending(pending, unsent, strikesSent, { limits, bans }, nowMs);
  if (trial === undefined) return pending;
  const pendingOfTrial = readTrial(state, trial);
  addPending(pendingOfTrial, unsent?.trial ?? unsent, trialStrikesSent, { limits: trial, bans }, nowMs);
  return { ...pending, trial: differencesOf(pending, pendingOfTrial, limits) };
}

function addPending(
  state: QuotaState,
  unsent: Unsent | undefined,
  strikesSent: number,
  terms: Pick<KeyTerms, 'limits' | 'bans'>,
  nowMs: number,
): void {
  const known = unsent ?? { ...noCounts, ...banOf(state), strikes: 0 };
  addUnsent(state, { ...known, strikes: known.strikes + strikesSent }, terms, nowMs);
}

/** Adds a local decision to the unsent decisions. Strikes that have expired, or have led to a ban, are not sent. */
function decidedAlone(
  unsent: Unsent | undefined,
  outcome: Pick<QuotaOutcome, 'admitted' | 'refused' | 'admittedOf' | 'state' | 'trial'>,
  call: Pick<QuotaCall, 'limits' | 'trial' | keyof Asked>,
  nowMs: number,
): Unsent {
  const { refused, state, trial } = outcome;
  const counts = countsOf(state, chargedUnits(call, outcome), call.limits);
  const decided = { ...counts, ...banOf(state), strikes: refused };
  const all = unsent === undefined ? decided : addUp(unsent, decided);
  const kept = { ...all, strikes: Math.min(all.strikes, state.strikes) };
  if (call.trial === undefined || trial === undefined) return kept;
  const tried = { limits: call.trial, ...trialRuns(call, call.trial, state.grant, nowMs) };
  return { ...kept, trial: decidedAlone(unsent?.trial ?? unsent, trial, tried, nowMs) };
}

/** Returns counts with `used` units in each limited window. */
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

/**
 * Adds two sets of unsent decisions. If the counts of the key were reset after the earlier decisions, the counts of these decisions are
 * dropped. If a ban was lifted after the earlier decisions, the bans and strikes in these decisions are dropped.
 */
function addUp(earlier: Unsent, later: Unsent): Unsent {
  const sum = addUpCounts(earlier, later);
  if (earlier.trial === undefined && later.trial === undefined) return sum;
  return { ...sum, trial: addUpCounts(earlier.trial ?? earlier, later.trial ?? later) };
}

function addUpCounts(earlier: Unsent, later: Unsent): Unsent {
  const { trial: _, ...counts } = later;
  const sum = { ...counts };
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
