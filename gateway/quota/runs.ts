import { limitsOn } from '../shared/limits.ts';
import type { BanPolicy, Limits } from '../shared/model.ts';
import { isBanned, type SideCounts, strike } from './bans.ts';
import { charge, fitting, roomIn } from './windows.ts';

/** Consecutive requests of equal cost, which are charged in the same windows. */
export interface Run {
  readonly requests: number;
  /** The cost of each request in whole units. A request that costs 0 is refused only during a ban. */
  readonly units: number;
  /** The cost of each request in the trial, if it differs from `units` (`request/path/decide-units.ts`). */
  readonly trialUnits?: number | undefined;
  /** The operation, if a group of the plan or of the trial has it. The requests are also charged in the windows of the group. */
  readonly operation?: string | undefined;
}

export interface Outcome {
  admitted: number;
  refused: number;
  /** The refusal that leads to the ban counts as `banned`. */
  banned: number;
  /** The last requests of the call, which exceeded the concurrency limit. They are not charged and are no strikes. */
  crowded: number;
  /** Of each run. */
  admittedOf: number[];
}

export function newOutcome(): Outcome {
  return { admitted: 0, refused: 0, banned: 0, crowded: 0, admittedOf: [] };
}

export interface RunRules {
  readonly bans: BanPolicy;
  /** The limits that apply now (`applyGrant`). */
  readonly inForce: Limits;
  /** Requests of the call that may begin under the concurrency limit. */
  readonly slots: number;
  readonly nowMs: number;
}

/**
 * A ban is checked first, then the concurrency limit, and then the windows. Without room for one request of a run, there is no room for the
 * rest. @returns the number of admitted requests
 */
export function decideRun(
  counts: SideCounts,
  { requests, units, operation }: Run,
  { bans, inForce, slots, nowMs }: RunRules,
  outcome: Outcome,
): number {
  if (isBanned(counts, nowMs)) {
    outcome.banned += requests;
    return 0;
  }
  const free = slots - outcome.admitted;
  const charged = limitsOn(inForce, operation);
  const admitted = Math.min(fitting(requests, units, roomIn(counts, charged)), Math.max(0, free));
  outcome.admitted += admitted;
  charge(counts, charged, admitted * units);
  const rest = requests - admitted;
  const isCrowded = admitted >= free;
  if (rest > 0 && isCrowded) outcome.crowded += rest;
  else if (rest > 0) {
    const beforeBan = strike(counts, rest, bans, nowMs);
    outcome.refused += beforeBan;
    outcome.banned += rest - beforeBan;
  }
  return admitted;
}

export function decideRuns(counts: SideCounts, runs: readonly Run[], rules: RunRules): Outcome {
  const outcome = newOutcome();
  for (const run of runs) outcome.admittedOf.push(decideRun(counts, run, rules, outcome));
  return outcome;
}
