import type { Revert } from '../guard.ts';
import { activeMax, type GuardCounts } from './guard-counts.ts';

/**
 * The state of a guarded edit that a process knows. Each retry by an operator increases the generation. A state with a higher generation is
 * newer. In the same generation, a revert is newer than no revert.
 */
export interface GuardState {
  readonly generation: number;
  readonly revert: Revert | undefined;
}

export const firstState: GuardState = { generation: 0, revert: undefined };

/** A report of one process: its state, and the counts that it has not reported before. */
export interface GuardReport {
  readonly known: GuardState;
  /** The number of keys that must have refusals for a revert (`keysForRevert`). */
  readonly keysMin: number;
  readonly periods: readonly CountedPeriod[];
}

/** The counts of a process in a period of up to one slot that began `agoMs` before the report. */
export interface CountedPeriod {
  readonly agoMs: number;
  readonly counts: GuardCounts;
}

/** The requests that the watched windows decided in the last ten minutes, and the requests of these that they refused. */
export interface GuardFigures {
  readonly requests: number;
  readonly refused: number;
}

export function isNewer(one: GuardState, other: GuardState): boolean {
  if (one.generation !== other.generation) return one.generation > other.generation;
  return one.revert !== undefined && other.revert === undefined;
}

/**
 * Returns the number of keys that must have refusals for a revert: at least two keys, and half of the active keys, but at most five. A plan
 * with one key reverts by this key.
 *
 * @param keys the number of keys of the plan that are known
 * @param active the number of keys that were active in the last 24 hours
 */
export function keysForRevert(keys: number, active: number): number {
  if (Math.max(keys, active) < 2) return 1;
  return Math.max(2, Math.min(activeMax, Math.ceil(active / 2)));
}
