import { noCounts, usedIn, type WindowCounts } from '../shared/calendar-windows.ts';
import { type BanPolicy, type Limits, planWindows } from '../shared/model.ts';
import { addStrikes, type BanCounts, isBanned, type SideCounts } from './bans.ts';
import type { Outcome, Run } from './runs.ts';

/**
 * A process's decisions on a key that were made without the store and have not been sent to the store. A trial adds the same units and
 * strikes, as if it had decided as the plan did. It does not add the ban, because the plan may have had it before.
 */
export interface Unsent extends Readonly<WindowCounts> {
  readonly strikes: number;
  readonly bannedUntilMs: number;
  readonly banLevel: number;
  /** The generation in the last reply that the process received. */
  readonly liftedMs: number;
  readonly resetMs: number;
}

/**
 * Adds the ban of local decisions. The added ban ends at most `maxMs` from now, even if the clock of the process was wrong. A ban of an older
 * generation is dropped, so a lifted ban stays lifted.
 */
export function addUnsentBan(
  state: BanCounts & { readonly liftedMs: number },
  unsent: Unsent,
  bans: BanPolicy,
  nowMs: number,
): void {
  if (unsent.liftedMs !== state.liftedMs || unsent.bannedUntilMs <= state.bannedUntilMs) return;
  state.bannedUntilMs = Math.max(state.bannedUntilMs, Math.min(unsent.bannedUntilMs, nowMs + bans.maxMs));
  state.banLevel = Math.max(state.banLevel, unsent.banLevel);
}

/**
 * Adds the units and strikes of local decisions. Units of an ended window are dropped. Counts never decrease. Decisions of an older
 * generation are dropped. Refusals during a ban are not counted.
 */
export function addUnsent(
  state: SideCounts & { readonly liftedMs: number; readonly resetMs: number },
  unsent: Unsent,
  limits: Limits,
  nowMs: number,
): void {
  if (unsent.resetMs === state.resetMs) {
    for (const { window } of limits) {
      if (unsent[window] === state[window]) state[usedIn[window]] += unsent[usedIn[window]];
    }
  }
  const isCurrent = unsent.liftedMs === state.liftedMs && unsent.strikes > 0;
  if (isCurrent && !isBanned(state, nowMs)) addStrikes(state, unsent.strikes, nowMs);
}

/** Returns the decisions of a process, with one more local decision. Strikes that have expired, or have led to a ban, are not sent. */
export function addDecided(
  unsent: Unsent | undefined,
  call: { readonly limits: Limits; readonly runs: readonly Run[] },
  outcome: Readonly<Outcome>,
  state: Readonly<SideCounts & { liftedMs: number; resetMs: number }>,
): Unsent {
  const { bannedUntilMs, banLevel, liftedMs, resetMs } = state;
  const counts = { ...noCounts, bannedUntilMs, banLevel, liftedMs, resetMs, strikes: outcome.refused };
  const units = call.runs.reduce((sum, run, at) => sum + run.units * (outcome.admittedOf[at] ?? 0), 0);
  for (const { window } of call.limits) {
    counts[window] = state[window];
    counts[usedIn[window]] = units;
  }
  const all = unsent === undefined ? counts : addUp(unsent, counts);
  return { ...all, strikes: Math.min(all.strikes, state.strikes) };
}

/**
 * Adds two sets of unsent decisions. If the counts of the key were reset after the earlier decisions, the counts of these decisions are
 * dropped. If a ban was lifted after the earlier decisions, the bans and strikes in these decisions are dropped.
 */
export function addUp(earlier: Unsent, later: Unsent): Unsent {
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
