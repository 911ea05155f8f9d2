import type { KeyMembers, PlanFigures, PlanStates } from '../../shared/model.ts';
import type { ProcessPart } from './running.ts';

/** The functions with which the gateway asks all capabilities of a process. */

export function partsOf(capabilities: Readonly<Record<string, ProcessPart>>): readonly ProcessPart[] {
  return Object.values(capabilities);
}

/** What the processes have decided about plans; undefined without a decision. */
export function joinPlanStates(parts: readonly ProcessPart[]): PlanStates | undefined {
  const states = parts.flatMap((part) => part.planStates?.() ?? []);
  return states.length === 0 ? undefined : Object.assign({}, ...states);
}

/** The figures of plans, by the name of the plan. */
export function joinPlanFigures(parts: readonly ProcessPart[]): ReadonlyMap<string, PlanFigures> {
  const joined = new Map<string, PlanFigures>();
  for (const part of parts)
    for (const [plan, figures] of part.planFigures?.() ?? [])
      joined.set(plan, { ...joined.get(plan), ...figures });
  return joined;
}

/** The counters of all capabilities of a process. */
export function joinCounts(parts: readonly ProcessPart[]): Readonly<Record<string, number>> {
  return Object.assign({}, ...parts.map((part) => part.counts?.()));
}

/** Reads the members of keys in responses; undefined for a key if a store does not reply. */
export async function readKeyMembers(
  parts: readonly ProcessPart[],
  keyIds: readonly string[],
): Promise<readonly (KeyMembers | undefined)[]> {
  const read = await Promise.all(parts.flatMap((part) => part.readKeyMembers?.(keyIds) ?? []));
  return keyIds.map((_, index) => {
    const ofKey = read.map((members) => members[index]);
    return ofKey.includes(undefined) ? undefined : Object.assign({}, ...ofKey);
  });
}
