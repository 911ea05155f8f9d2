import { isDeepStrictEqual } from 'node:util';
import type { Limit, Limits } from './model.ts';

/** Whether two limits cover the same window of the same group. */
export function isSameLimit(one: NamedLimit, other: NamedLimit): boolean {
  return one.window === other.window && one.group === other.group;
}

type NamedLimit = Pick<Limit, 'window' | 'group'>;
type OfGroup = Pick<Limit, 'group'>;

/** Whether two lists have the same limits. The order of groups, and of the operations of a group, has no meaning. */
export function areSameLimits(one: Limits, other: Limits): boolean {
  return isDeepStrictEqual(sortedLimits(one), sortedLimits(other));
}

/** Sorts groups and their operations by name, so that equal limits have the same order. */
export function sortedLimits(limits: Limits): Limits {
  if (!hasGroups(limits)) return limits;
  return limits
    .map((limit) => (limit.operations ? { ...limit, operations: limit.operations.toSorted() } : limit))
    .toSorted(({ group: one = '' }, { group: other = '' }) => (one < other ? -1 : one > other ? 1 : 0));
}

/** The maximum of a limit; undefined if the list does not have the limit. */
export function maxOf(limits: Limits, limit: NamedLimit): number | undefined {
  return limits.find((one) => isSameLimit(one, limit))?.max;
}

/** Whether some limits or windows count a group of operations. These are the last of the list. */
export function hasGroups(limits: readonly OfGroup[]): boolean {
  return limits.at(-1)?.group !== undefined;
}

/** Returns the limits that count all operations. */
export function ofAllOperations(limits: Limits): Limits {
  return hasGroups(limits) ? limits.filter(({ group }) => group === undefined) : limits;
}

/** Returns the names of all groups. */
export function groupNames(limits: readonly OfGroup[]): readonly string[] {
  return [...new Set(limits.flatMap(({ group }) => group ?? []))];
}

/** Returns the limits of a group. */
export function limitsOfGroup(limits: Limits, name: string): Limits {
  return limits.filter(({ group }) => group === name);
}

/** Returns the operations of a group; undefined without such a group, and in a grant. */
export function operationsOf(limits: Limits, name: string): readonly string[] | undefined {
  return limits.find(({ group }) => group === name)?.operations;
}

/** Whether two groups have the same operations. Their order has no meaning. */
export function haveSameOperations(one: readonly string[], other: readonly string[]): boolean {
  return isDeepStrictEqual(one.toSorted(), other.toSorted());
}

/** Whether a group of the limits has the operation. */
export function isInGroup(limits: Limits, operation: string | undefined): boolean {
  return hasGroups(limits) && limits.some(({ operations }) => operations?.includes(operation ?? ''));
}

/** Returns the limits that a request is charged in: those of all operations, and those of the groups that have its operation. */
export function limitsOn(limits: Limits, operation: string | undefined): Limits {
  if (!hasGroups(limits)) return limits;
  return limits.filter(
    ({ group, operations }) => group === undefined || operations?.includes(operation ?? '') === true,
  );
}

/**
 * The limits that are smaller than before, that had no limit before, or that count an operation which they did not count before.
 */
export function smallerLimits(before: Limits, now: Limits): Limits {
  return now.filter((limit) => {
    const earlier = before.find((one) => isSameLimit(one, limit));
    const isWider = limit.operations?.some((id) => !earlier?.operations?.includes(id)) ?? false;
    return earlier === undefined || limit.max < earlier.max || isWider;
  });
}
