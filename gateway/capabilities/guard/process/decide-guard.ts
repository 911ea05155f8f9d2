import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { Revert } from '../guard.ts';
import { activeMax, addCounts, type GuardCounts, type KeyCounts, sumOf } from './guard-counts.ts';

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

/** The terms of a guard for a decision. */
export interface GuardTerms {
  readonly refusedShareMax: number;
  readonly untilMs: number;
}

/** The state of a guard, with the counts of the last ten minutes by the number of their slot. */
export interface GuardRecord {
  state: GuardState;
  readonly slots: Map<number, GuardCounts>;
}

/** The requests that the watched windows decided in the last ten minutes, and the requests of these that they refused. */
export interface GuardFigures {
  readonly requests: number;
  readonly refused: number;
}

type SlotBounds = Pick<Bounds, 'guardSlotMs' | 'guardSlots' | 'guardRequestsMin' | 'guardKeysPerSlotMax'>;

/**
 * Adds a report to the record of a guard, and decides whether the plan returns to its earlier limits. `decide-guard.lua` does the same in
 * Redis.
 *
 * A report without counts only reads the state. If the store has lost its state, the report restores the state. Counts of an earlier
 * generation are ignored, because they belong to the time before a retry.
 *
 * @param nowMs the store's clock, epoch ms
 * @returns the figures of the last ten minutes, and whether this report has reverted the plan
 */
export function addReport(
  record: GuardRecord,
  { known, keysMin, periods }: GuardReport,
  { refusedShareMax, untilMs }: GuardTerms,
  nowMs: number,
  bounds: SlotBounds,
): { readonly figures: GuardFigures; readonly hasChanged: boolean } {
  const { guardSlotMs, guardKeysPerSlotMax, guardRequestsMin } = bounds;
  if (isNewer(known, record.state)) restart(record, known);
  const isWatching = record.state.revert === undefined && nowMs < untilMs;
  if (isWatching && known.generation === record.state.generation) {
    for (const { agoMs, counts } of periods) {
      const slot = Math.floor((nowMs - agoMs) / guardSlotMs);
      const there: GuardCounts = record.slots.get(slot) ?? new Map();
      addCounts(there, counts, guardKeysPerSlotMax);
      record.slots.set(slot, there);
    }
  }
  dropSlots(record.slots, nowMs, bounds);
  const keys = [...sumOf(record.slots.values(), guardKeysPerSlotMax).values()];
  const figures = figuresOf(keys);
  const counted =
    isWatching && figures.requests >= guardRequestsMin
      ? refusalsOf(keys, refusedShareMax, keysMin)
      : undefined;
  if (counted === undefined) return { figures, hasChanged: false };
  record.state = { ...record.state, revert: { sinceMs: nowMs, ...counted } };
  return { figures, hasChanged: true };
}

/** Lets a reverted plan try its edit again. The watch starts anew without counts. @returns false if the plan is not reverted */
export function retryEdit(record: GuardRecord, known: GuardState): boolean {
  if (isNewer(known, record.state)) restart(record, known);
  if (record.state.revert === undefined) return false;
  restart(record, { generation: record.state.generation + 1, revert: undefined });
  return true;
}

function restart(record: GuardRecord, state: GuardState): void {
  if (state.generation !== record.state.generation) record.slots.clear();
  record.state = state;
}

export function isNewer(one: GuardState, other: GuardState): boolean {
  if (one.generation !== other.generation) return one.generation > other.generation;
  return one.revert !== undefined && other.revert === undefined;
}

/** Drops the slots that are older than ten minutes, and the slots in the future after a step of the clock. */
function dropSlots(
  slots: Map<number, GuardCounts>,
  nowMs: number,
  { guardSlotMs, guardSlots }: SlotBounds,
): void {
  const last = Math.floor(nowMs / guardSlotMs);
  for (const slot of slots.keys()) if (slot > last || slot <= last - guardSlots) slots.delete(slot);
}

function figuresOf(keys: readonly KeyCounts[]): GuardFigures {
  let [requests, refused] = [0, 0];
  for (const key of keys) {
    requests += key.requests;
    refused += key.refused;
  }
  return { requests, refused };
}

/**
 * Returns the counted requests and refusals if the refusals revert the plan; otherwise undefined.
 *
 * With n active keys, each key counts for at most 1/n of the requests, and for at most 1/n of the refusals that a revert needs. From five
 * active keys on, the part is a fifth. The requests of a key beyond its part do not count, and its refusals count in proportion. A revert
 * therefore needs n full parts.
 */
function refusalsOf(
  keys: readonly KeyCounts[],
  refusedShareMax: number,
  keysMin: number,
): GuardFigures | undefined {
  const refusing = keys.filter(({ refused }) => refused > 0);
  if (refusing.length < keysMin) return undefined;
  const parts = Math.min(keys.length, activeMax);
  const requestsMax = partOf(
    keys.map(({ requests }) => requests),
    parts,
  );
  let [full, refused] = [0, 0];
  for (const key of refusing) {
    const counted = key.refused * Math.min(1, requestsMax / key.requests);
    full += Math.min(1, counted / (refusedShareMax * requestsMax));
    refused += counted;
  }
  // The sum may be slightly too small, because a share such as 0.07 has no exact binary form.
  if (full < parts * (1 - 1e-9)) return undefined;
  return { requests: Math.round(requestsMax * parts), refused: Math.ceil(refused - 1e-9) };
}

/**
 * Returns the number of requests of one key that count at most. This number is the given part of all requests that count. If no key has
 * more requests, all requests count.
 */
function partOf(requests: readonly number[], parts: number): number {
  const part = requests.reduce((sum, one) => sum + one, 0) / parts;
  const others = requests.filter((one) => one <= part);
  return others.length === requests.length ? part : partOf(others, parts - (requests.length - others.length));
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
