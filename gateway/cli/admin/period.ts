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
