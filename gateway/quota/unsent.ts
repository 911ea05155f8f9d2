import { usedIn, type WindowCounts } from '../shared/calendar-windows.ts';
import type { BanPolicy, Limits } from '../shared/model.ts';
import { addStrikes, isBanned, type SideCounts } from './bans.ts';

/** A process's decisions on a key that were made without the store and have not been sent to the store. */
export interface Unsent extends Readonly<WindowCounts> {
  readonly strikes: number;
  readonly bannedUntilMs: number;
  readonly banLevel: number;
  /** The generation in the last reply that the process received. */
  readonly liftedMs: number;
  readonly resetMs: number;
  /** The decisions of the trial. Without this member, the trial decided as the plan. */
  readonly trial?: Unsent | undefined;
}

/**
 * Adds the local decisions of a process to the state. Units of an ended window are dropped. Counts never decrease. Decisions of an older
 * generation are dropped, so a lifted ban stays lifted. The added ban ends at most `maxMs` from now, even if the clock of the process was
 * wrong.
 */
export function addUnsent(
  state: SideCounts & { readonly liftedMs: number; readonly resetMs: number },
  unsent: Unsent,
  { limits, bans }: { readonly limits: Limits; readonly bans: BanPolicy },
  nowMs: number,
): void {
  if (unsent.resetMs === state.resetMs) {
    for (const { window } of limits) {
      if (unsent[window] === state[window]) state[usedIn[window]] += unsent[usedIn[window]];
    }
  }
  if (unsent.liftedMs !== state.liftedMs) return;
  if (unsent.bannedUntilMs > state.bannedUntilMs) {
    state.bannedUntilMs = Math.max(state.bannedUntilMs, Math.min(unsent.bannedUntilMs, nowMs + bans.maxMs));
    state.banLevel = Math.max(state.banLevel, unsent.banLevel);
  }
  // Refusals during a ban are not counted.
  if (unsent.strikes === 0 || isBanned(state, nowMs)) return;
  addStrikes(state, unsent.strikes, nowMs);
}
