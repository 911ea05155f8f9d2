import type { PlanWindow } from '../shared/model.ts';

/** Formats numbers and times for sentences about keys and processes. Times are UTC. */

/** With thousands separators. */
export function figure(number: number): string {
  return number.toLocaleString('en-US');
}

/** Formats a number with its noun: "1 key", "2 keys". */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${figure(number)} ${number === 1 ? one : many}`;
}

/** "12 %", "1.4 %". A share below 100 % is never rounded up to 100 %. */
export function percent(part: number): string {
  const hundredths = part * 100;
  if (hundredths === 0) return '0 %';
  if (hundredths < 0.1) return '< 0.1 %';
  return `${hundredths < 10 ? hundredths.toFixed(1) : figure(Math.floor(hundredths))} %`;
}

/** "second", "third", "4th". */
export function ordinal(number: number): string {
  return { 2: 'second', 3: 'third' }[number] ?? `${number}th`;
}

/** The name of a window with its article: "a day", "an hour". */
export function per(window: PlanWindow): string {
  return `${window === 'hour' ? 'an' : 'a'} ${window}`;
}

/** The text "10:32:00 UTC", followed by the date when the time is on another day. */
export function timeText(atMs: number, nowMs: number): string {
  const [day, time = ''] = new Date(atMs).toISOString().split('T');
  const clock = `${time.slice(0, 8)} UTC`;
  return new Date(nowMs).toISOString().startsWith(`${day}T`) ? clock : `${clock} on ${day}`;
}

/** "60 → 30 a minute", "no limit → 1,000 a day". A value that is not a number means that the window has no limit. */
export function limitChangeText(window: PlanWindow, before: unknown, after: unknown): string {
  const limitText = (limit: unknown) => (typeof limit === 'number' ? figure(limit) : 'no limit');
  return `${limitText(before)} → ${limitText(after)} ${per(window)}`;
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
