import type { WindowsMs } from '../shared/calendar-windows.ts';
import { isSameLimit } from '../shared/limits.ts';
import type { BanPolicy, Limits } from '../shared/model.ts';
import { ban, endStrikes, isBanned } from './bans.ts';
import { applyGrant, unendedGrant } from './grants.ts';
import { type QuotaState, sideOf } from './hash.ts';
import type { Concurrency } from './leases.ts';
import { decideRuns, type Outcome, type Run } from './runs.ts';
import { type Reached, untoldThresholds } from './thresholds.ts';
import { decideTrial, readTrial } from './trial.ts';
import { addUnsent, addUnsentBan, type Unsent } from './unsent.ts';
import { openWindows } from './windows.ts';

/**
 * Decides the requests of one key in order of arrival, all at the same time. `decide-key.lua` does the same inside Redis, and tests compare
 * the two.
 *
 * A decision on n requests has the same result as n decisions on one request each. Thresholds are compared with the counts after all
 * requests, also if no request was admitted, because an edit may have lowered a limit. Each decision returns them until `confirmTold` is
 * called.
 *
 * @param slots requests that may begin now under the concurrency limit of the key
 */
export function decideKey(
  before: Readonly<QuotaState>,
  call: QuotaCall,
  windowsMs: WindowsMs,
  nowMs: number,
  slots = Number.POSITIVE_INFINITY,
): QuotaOutcome {
  const { limits, trial, bans, unsent, runs } = call;
  const grant = unendedGrant(before.grant, nowMs);
  const plan: QuotaState = { ...before, grant };
  openWindows(plan, limits, windowsMs, nowMs);
  // The trial begins with the counts of the plan before this call.
  const trialState = trial && readTrial(before.trial, plan, { limits, trial });
  if (unsent) addUnsentBan(plan, unsent, bans, nowMs);
  bringUpToDate(plan, unsent, { limits, bans }, nowMs);
  const ofPlan = decideRuns(plan, runs, { bans, inForce: applyGrant(limits, grant, nowMs), slots, nowMs });
  const reached = reachedIn(plan, call, nowMs);
  const outcome = { nowMs, ...ofPlan, ...(reached && { reached }), state: plan };
  if (trial === undefined || trialState === undefined) return outcome;
  openWindows(trialState, trial, windowsMs, nowMs);
  // The unsent decisions have counts for the windows of the plan.
  const ofBoth = trial.filter((limit) => limits.some((ofPlan) => isSameLimit(ofPlan, limit)));
  bringUpToDate(trialState, unsent, { limits: ofBoth, bans }, nowMs);
  const ofTrial = decideTrial(trialState, trial, runs, { bans, grant, slots, nowMs }, ofPlan);
  plan.trial = sideOf(trialState);
  return { ...outcome, trial: { ...ofTrial, state: trialState } };
}

/** Ends expired strikes, and adds the decisions that a process made without the store. */
function bringUpToDate(
  state: QuotaState,
  unsent: Unsent | undefined,
  terms: { readonly limits: Limits; readonly bans: BanPolicy },
  nowMs: number,
): void {
  endStrikes(state, terms.bans, nowMs);
  if (unsent === undefined) return;
  addUnsent(state, unsent, terms.limits, nowMs);
  const isTooMany = unsent.strikes > 0 && state.strikes >= terms.bans.after;
  if (isTooMany && !isBanned(state, nowMs)) ban(state, terms.bans, nowMs);
}

/** Reached, but not reported. */
export function reachedIn(
  state: Readonly<QuotaState>,
  { limits, thresholds }: Pick<QuotaCall, 'limits' | 'thresholds'>,
  nowMs: number,
): readonly Reached[] | undefined {
  if (thresholds === undefined || thresholds.length === 0) return undefined;
  return untoldThresholds(state, applyGrant(limits, state.grant, nowMs), thresholds);
}

/** A process sends this about one key to the store. */
export interface QuotaCall {
  readonly keyId: string;
  readonly limits: Limits;
  readonly trial?: Limits | undefined;
  readonly bans: BanPolicy;
  /** Percentages of a limit that are reported when the key reaches them: whole numbers, ascending. */
  readonly thresholds?: readonly number[] | undefined;
  /** In order of arrival. Empty if the call only sends `unsent` or the lease. */
  readonly runs: readonly Run[];
  /** The `generation` of a key of the directory. The requests of a key that has changed since are not decided. */
  readonly changedMs?: number | undefined;
  /** For a key of the configuration: the last leaked secret that the process knows, epoch ms. Absent while there is none. */
  readonly leaksReadMs?: number | undefined;
  readonly unsent?: Unsent | undefined;
  /** Undefined without a concurrency limit. */
  readonly concurrency?: Concurrency | undefined;
}

export interface QuotaOutcome extends Readonly<Outcome> {
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  /** Reached, but not reported, the shortest window first. Absent if there are none. */
  readonly reached?: readonly Reached[];
  /** After all requests of the call. */
  readonly state: Readonly<QuotaState>;
  /** Absent without a trial. */
  readonly trial?: TrialDecided;
}

export interface TrialDecided extends Readonly<Outcome> {
  /** The counts of the trial after all requests of the call, and the other members as in the state of the plan. */
  readonly state: Readonly<QuotaState>;
}
