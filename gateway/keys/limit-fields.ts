import { type Limits, type PlanWindow, planWindows } from '../shared/model.ts';

/** The name of the field that states the limit of a window in a plan or key. */
export const limitFieldOf = {
  second: 'perSecond',
  minute: 'perMinute',
  hour: 'perHour',
  day: 'perDay',
  month: 'perMonth',
} as const satisfies Record<PlanWindow, string>;

export type LimitField = (typeof limitFieldOf)[PlanWindow];
export type LimitsByField = { readonly [Field in LimitField]?: number | undefined };

export const limitFieldNames: readonly LimitField[] = planWindows.map((window) => limitFieldOf[window]);

/** Makes an object with the same value for each limit field. */
export function ofEachLimitField<Value>(value: Value): Readonly<Record<LimitField, Value>> {
  return Object.fromEntries(limitFieldNames.map((name) => [name, value])) as Record<LimitField, Value>;
}

/** The names of all limit fields, for messages. */
export const anyLimitField = `at least one of ${limitFieldNames.join(', ')}`;

/** Converts limit fields to a list of limits, shortest window first. */
export function toLimits(fields: LimitsByField): Limits {
  return planWindows.flatMap((window) => {
    const max = fields[limitFieldOf[window]];
    return max === undefined ? [] : [{ window, max }];
  });
}

/** Converts a list of limits to limit fields. */
export function toLimitFields(limits: Limits): LimitsByField {
  return Object.fromEntries(limits.map(({ window, max }) => [limitFieldOf[window], max]));
}
