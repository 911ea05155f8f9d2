import { type Limits, type PlanWindow, planWindows } from '../shared/model.ts';

/** The field in which a plan or key states its limit of a window. */
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
/** The same value for each of the fields. */
export function ofEachLimitField<Value>(value: Value): Readonly<Record<LimitField, Value>> {
  return Object.fromEntries(limitFieldNames.map((name) => [name, value])) as Record<LimitField, Value>;
}

/** For messages. */
export const anyLimitField = `at least one of ${limitFieldNames.join(', ')}`;

/** The limits that such fields state, shortest window first. */
export function toLimits(fields: LimitsByField): Limits {
  return planWindows.flatMap((window) => {
    const max = fields[limitFieldOf[window]];
    return max === undefined ? [] : [{ window, max }];
  });
}

/** The fields that state such limits. */
export function toLimitFields(limits: Limits): LimitsByField {
  return Object.fromEntries(limits.map(({ window, max }) => [limitFieldOf[window], max]));
}
