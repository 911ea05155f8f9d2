import { groupNames, limitsOfGroup, ofAllOperations, operationsOf } from '../../shared/limits.ts';
import { type Key, type Limit, type Limits, type PlanWindow, planWindows } from '../../shared/model.ts';

/** The name of the field that states the limit of a window in a plan or key. */
export const limitFieldOf = {
  second: 'perSecond',
  minute: 'perMinute',
  hour: 'perHour',
  day: 'perDay',
  month: 'perMonth',
} as const satisfies Record<PlanWindow, string>;

export type LimitField = (typeof limitFieldOf)[PlanWindow];
type NumbersByField = { readonly [Field in LimitField]?: number | undefined };

/** Limits as the configuration states them: fields for all operations, and groups of operations by name. */
export type LimitsByField = NumbersByField & { readonly groups?: GroupsByName | undefined };

/** The groups of a plan or key by name. The groups of a grant do not state their operations. */
export type GroupsByName = Readonly<
  Record<string, NumbersByField & { readonly operations?: readonly string[] | undefined }>
>;

export const limitFieldNames: readonly LimitField[] = planWindows.map((window) => limitFieldOf[window]);

/** Makes an object with the same value for each limit field. */
export function ofEachLimitField<Value>(value: Value): Readonly<Record<LimitField, Value>> {
  return Object.fromEntries(limitFieldNames.map((name) => [name, value])) as Record<LimitField, Value>;
}

/** The names of all limit fields, for messages. */
export const anyLimitField = `at least one of ${limitFieldNames.join(', ')}`;

/** Converts limit fields to a list of limits, shortest window first, and then the limits of each group. */
export function toLimits({ groups, ...fields }: LimitsByField): Limits {
  return [...plainLimits(fields), ...toGroupLimits(groups)];
}

function toGroupLimits(groups: GroupsByName = {}): Limits {
  return Object.entries(groups).flatMap(([group, { operations, ...fields }]) =>
    plainLimits(fields).map((limit) => ({ ...limit, group, ...(operations && { operations }) })),
  );
}

function plainLimits(fields: NumbersByField): Limits {
  return planWindows.flatMap((window) => {
    const max = fields[limitFieldOf[window]];
    return max === undefined ? [] : [{ window, max }];
  });
}

/** Converts a list of limits to limit fields. */
export function toLimitFields(limits: Limits): LimitsByField {
  const fieldsOf = (some: Limits) =>
    Object.fromEntries(some.map(({ window, max }) => [limitFieldOf[window], max]));
  const plain = fieldsOf(ofAllOperations(limits));
  const groups = groupNames(limits).map((name) => {
    const operations = operationsOf(limits, name);
    return [name, { ...(operations && { operations }), ...fieldsOf(limitsOfGroup(limits, name)) }];
  });
  return groups.length === 0 ? plain : { ...plain, groups: Object.fromEntries(groups) };
}

/** Returns the path of a limit in a plan: `perMinute`, or `groups.reports.perMinute`. */
export function limitPath({ window, group }: Pick<Limit, 'window' | 'group'>): string {
  return `${group === undefined ? '' : `groups.${group}.`}${limitFieldOf[window]}`;
}

/** Returns limits as one line of the configuration: `{ perMinute: 60, groups: { reports: { operations: [export], perMinute: 5 } } }`. */
export function limitsAsYaml(limits: Limits): string {
  return flow(toLimitFields(limits));
}

/** Whole numbers and most words need no quotes in YAML. The words for other values, and ids with other characters, need quotes. */
function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (typeof value === 'string')
    return /^(?!(true|false|null)$)[a-z][\w.-]*$/i.test(value) ? value : JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return String(value);
  return `{ ${Object.entries(value)
    .map(([name, member]) => `${flow(name)}: ${flow(member)}`)
    .join(', ')} }`;
}

/** Returns the limits that a key states itself. */
export function ownLimits({ limits, groups }: StatedLimits): Limits {
  return [...toLimits(limits ?? {}), ...toGroupLimits(groups)];
}

interface StatedLimits {
  readonly limits?: NumbersByField | undefined;
  readonly groups?: GroupsByName | undefined;
}

/** Returns the groups that a key states itself, in place of groups of its plan. */
export function ownGroupsOf({
  limits,
  ownGroups,
}: Pick<Key, 'limits' | 'ownGroups'>): GroupsByName | undefined {
  return toLimitFields(limits.filter(({ group = '' }) => ownGroups?.includes(group))).groups;
}

/** Returns limits in which the groups of a key replace the groups of the same name. */
export function withGroups(limits: Limits, own: GroupsByName | undefined): Limits {
  if (own === undefined) return limits;
  const kept = limits.filter(({ group }) => group === undefined || !Object.hasOwn(own, group));
  return [...kept, ...toGroupLimits(own)];
}
