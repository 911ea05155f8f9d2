import type {
  GuardFigures,
  GuardReport,
} from '../../../../gateway/capabilities/guard/process/decide-guard.ts';
import {
  activeMax,
  addCounts,
  type GuardCounts,
  type KeyCounts,
} from '../../../../gateway/capabilities/guard/process/guard-counts.ts';
import type { Bounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';

/** A guard that decides as `decide-guard.lua` does, for reports of the last ten minutes without a retry. */
export interface GuardModel {
  /** The counts by the number of their slot. */
  readonly slots: Map<number, GuardCounts>;
  /** The counted requests and refusals of the revert. */
  revert: GuardFigures | undefined;
}

/**
 * Adds a report, and decides whether the plan returns to its earlier limits.
 *
 * @param refusedShareMax the share of refused requests that the guard permits
 * @param nowMs the time of the report, epoch ms
 * @returns the figures of all reports, and whether this report has reverted the plan
 */
export function addReport(
  model: GuardModel,
  { keysMin, periods }: Pick<GuardReport, 'keysMin' | 'periods'>,
  refusedShareMax: number,
  nowMs: number,
  { guardSlotMs, guardKeysPerSlotMax, guardRequestsMin }: Bounds,
): { readonly figures: GuardFigures; readonly hasChanged: boolean } {
  const isWatching = model.revert === undefined;
  for (const { agoMs, counts } of isWatching ? periods : []) {
    const slot = Math.floor((nowMs - agoMs) / guardSlotMs);
    const there: GuardCounts = model.slots.get(slot) ?? new Map();
    addCounts(there, counts, guardKeysPerSlotMax);
    model.slots.set(slot, there);
  }
  const keys = [...sumOf(model.slots.values(), guardKeysPerSlotMax).values()];
  const figures = figuresOf(keys);
  if (isWatching && figures.requests >= guardRequestsMin)
    model.revert = refusalsOf(keys, refusedShareMax, keysMin);
  return { figures, hasChanged: isWatching && model.revert !== undefined };
}

/** Adds up the counts of slots. If a slot has groups, all keys are counted by group. */
function sumOf(slots: Iterable<GuardCounts>, namesMax: number): GuardCounts {
  const sum: GuardCounts = new Map();
  for (const counts of slots) addCounts(sum, counts, namesMax);
  // The maximum 0 replaces all keys by their groups.
  if (sum.keys().some((name) => name.length === 1)) addCounts(sum, new Map(), 0);
  return sum;
}

function figuresOf(keys: readonly KeyCounts[]): GuardFigures {
  let [requests, refused] = [0, 0];
  for (const key of keys) {
    requests += key.requests;
    refused += key.refused;
  }
  return { requests, refused };
}

/** Returns the counted requests and refusals if the refusals revert the plan; otherwise undefined. */
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
  if (full < parts * (1 - 1e-9)) return undefined;
  return { requests: Math.round(requestsMax * parts), refused: Math.ceil(refused - 1e-9) };
}

function partOf(requests: readonly number[], parts: number): number {
  const part = requests.reduce((sum, one) => sum + one, 0) / parts;
  const others = requests.filter((one) => one <= part);
  return others.length === requests.length ? part : partOf(others, parts - (requests.length - others.length));
}
