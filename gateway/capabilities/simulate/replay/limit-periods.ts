import { limitsAt } from '../../../keys/plans/plans.ts';
import { ofAllOperations } from '../../../shared/limits.ts';
import type { Key, Limits, Plans } from '../../../shared/model.ts';
import type { Period } from '../../../shared/schema/dates-and-durations.ts';
import type { KeyVerdict } from './replay-key.ts';

/**
 * A part of the simulated period in which the limits of a key do not change. Minutes are numbered since 1970, and
 * `endMinute` is not part of the period.
 */
export interface LimitPeriod {
  readonly fromMinute: number;
  readonly endMinute: number;
  readonly limits: Limits;
}

/**
 * Divides a period at the scheduled changes of the key's plan. The limits at the end of a minute apply to the whole
 * minute. A change therefore takes effect at the beginning of its minute. Limits of groups are not part of the result.
 *
 * @param plans the plans of the configuration, with their scheduled changes
 */
export function limitPeriodsOf(
  { plan: name, limits }: Pick<Key, 'plan' | 'limits'>,
  plans: Plans,
  { fromMs, toMs }: Period,
  minuteMs: number,
): readonly LimitPeriod[] {
  const fromMinute = Math.floor(fromMs / minuteMs);
  const plan = plans.get(name);
  if (plan?.changes === undefined || plan.isCustom || limits.length === 0)
    return [{ fromMinute, endMinute: Number.POSITIVE_INFINITY, limits: ofAllOperations(limits) }];
  const starts = plan.changes
    .map((change) => Math.floor(change.fromMs / minuteMs))
    .filter((minute) => minute > fromMinute && minute * minuteMs <= toMs);
  const all = [...new Set([fromMinute, ...starts])];
  return all.map((minute, index) => {
    const endMinute = all[index + 1] ?? Number.POSITIVE_INFINITY;
    const limits = ofAllOperations(limitsAt(plan, (minute + 1) * minuteMs - 1));
    return { fromMinute: minute, endMinute, limits };
  });
}

/** Adds up the verdicts of a key over all its periods. */
export function sumOfVerdicts(verdicts: readonly KeyVerdict[]): KeyVerdict {
  const [first, ...rest] = verdicts;
  if (first === undefined) throw new Error('a key has at least one period');
  return rest.reduce((sum, one) => {
    const added = Object.entries(one).map(([name, figure]) => [name, figure + sum[name as keyof KeyVerdict]]);
    const firstRefusedMinute = Math.min(sum.firstRefusedMinute, one.firstRefusedMinute);
    return { ...(Object.fromEntries(added) as unknown as KeyVerdict), firstRefusedMinute };
  }, first);
}
