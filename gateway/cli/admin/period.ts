import { parseDate } from '../../shapes/dates-and-durations.ts';
import { CommandError } from '../output/command-error.ts';

const dayMs = 86_400_000;
const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: dayMs };

/** `--from` and `--to`: absent, the last 24 hours. */
export interface PeriodOptions {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/**
 * The instants of a period as the admin API takes them. Beside those: `now`, `today` and `yesterday` (their first instants, in
 * UTC), and `-7d`, `-12h`, `-30m` before now.
 *
 * @throws a CommandError
 */
export function periodQuery(
  { from, to }: PeriodOptions,
  nowMs: number,
): { readonly from: string | undefined; readonly to: string | undefined } {
  return {
    from: from === undefined ? undefined : toInstant('--from', from, nowMs),
    to: to === undefined ? undefined : toInstant('--to', to, nowMs),
  };
}

/**
 * The step of a period: minutes up to a day, hours up to a week, else days. So are those of a period that began more than a
 * week ago, since by default minutes are kept for eight days.
 */
export function stepFor({ from, to }: ReturnType<typeof periodQuery>, nowMs: number): string {
  const toMs = to === undefined ? nowMs : Date.parse(to);
  const fromMs = from === undefined ? toMs - dayMs : Date.parse(from);
  if (nowMs - fromMs > 7 * dayMs + 60_000) return 'day';
  return toMs - fromMs <= dayMs ? 'minute' : 'hour';
}

/**
 * The instant that `--until` means: a date, a time with its zone, `tomorrow` (its first instant, in UTC), `18:00` (the next one,
 * in UTC), or a time from now such as `+6h`.
 *
 * @throws a CommandError
 */
export function untilInstant(text: string, nowMs: number): string {
  const untilMs = untilMsOf(text, nowMs);
  if (untilMs === undefined) {
    throw new CommandError(
      '--until must be a date such as 2026-12-01 (its first instant, in UTC), a time such as 2026-12-01T18:00:00Z, tomorrow, 18:00 (the next one, in UTC), or a time from now such as +6h, +30m or +2d.',
    );
  }
  if (untilMs > nowMs) return iso(untilMs);
  throw new CommandError(`--until ${text} is in the past.`);
}

function untilMsOf(text: string, nowMs: number): number | undefined {
  const startOfDayMs = Math.floor(nowMs / dayMs) * dayMs;
  if (text === 'tomorrow') return startOfDayMs + dayMs;
  const after = /^\+(\d{1,6})([mhd])$/.exec(text);
  if (after !== null) return nowMs + Number(after[1]) * (unitMs[after[2] ?? ''] ?? dayMs);
  const time = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text);
  if (time === null) return parseDate(text);
  const atMs = startOfDayMs + Number(time[1]) * 3_600_000 + Number(time[2]) * 60_000;
  return atMs > nowMs ? atMs : atMs + dayMs;
}

function toInstant(option: string, text: string, nowMs: number): string {
  const startOfDayMs = Math.floor(nowMs / dayMs) * dayMs;
  switch (text) {
    case 'now':
      return iso(nowMs);
    case 'today':
      return iso(startOfDayMs);
    case 'yesterday':
      return iso(startOfDayMs - dayMs);
  }
  const before = /^-(\d{1,6})([mhd])$/.exec(text);
  if (before !== null) return iso(nowMs - Number(before[1]) * (unitMs[before[2] ?? ''] ?? dayMs));
  if (parseDate(text) !== undefined) return text;
  throw new CommandError(
    `${option} must be a date such as 2026-11-22 (its first instant, in UTC), a time such as 2026-11-22T10:31:00Z, now, today, yesterday, or a time before now such as -7d, -12h or -30m.`,
  );
}

function iso(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
