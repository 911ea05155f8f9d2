import type { Limits, PlanWindow } from '../../model.ts';

/** How a plan or key states its limits: one of these fields for each window that it limits. */
export const limitFields = {
  perSecond: 'second',
  perMinute: 'minute',
  perHour: 'hour',
  perDay: 'day',
  perMonth: 'month',
} as const satisfies Record<string, PlanWindow>;

export type LimitField = keyof typeof limitFields;
export type LimitsByField = { readonly [Field in LimitField]?: number | undefined };

/** For messages. */
export const limitFieldNames = Object.keys(limitFields) as LimitField[];
export const anyLimitField = `at least one of ${limitFieldNames.join(', ')}`;

/** The limits that such fields state, shortest window first. */
export function toLimits(fields: LimitsByField): Limits {
  return limitFieldNames.flatMap((field) => {
    const max = fields[field];
    return max === undefined ? [] : [{ window: limitFields[field], max }];
  });
}

/** The fields that state such limits. */
export function toLimitFields(limits: Limits): LimitsByField {
  const byWindow = new Map(limits.map(({ window, max }) => [window, max]));
  const stated = limitFieldNames.filter((field) => byWindow.has(limitFields[field]));
  return Object.fromEntries(stated.map((field) => [field, byWindow.get(limitFields[field])]));
}
