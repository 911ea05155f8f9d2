import { noCounts, type WindowCounts } from '../shared/calendar-windows.ts';
import { limitsOn } from '../shared/limits.ts';
import type { BanPolicy, Limits } from '../shared/model.ts';
import { addStrikes, type BanCounts, isBanned, type SideCounts } from './bans.ts';
import type { Outcome, Run } from './runs.ts';
import { charge, fieldOf, numberOf, usedFieldOf, usedOf, windowOf } from './windows.ts';

/**
 * Decisions of a process on a key without the store, not yet sent to it. A trial adds the same units and strikes, as if it had decided as
 * the plan did, but not the ban, because the plan may have had it before.
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
 * The ban ends at most `maxMs` from now, even if the clock of the process was wrong. A ban of an older generation is dropped, so a lifted
 * ban stays lifted.
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
 * Units of an ended window, and decisions of an older generation, are dropped. Counts never decrease. Refusals during a ban are not
 * counted.
 */
export function addUnsent(
  state: SideCounts & { readonly liftedMs: number; readonly resetMs: number },
  unsent: Unsent,
  limits: Limits,
  nowMs: number,
): void {
  if (unsent.resetMs === state.resetMs) {
    for (const limit of limits) {
      if (numberOf(unsent, limit) === numberOf(state, limit)) charge(state, [limit], usedOf(unsent, limit));
    }
  }
  const isCurrent = unsent.liftedMs === state.liftedMs && unsent.strikes > 0;
  if (isCurrent && !isBanned(state, nowMs)) addStrikes(state, unsent.strikes, nowMs);
}

/** Adds a local decision. Strikes that have expired, or have led to a ban, are not sent. */
export function addDecided(
  unsent: Unsent | undefined,
  call: { readonly limits: Limits; readonly runs: readonly Run[] },
  outcome: Readonly<Outcome>,
  state: Readonly<SideCounts & { liftedMs: number; resetMs: number }>,
): Unsent {
  const { bannedUntilMs, banLevel, liftedMs, resetMs } = state;
  const ban = { bannedUntilMs, banLevel, liftedMs, resetMs, strikes: outcome.refused };
  const counts: WindowCounts & typeof ban = { ...noCounts, ...ban };
  for (const limit of call.limits) {
    counts[fieldOf(limit)] = numberOf(state, limit);
    counts[usedFieldOf(limit)] = 0;
  }
  for (const [at, { units, operation }] of call.runs.entries()) {
    charge(counts, limitsOn(call.limits, operation), units * (outcome.admittedOf[at] ?? 0));
  }
  const all = unsent === undefined ? counts : addUp(unsent, counts);
  return { ...all, strikes: Math.min(all.strikes, state.strikes) };
}

/**
 * If the counts were reset after the earlier decisions, their counts are dropped. If a ban was lifted after them, their bans and strikes
 * are dropped.
 */
export function addUp(earlier: Unsent, later: Unsent): Unsent {
  const sum: Unsent & WindowCounts = { ...later };
  if (earlier.resetMs === later.resetMs) {
    for (const field of Object.keys(earlier)) {
      const window = windowOf(field);
      if (window && numberOf(earlier, window) === numberOf(later, window))
        sum[usedFieldOf(window)] = usedOf(later, window) + usedOf(earlier, window);
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
