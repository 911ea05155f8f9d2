import type { PlanWindow } from '../model.ts';

/** How sentences about keys and processes write numbers and instants. Times are UTC. */

/** With thousands separators. */
export function figure(number: number): string {
  return number.toLocaleString('en-US');
}

/** "second", "third", "4th". */
export function ordinal(number: number): string {
  return { 2: 'second', 3: 'third' }[number] ?? `${number}th`;
}

/** "a day", "an hour". */
export function per(window: PlanWindow): string {
  return `${window === 'hour' ? 'an' : 'a'} ${window}`;
}

/** "10:32:00 UTC", with the day if that is another one. */
export function timeText(atMs: number, nowMs: number): string {
  const [day, time = ''] = new Date(atMs).toISOString().split('T');
  const clock = `${time.slice(0, 8)} UTC`;
  return new Date(nowMs).toISOString().startsWith(`${day}T`) ? clock : `${clock} on ${day}`;
}
