import { noCounts, type WindowCounts } from '../shared/calendar-windows.ts';
import { limitsOn } from '../shared/limits.ts';
import type { BanPolicy, Limits } from '../shared/model.ts';
import { addStrikes, type BanCounts, isBanned, type SideCounts } from './bans.ts';
import type { Outcome, Run } from './runs.ts';
import { charge, fieldOf, numberOf, usedFieldOf, usedOf, windowOf } from './windows.ts';

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
    for (const limit of limits) {
      if (numberOf(unsent, limit) === numberOf(state, limit)) charge(state, [limit], usedOf(unsent, limit));
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
 * Adds two sets of unsent decisions. If the counts of the key were reset after the earlier decisions, the counts of these decisions are
 * dropped. If a ban was lifted after the earlier decisions, the bans and strikes in these decisions are dropped.
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
