import { isSameLimit, limitsOn } from '../shared/limits.ts';
import type { BanPolicy, Grant, Limits } from '../shared/model.ts';
import { banOf, isBanned, type SideCounts } from './bans.ts';
import { applyGrant } from './grants.ts';
import { decideRun, newOutcome, type Outcome, type Run } from './runs.ts';
import { fieldOf, noneIn, numberOf, usedFieldOf, usedOf } from './windows.ts';

/**
 * The counts of the trial. Those that it does not have are copied from the plan: at the beginning of a trial or of a further window, and
 * after a reset.
 *
 * @param stored undefined if the trial has no counts
 * @param plan the counts before the call, with open windows
 * @param limits the limits of the plan
 */
export function readTrial<State extends Readonly<SideCounts>>(
  stored: Readonly<SideCounts> | undefined,
  plan: State,
  { limits, trial }: { readonly limits: Limits; readonly trial: Limits },
): State {
  const counts: SideCounts = { ...plan, ...noneIn(plan), ...(stored ?? banOf(plan)) };
  for (const limit of trial) {
    if (stored !== undefined && numberOf(stored, limit) > 0) continue;
    const isOfPlan = limits.some((ofPlan) => isSameLimit(ofPlan, limit));
    counts[fieldOf(limit)] = isOfPlan ? numberOf(plan, limit) : 0;
    counts[usedFieldOf(limit)] = isOfPlan ? usedOf(plan, limit) : 0;
  }
  return counts as State;
}

/**
 * Above the limits with and without the grant. Such a request would get 403, and would not be charged (`request/path/decide-units.ts`). If
 * only a grant makes a limit lower than the cost, a window would refuse the request.
 *
 * @param trial the limits of the trial that the request is charged in (`limitsOn`)
 */
export function costsTooMuch(units: number, trial: Limits, grant: Grant | undefined, nowMs: number): boolean {
  const isAbove = (limits: Limits) => limits.some(({ max }) => units > max);
  return units > 1 && isAbove(trial) && isAbove(applyGrant(trial, grant, nowMs));
}

/** The concurrency limit refuses the same requests as for the plan, unless the trial has banned the key. */
export function decideTrial(
  counts: SideCounts,
  trial: Limits,
  runs: readonly Run[],
  rules: {
    readonly bans: BanPolicy;
    readonly grant: Grant | undefined;
    readonly slots: number;
    readonly nowMs: number;
  },
  ofPlan: Outcome,
): Outcome {
  const { bans, grant, nowMs } = rules;
  const outcome = newOutcome();
  const inForce = applyGrant(trial, grant, nowMs);
  // The slots that the earlier runs of the plan have left.
  let places = rules.slots;
  for (const [n, { requests, units: ofRun, trialUnits = ofRun, operation }] of runs.entries()) {
    const units = costsTooMuch(trialUnits, limitsOn(trial, operation), grant, nowMs) ? 0 : trialUnits;
    const left = places - (ofPlan.admittedOf[n] ?? 0);
    const crowdedOut = left > 0 ? 0 : requests - Math.min(requests, Math.max(0, places));
    const run = { requests: requests - crowdedOut, units, operation };
    const admitted = decideRun(
      counts,
      run,
      { bans, inForce, slots: Number.POSITIVE_INFINITY, nowMs },
      outcome,
    );
    outcome.admittedOf.push(admitted);
    if (isBanned(counts, nowMs)) outcome.banned += crowdedOut;
    places = left;
  }
  return outcome;
}
