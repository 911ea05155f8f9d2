import type { Revert } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { activeMax, addCounts, byGroup, type GuardCounts, isGroup, noCounts } from './guard-counts.ts';

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

/** The figures of the last ten minutes. */
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
  { known, periods }: GuardReport,
  { refusedShareMax, untilMs }: GuardTerms,
  nowMs: number,
  bounds: SlotBounds,
): { readonly figures: GuardFigures; readonly hasChanged: boolean } {
  const { guardSlotMs, guardKeysPerSlotMax } = bounds;
  if (isNewer(known, record.state)) restart(record, known);
  const isWatching = record.state.revert === undefined && nowMs < untilMs;
  if (isWatching && known.generation === record.state.generation) {
    for (const { agoMs, counts } of periods) {
      const slot = Math.floor((nowMs - agoMs) / guardSlotMs);
      const there = record.slots.get(slot) ?? noCounts();
      addCounts(there, counts, guardKeysPerSlotMax);
      record.slots.set(slot, there);
    }
  }
  dropSlots(record.slots, nowMs, bounds);
  const figures = figuresOf(record.slots);
  const hasChanged = isWatching && isReached([...record.slots.values()], figures, refusedShareMax, bounds);
  if (hasChanged) record.state = { ...record.state, revert: { sinceMs: nowMs, ...figures } };
  return { figures, hasChanged };
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

function figuresOf(slots: ReadonlyMap<number, GuardCounts>): GuardFigures {
  let [requests, refused] = [0, 0];
  for (const counts of slots.values()) {
    requests += counts.requests;
    for (const refusals of counts.refused.values()) refused += refusals;
  }
  return { requests, refused };
}

/**
 * Whether the share of refused requests has reached the maximum. The refusals of one key count up to a fifth of the maximum. With fewer than
 * five active keys, the refusals of one key count up to the maximum divided by the number of active keys.
 */
function isReached(
  slots: readonly GuardCounts[],
  { requests, refused }: GuardFigures,
  refusedShareMax: number,
  { guardRequestsMin }: SlotBounds,
): boolean {
  // The product may be slightly too large, because a share such as 0.07 has no exact binary form.
  const wanted = refusedShareMax * requests * (1 - 1e-9);
  if (requests < guardRequestsMin || refused < wanted) return false;
  const sums = new Map<string, number>();
  const active = new Set<string>();
  for (const counts of slots) {
    for (const [name, refusals] of counts.refused) sums.set(name, (sums.get(name) ?? 0) + refusals);
    for (const name of counts.active) active.add(name);
  }
  const all = [...sums.keys()].some(isGroup) ? byGroup(sums) : sums;
  const ofOneKeyMax = (refusedShareMax * requests) / Math.max(1, Math.min(active.size, activeMax));
  let counted = 0;
  for (const refusals of all.values()) counted += Math.min(refusals, ofOneKeyMax);
  return counted >= wanted;
}
