import { limitsOn, maxOf } from '../../../shared/limits.ts';
import type { Decision, PlanWindow, Window } from '../../../shared/model.ts';
import { hashOf } from '../../../shared/structures/place-table.ts';
import type { GuardedEdit } from '../guarded-edit.ts';

/**
 * The counted requests of a guarded plan in a period, by name. A name stands for a key (`nameOf`). If more keys have requests than a slot may
 * list, keys whose names begin with the same digit form a group, and the guard treats a group as one key.
 */
export type GuardCounts = Map<string, KeyCounts>;

export interface KeyCounts {
  readonly requests: number;
  /** The requests of these that a watched window refused. */
  readonly refused: number;
}

/** From five active keys on, each key counts for at most a fifth. */
export const activeMax = 5;

/** The number of digits of a key's name, and of a group's name. */
const [nameDigits, groupDigits] = [8, 1];

/** The counts of a process by the ids of keys. The names of keys are computed later, because most requests are counted only. */
export class RequestCounts {
  readonly #keys = new Map<string, { requests: number; refused: number }>();
  /** The counts of further keys, by group. */
  readonly #groups: GuardCounts = new Map();

  get isEmpty(): boolean {
    return this.#keys.size === 0;
  }

  /** Counts a request of a key if the watched windows decided it. */
  count(edit: GuardedEdit, request: CountedRequest, keysMax: number): void {
    const { keyId } = request;
    const outcome = outcomeOf(edit, request);
    if (outcome === undefined) return;
    const refused = outcome === 'refused' ? 1 : 0;
    const counts = this.#keys.get(keyId);
    if (counts !== undefined) {
      counts.requests += 1;
      counts.refused += refused;
    } else if (this.#keys.size < keysMax) this.#keys.set(keyId, { requests: 1, refused });
    else addTo(this.#groups, groupOf(nameOf(keyId)), { requests: 1, refused });
  }

  byName(): GuardCounts {
    const counts: GuardCounts = new Map(this.#groups);
    for (const [keyId, ofKey] of this.#keys) addTo(counts, nameOf(keyId), ofKey);
    return counts;
  }
}

export interface CountedRequest {
  readonly keyId: string;
  readonly decision: Decision;
  /** The cost of the request. */
  readonly units: number;
  /** The id of the operation. */
  readonly operation?: string | undefined;
}

/**
 * Returns what the watched windows decided; undefined if they did not decide the request. A watched window decides a request if it has the
 * plan's own limit, and if no other limit refuses the request. The limit of a grant is not the plan's own limit.
 *
 * A request whose cost exceeds a limit of its key is decided with the cost 0, and gets 403. The watched windows have refused it if the limits
 * before the edit permitted its cost.
 */
function outcomeOf(
  { watched, limits, guard }: GuardedEdit,
  { decision, units, operation }: CountedRequest,
): 'admitted' | 'refused' | undefined {
  const { kind } = decision;
  if (units === 0 || (kind !== 'admitted' && kind !== 'refused')) return undefined;
  const { windows } = decision.rateLimit;
  // The windows of a key have no address bucket among them.
  const limitOf = ({ name, group }: Window) => ({ window: name as PlanWindow, group });
  const isWatched = (window: Window) =>
    maxOf(watched, limitOf(window)) !== undefined && window.limit === maxOf(limits, limitOf(window));
  if (!windows.some(isWatched)) return undefined;
  const isTooDear = kind === 'admitted' && decision.units < units;
  if (kind === 'admitted' && !isTooDear) return 'admitted';
  const before = limitsOn(guard.before, operation);
  const mayPass = (window: Window) => {
    if (!isTooDear) return isWatched(window) || window.remaining >= units;
    return (isWatched(window) ? (maxOf(before, limitOf(window)) ?? units) : window.limit) >= units;
  };
  return windows.every(mayPass) ? 'refused' : undefined;
}

/** Adds the counts `more` to `counts`. If more than `namesMax` names have requests, groups replace all keys. */
export function addCounts(counts: GuardCounts, more: GuardCounts, namesMax: number): void {
  for (const [name, ofKey] of more) addTo(counts, name, ofKey);
  if (counts.size <= namesMax) return;
  const groups = byGroup(counts);
  counts.clear();
  for (const [group, sum] of groups) counts.set(group, sum);
}

/** Adds up the counts of each group. */
function byGroup(counts: GuardCounts): GuardCounts {
  const groups: GuardCounts = new Map();
  for (const [name, ofKey] of counts) addTo(groups, groupOf(name), ofKey);
  return groups;
}

function addTo(sums: GuardCounts, name: string, { requests, refused }: KeyCounts): void {
  const before = sums.get(name);
  const sum =
    before === undefined
      ? { requests, refused }
      : { requests: before.requests + requests, refused: before.refused + refused };
  sums.set(name, sum);
}

function groupOf(name: string): string {
  return name.slice(0, groupDigits);
}

/** Returns a short name for a key: a hash of its id (FNV-1a with the final mix of MurmurHash3) in hex. */
function nameOf(keyId: string): string {
  let hash = hashOf(keyId);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return (hash >>> 0).toString(16).padStart(nameDigits, '0');
}
