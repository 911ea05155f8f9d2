import { groupNames, haveSameOperations, maxOf, operationsOf } from '../shared/limits.ts';
import { type Limit, type Limits, planWindows } from '../shared/model.ts';
import { figure } from '../shared/words/figures.js';
import { per, policyName } from '../shared/words/limit-names.js';

/** Formats numbers and times for sentences about keys and processes. Times are UTC. */

/** "second", "third", "4th". */
export function ordinal(number: number): string {
  return { 2: 'second', 3: 'third' }[number] ?? `${number}th`;
}

/** The window of a limit with its article: "a day", "an hour", "a minute for the group reports". */
export function perLimit({ window, group }: Pick<Limit, 'window' | 'group'>): string {
  return per(policyName(window, group));
}

/** "40 a minute, 1,000 a day, 5 a minute for the group reports" */
export function limitsText(limits: Limits): string {
  return limits.map((limit) => `${figure(limit.max)} ${perLimit(limit)}`).join(', ');
}

/** The text "10:32:00 UTC", followed by the date when the time is on another day. */
export function timeText(atMs: number, nowMs: number): string {
  const [day, time = ''] = new Date(atMs).toISOString().split('T');
  const clock = `${time.slice(0, 8)} UTC`;
  return new Date(nowMs).toISOString().startsWith(`${day}T`) ? clock : `${clock} on ${day}`;
}

/** "60 → 30 a minute", "no limit → 1,000 a day". A value that is not a number means that the window has no limit. */
export function limitChangeText(
  limit: Pick<Limit, 'window' | 'group'>,
  before: unknown,
  after: unknown,
): string {
  const limitText = (max: unknown) => (typeof max === 'number' ? figure(max) : 'no limit');
  return `${limitText(before)} → ${limitText(after)} ${perLimit(limit)}`;
}

/** The texts of all limits that differ, in the order of limits. A group with other operations is named, too. */
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

/** The id of a key with its plan: "acme (free)". */
export function whoOf({
  keyId,
  plan,
}: {
  readonly keyId: string;
  readonly plan: string | undefined;
}): string {
  return plan === undefined ? keyId : `${keyId} (${plan})`;
}

/**
 * Formats a duration with its two largest units: "1 h 5 min", "12 s". A duration below ten seconds is shown with tenths
 * of a second.
 */
export function durationText(ms: number): string {
  if (ms < 9_950) return `${Number((ms / 1_000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1_000);
  const parts = [
    { amount: Math.floor(seconds / 86_400), unit: 'd' },
    { amount: Math.floor(seconds / 3_600) % 24, unit: 'h' },
    { amount: Math.floor(seconds / 60) % 60, unit: 'min' },
    { amount: seconds % 60, unit: 's' },
  ];
  const first = parts.findIndex(({ amount }) => amount > 0);
  return parts
    .slice(first, first + 2)
    .filter(({ amount }) => amount > 0)
    .map(({ amount, unit }) => `${amount} ${unit}`)
    .join(' ');
}
