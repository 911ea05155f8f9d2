import { dateText } from '../shared/schema/dates-and-durations.ts';
import { listOf, utcMinute } from '../shared/words/figures.js';

/** For sentences about keys and processes. Times are UTC. */

/** "second", "third", "fourth", "5th". */
export function ordinal(number: number): string {
  return { 2: 'second', 3: 'third', 4: 'fourth' }[number] ?? `${number}th`;
}

/** "10:32:00 UTC", followed by the date when the time is on another day. */
export function timeText(atMs: number, nowMs: number): string {
  const [day, time = ''] = new Date(atMs).toISOString().split('T');
  const clock = `${time.slice(0, 8)} UTC`;
  return new Date(nowMs).toISOString().startsWith(`${day}T`) ? clock : `${clock} on ${day}`;
}

/** "acme (free)". */
export function whoOf({
  keyId,
  plan,
}: {
  readonly keyId: string;
  readonly plan: string | undefined;
}): string {
  return plan === undefined ? keyId : `${keyId} (${plan})`;
}

/** The two largest units: "1 h 5 min", "12 s"; tenths of a second below ten seconds. */
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

/**
 * Names the later plans that a change of a key added, such as "plan pro from 2027-01-01".
 *
 * @param before the member `changes` of the key before and after the change
 */
export function laterPlansText(before: unknown, after: unknown): string {
  // The record shortens long members to a text.
  if (typeof before === 'string' || typeof after === 'string') return 'later plan';
  const known = textsOf(before);
  const added = textsOf(after).filter((text) => !known.includes(text));
  if (added.length > 0) return listOf(added);
  return known.length > textsOf(after).length ? 'later plan withdrawn' : 'later plan';
}

/** A later plan as a command reports it, such as "2027-01-01 pro". */
const reportedPlan = /^(?<from>\S+) (?<plan>[\w-]+)$/;

function textsOf(changes: unknown): readonly string[] {
  if (!Array.isArray(changes)) return [];
  return changes.flatMap((change) => {
    const { from, plan } = typeof change === 'string' ? (reportedPlan.exec(change)?.groups ?? {}) : change;
    if (plan === undefined) return [];
    const day = dateText(from instanceof Date ? from.toISOString() : String(from));
    return `plan ${plan} from ${day.includes('T') ? utcMinute(day) : day}`;
  });
}

/** " until 18:00:00 UTC", or an empty text when the record has no time. */
export function instantText(word: string, at: unknown, nowMs: number): string {
  const atMs = typeof at === 'string' ? Date.parse(at) : Number.NaN;
  return Number.isNaN(atMs) ? '' : ` ${word} ${timeText(atMs, nowMs)}`;
}
