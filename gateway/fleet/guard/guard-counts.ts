import { type GuardedEdit, limitOf } from '../../keys/guards.ts';
import type { Decision } from '../../shared/model.ts';
import { hashOf } from '../../shared/structures/place-table.ts';

/**
 * The counted requests of a guarded plan in a period. A name stands for a key (`nameOf`). If more keys have refusals than a slot may list,
 * keys whose names begin with the same two digits form a group, and the guard treats a group as one key. One key's refusals count only up to
 * a limit, so groups can only make the guard count fewer refusals. Refusals in five of the 256 groups can revert a plan.
 */
export interface GuardCounts {
  requests: number;
  /** The refusals by a watched window, by the name of the key or group. */
  readonly refused: Map<string, number>;
  /** The names of up to five keys with requests. */
  readonly active: Set<string>;
}

/** A guard needs no more active keys, because the refusals of each key count up to a fifth from five active keys on. */
export const activeMax = 5;

/** The number of digits of a key's name, and of a group's name. */
const [nameDigits, groupDigits] = [8, 2];

export function noCounts(): GuardCounts {
  return { requests: 0, refused: new Map(), active: new Set() };
}

/** The counts of a process by the ids of keys. The names of keys are computed later, because most requests are counted only. */
export class RequestCounts {
  requests = 0;
  readonly #refused = new Map<string, number>();
  /** The refusals of further keys, by group. */
  readonly #groups = new Map<string, number>();
  readonly #active = new Set<string>();

  /** Counts a decided request. The request costs `units`. Requests during a ban and undecided requests do not count. */
  count(edit: GuardedEdit, { keyId, decision, units }: CountedRequest, keysMax: number): void {
    const { kind } = decision;
    if (kind === 'banned' || kind === 'unavailable') return;
    this.requests += 1;
    if (this.#active.size < activeMax) this.#active.add(keyId);
    if (!isRefusedByEdit(edit, decision, units)) return;
    const refusals = this.#refused.get(keyId);
    if (refusals !== undefined || this.#refused.size < keysMax) this.#refused.set(keyId, (refusals ?? 0) + 1);
    else addTo(this.#groups, groupOf(nameOf(keyId)), 1);
  }

  byName(): GuardCounts {
    const refused = new Map(this.#groups);
    for (const [keyId, refusals] of this.#refused) addTo(refused, nameOf(keyId), refusals);
    return { requests: this.requests, refused, active: new Set([...this.#active].map(nameOf)) };
  }
}

interface CountedRequest {
  readonly keyId: string;
  readonly decision: Decision;
  readonly units: number;
}

/**
 * Whether a window that the edit made smaller refused the request. If a grant has replaced the limit of the window, the edit is not the
 * reason. A request that costs more than a limit is refused too, unless it also cost more before the edit.
 */
function isRefusedByEdit(
  { windows, limits, guard }: GuardedEdit,
  decision: Decision,
  units: number,
): boolean {
  const { inForce, windows: all } = decision.rateLimit;
  if (decision.kind === 'refused') {
    return windows.some((name) => name === inForce.name) && inForce.limit === limitOf(limits, inForce.name);
  }
  if (decision.kind !== 'admitted' || decision.units >= units) return false;
  return all.some(({ name, limit }) => {
    const isWatched = windows.some((one) => one === name) && limit === limitOf(limits, name);
    return isWatched && limit < units && (limitOf(guard.before, name) ?? units) >= units;
  });
}

/** Adds the counts `more` to `counts`. */
export function addCounts(counts: GuardCounts, more: GuardCounts, namesMax: number): void {
  counts.requests += more.requests;
  for (const [name, refusals] of more.refused) addRefusals(counts.refused, name, refusals, namesMax);
  for (const name of more.active) if (counts.active.size < activeMax) counts.active.add(name);
}

/** Adds refusals of a key or group. If more than `namesMax` names have refusals, groups replace all keys. */
export function addRefusals(
  refused: Map<string, number>,
  name: string,
  refusals: number,
  namesMax: number,
): void {
  addTo(refused, name, refusals);
  if (refused.size <= namesMax) return;
  const groups = byGroup(refused);
  refused.clear();
  for (const [group, sum] of groups) refused.set(group, sum);
}

/** Adds up the refusals of each group. */
export function byGroup(refused: ReadonlyMap<string, number>): Map<string, number> {
  const groups = new Map<string, number>();
  for (const [name, refusals] of refused) addTo(groups, groupOf(name), refusals);
  return groups;
}

function addTo(sums: Map<string, number>, name: string, refusals: number): void {
  sums.set(name, (sums.get(name) ?? 0) + refusals);
}

function groupOf(name: string): string {
  return name.slice(0, groupDigits);
}

export function isGroup(name: string): boolean {
  return name.length === groupDigits;
}

/** A short name for a key: a hash of its id (FNV-1a with the final mix of MurmurHash3) in hex. */
function nameOf(keyId: string): string {
  let hash = hashOf(keyId);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return (hash >>> 0).toString(16).padStart(nameDigits, '0');
}
