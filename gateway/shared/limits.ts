import { isDeepStrictEqual } from 'node:util';
import type { Limit, Limits } from './model.ts';

export function isSameLimit(one: NamedLimit, other: NamedLimit): boolean {
  return one.window === other.window && one.group === other.group;
}

type NamedLimit = Pick<Limit, 'window' | 'group'>;
type OfGroup = Pick<Limit, 'group'>;

/** The order of groups, and of the operations of a group, has no meaning. */
export function areSameLimits(one: Limits, other: Limits): boolean {
  return isDeepStrictEqual(sortedLimits(one), sortedLimits(other));
}

/** By name, so that equal limits have the same order. */
export function sortedLimits(limits: Limits): Limits {
  if (!hasGroups(limits)) return limits;
  return limits
    .map((limit) => (limit.operations ? { ...limit, operations: limit.operations.toSorted() } : limit))
    .toSorted(({ group: one = '' }, { group: other = '' }) => (one < other ? -1 : one > other ? 1 : 0));
}

export function maxOf(limits: Limits, limit: NamedLimit): number | undefined {
  return limits.find((one) => isSameLimit(one, limit))?.max;
}

/** Limits of groups are the last of a list. */
export function hasGroups(limits: readonly OfGroup[]): boolean {
  return limits.at(-1)?.group !== undefined;
}

export function ofAllOperations(limits: Limits): Limits {
  return hasGroups(limits) ? limits.filter(({ group }) => group === undefined) : limits;
}

export function groupNames(limits: readonly OfGroup[]): readonly string[] {
  return [...new Set(limits.flatMap(({ group }) => group ?? []))];
}

export function limitsOfGroup(limits: Limits, name: string): Limits {
  return limits.filter(({ group }) => group === name);
}

/** Undefined without such a group, and in a grant. */
export function operationsOf(limits: Limits, name: string): readonly string[] | undefined {
  return limits.find(({ group }) => group === name)?.operations;
}

/** The order of operations has no meaning. */
export function haveSameOperations(one: readonly string[], other: readonly string[]): boolean {
  return isDeepStrictEqual(one.toSorted(), other.toSorted());
}

export function isInGroup(limits: Limits, operation: string | undefined): boolean {
  return hasGroups(limits) && limits.some(({ operations }) => operations?.includes(operation ?? ''));
}

/** The limits of all operations, and of the groups that have the operation. */
export function limitsOn(limits: Limits, operation: string | undefined): Limits {
  if (!hasGroups(limits)) return limits;
  return limits.filter(
    ({ group, operations }) => group === undefined || operations?.includes(operation ?? '') === true,
  );
}

/** Limits that are smaller than before, that had no limit before, or that count an operation which they did not count before. */
export function smallerLimits(before: Limits, now: Limits): Limits {
  return now.filter((limit) => {
    const earlier = before.find((one) => isSameLimit(one, limit));
    const isWider = limit.operations?.some((id) => !earlier?.operations?.includes(id)) ?? false;
    return earlier === undefined || limit.max < earlier.max || isWider;
  });
}

/** The limits of groups without the operations of the groups, for a text or a record. */
export function withoutOperations(limits: Limits): Limits {
  return limits.map(({ operations: _, ...limit }) => limit);
}
