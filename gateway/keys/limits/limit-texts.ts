import { groupNames, haveSameOperations, maxOf, operationsOf } from '../../shared/limits.ts';
import { type Limit, type Limits, planWindows } from '../../shared/model.ts';
import { figure } from '../../shared/words/figures.js';
import { per, policyName } from '../../shared/words/limit-names.js';

/** "a day", "an hour", "a minute for the group reports". */
export function perLimit({ window, group }: Pick<Limit, 'window' | 'group'>): string {
  return per(policyName(window, group));
}

/** "40 a minute, 1,000 a day, 5 a minute for the group reports" */
export function limitsText(limits: Limits): string {
  return limits.map((limit) => `${figure(limit.max)} ${perLimit(limit)}`).join(', ');
}

/** "60 → 30 a minute", "no limit → 1,000 a day". A value that is not a number means no limit. */
export function limitChangeText(
  limit: Pick<Limit, 'window' | 'group'>,
  before: unknown,
  after: unknown,
): string {
  const limitText = (max: unknown) => (typeof max === 'number' ? figure(max) : 'no limit');
  return `${limitText(before)} → ${limitText(after)} ${perLimit(limit)}`;
}

/** "plan free → pro (60 → 600 a minute)". @param ofLimits the texts of the limits that differ */
export function planChangeText(before: string, after: string, ofLimits: readonly string[]): string {
  return `plan ${before} → ${after}${ofLimits.length === 0 ? '' : ` (${ofLimits.join(', ')})`}`;
}

/** In the order of limits. A group with other operations is named, too. */
export function limitChangeTexts(before: Limits, after: Limits): readonly string[] {
  const groups = groupNames([...before, ...after]);
  return [undefined, ...groups].flatMap((group) => {
    const texts = planWindows.flatMap((window) => {
      const [from, to] = [before, after].map((limits) => maxOf(limits, { window, group }));
      return from === to ? [] : [limitChangeText({ window, group }, from, to)];
    });
    if (group === undefined) return texts;
    const [from, to] = [operationsOf(before, group), operationsOf(after, group)];
    const areOther = from && to && !haveSameOperations(from, to);
    return areOther ? [...texts, `other operations in the group ${group}`] : texts;
  });
}
