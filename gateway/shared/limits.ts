import type { Limit, Limits } from './model.ts';

/** The name of a limit for clients and operators, and of its policy in `RateLimit`: `minute`, or `reports-minute` for a group. */
export function policyName(window: string, group: string | undefined): string {
  return group === undefined ? window : `${group}-${window}`;
}

/** Whether two limits cover the same window of the same group. */
export function isSameLimit(one: NamedLimit, other: NamedLimit): boolean {
  return one.window === other.window && one.group === other.group;
}

type NamedLimit = Pick<Limit, 'window' | 'group'>;

/** Whether some limits count a group of operations. These limits are the last of the list. */
export function hasGroups(limits: Limits): boolean {
  return limits.at(-1)?.group !== undefined;
}

/** Whether a group of the limits has the operation. */
export function isInGroup(limits: Limits, operation: string | undefined): boolean {
  return hasGroups(limits) && limits.some(({ operations }) => operations?.includes(operation ?? ''));
}

/** Returns the limits that a request is charged in: those of all operations, and those of the groups that have its operation. */
export function limitsOn(limits: Limits, operation: string | undefined): Limits {
  if (!hasGroups(limits)) return limits;
  return limits.filter(({ operations }) => operations?.includes(operation ?? '') ?? true);
}
