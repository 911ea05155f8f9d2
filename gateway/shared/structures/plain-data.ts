export type Mapping = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The members of all objects and lists in a JSON value. Counting stops soon after `membersMax`. Deeply nested values cannot overflow the
 * stack.
 */
export function countMembers(value: unknown, membersMax: number): number {
  const open: unknown[] = [value];
  let count = 0;
  while (open.length > 0 && count <= membersMax) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    const members = Array.isArray(next) ? next : Object.values(next);
    count += members.length;
    if (count <= membersMax) for (const member of members) open.push(member);
  }
  return count;
}
