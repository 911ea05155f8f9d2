import { isDeepStrictEqual } from 'node:util';
import type { Limit, Limits } from './model.ts';

/** The name of a limit for clients and operators, and of its policy in `RateLimit`: `minute`, or `reports-minute` for a group. */
export function policyName(window: string, group: string | undefined): string {
  return group === undefined ? window : `${group}-${window}`;
}

/** Returns the window in the name of a policy. The name of a group may contain `-`, and the name of a window does not. */
export function windowIn(policy: string): string {
  return policy.slice(policy.lastIndexOf('-') + 1);
}

/** Returns the group in the name of a policy. */
export function groupIn(policy: string): string | undefined {
  return policy.includes('-') ? policy.slice(0, policy.lastIndexOf('-')) : undefined;
}

/** "minute", or "minute for the group reports" for the policy `reports-minute` */
export function windowText(policy: string): string {
  const group = groupIn(policy);
  return `${windowIn(policy)}${group === undefined ? '' : ` for the group ${group}`}`;
}

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
