import { counted, relative, utcSecond } from '../../shared/words/figures.js';

/** Formats times for a terminal, in UTC. */

/** Formats a duration in its two largest units, rounded: `1 day 13 hours`, `6 hours`, `2 minutes 30 seconds`. */
export function span(ms: number): string {
  const smallest = ms < 3_600_000 ? 1 : ms < 86_400_000 ? 60 : 3_600;
  let seconds = Math.round(ms / 1_000 / smallest) * smallest;
  const parts = [];
  for (const [name, length] of [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
    ['second', 1],
  ] as const) {
    const number = Math.floor(seconds / length);
    if (number > 0) parts.push(counted(number, name));
    seconds -= number * length;
  }
  return parts.slice(0, 2).join(' ') || 'less than a second';
}

/** Formats a past time, for example "12 s ago". */
export function ago(atMs: number | undefined, nowMs: number): string {
  return atMs === undefined ? 'never' : relative(atMs, nowMs);
}

/** `2026-11-22 10:31:00`. */
export function instant(at: number | string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : utcSecond(date.toISOString());
}

/** Formats a timestamp as `10:31:00`. The date is added if it is not today. */
export function clock(atMs: number, nowMs: number): string {
  const text = instant(atMs);
  return text.slice(0, 10) === instant(nowMs).slice(0, 10) ? text.slice(11) : text;
}
