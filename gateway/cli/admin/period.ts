import { calendarStartMs, calendarWindowsMs } from '../../shared/calendar-windows.ts';
import { agePattern, parseDate } from '../../shared/schema/dates-and-durations.ts';
import type { UsageStep } from '../../shared/schema/query-words.ts';
import { dayMs, hourMs, minuteMs } from '../../shared/words/figures.js';
import type { PeriodOptions } from '../command.ts';
import { CommandError } from '../output/command-error.ts';

/** Undefined: the admin API chooses. */
interface Period {
  readonly from: string | undefined;
  readonly to: string | undefined;
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: dayMs };

/**
 * Returns the timestamps of a period in the form of the admin API. `--from` a day means the start of this day in UTC, and `--to` a day means
 * its end. `-7d`, `-12h`, `-30m` and `-12mo` are times before now. A time of the day is the last such time.
 *
 * @param shift undefined: the period is not compared
 * @throws a CommandError
 */
export function periodQuery({ from, to }: PeriodOptions, nowMs: number, shift?: Shift): Period {
  if (from === undefined && to === undefined && shift !== undefined) return shift.usualPeriod(nowMs);
  return {
    from: from === undefined ? undefined : toInstant('--from', from, nowMs),
    to: to === undefined ? undefined : endOfDay(toInstant('--to', to, nowMs), nowMs),
  };
}

/** The UTC month of a time, such as `2026-11`. */
export function presentMonth(nowMs: number): string {
  return iso(nowMs).slice(0, 7);
}

/**
 * Returns the first and the last day of a month such as `2026-11`.
 *
 * @throws a CommandError
 */
export function daysOfMonth(month: string): { readonly from: string; readonly to: string } {
  const [, year, number] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(month) ?? [];
  if (year === undefined) throw new CommandError('--month must be a month such as 2026-11.');
  const last = new Date(Date.UTC(Number(year), Number(number), 0));
  return { from: `${month}-01`, to: iso(last.getTime()).slice(0, 10) };
}

/**
 * Returns the length of a row. A row covers a minute in a period of up to three hours, an hour in a period of up to a week, and a day in a
 * longer period. If the period began more than eight days ago, a row covers a day even if the period is short, because a gateway keeps minutes
 * for eight days by default.
 */
export function stepFor({ from, to }: Period, nowMs: number): UsageStep {
  const toMs = to === undefined ? nowMs : Date.parse(to);
  const fromMs = from === undefined ? toMs - dayMs : Date.parse(from);
  const lengthMs = toMs - fromMs;
  if (nowMs - fromMs > 8 * dayMs + minuteMs || lengthMs > 7 * dayMs + minuteMs) return 'day';
  return lengthMs <= 3 * hourMs ? 'minute' : 'hour';
}

/** The distance between a period and the earlier period that it is compared with. */
export interface Shift {
  /** Returns the earlier period with both of its ends. */
  periodBefore(period: Period, nowMs: number): { readonly from: string; readonly to: string };
  /** Returns the period that is compared if none is asked: it ends now, is as long as the distance, and begins with a whole row. */
  usualPeriod(nowMs: number): Period;
  /** Returns the beginning of the row that is compared with a row of the earlier period, epoch ms. */
  later(atMs: number): number;
  /**
   * Checks that rows of the period are compared with whole rows: rows of months over months, and other rows over a whole
   * number of rows.
   *
   * @throws a CommandError
   */
  checkStep(step: UsageStep): void;
}

/**
 * Reads `--compare`, such as -7d.
 *
 * @throws a CommandError
 */
export function shiftOf(text: string): Shift {
  const [, number = '', unit = ''] = lengthBefore.exec(text) ?? [];
  const length = Number(number);
  if (length === 0) {
    throw new CommandError(
      '--compare must be a length of time such as -7d, -12h or -30m, or -12mo with --step month.',
    );
  }
  const isMonths = unit === 'mo';
  const shiftMs = length * (unitMs[unit] ?? 0);
  const shifted = (atMs: number, sign: 1 | -1) =>
    isMonths ? monthsLater(atMs, sign * length) : atMs + sign * shiftMs;
  return {
    periodBefore({ from, to }, nowMs) {
      const toMs = to === undefined ? nowMs : Date.parse(to);
      const fromMs =
        from === undefined ? Math.floor(toMs / minuteMs) * minuteMs - dayMs + minuteMs : Date.parse(from);
      return { from: iso(shifted(fromMs, -1)), to: iso(shifted(toMs, -1)) };
    },
    usualPeriod(nowMs) {
      const fromMs = shifted(nowMs, -1);
      const step = stepFor({ from: iso(shifted(fromMs, -1)), to: iso(fromMs) }, nowMs);
      return { from: iso(calendarStartMs(step, fromMs) + calendarWindowsMs[step]), to: undefined };
    },
    later: (atMs) => shifted(atMs, 1),
    checkStep(step) {
      if (step === 'month' && !isMonths) {
        throw new CommandError(`--compare ${text} does not fit rows of a month. Give months, such as -12mo.`);
      }
      if (step !== 'month' && isMonths) {
        throw new CommandError(
          `--compare ${text} needs --step month. Rows of one ${step} are compared over a fixed length such as -28d.`,
        );
      }
      if (!isMonths && shiftMs % calendarWindowsMs[step] !== 0) {
        throw new CommandError(
          `--compare ${text} does not fit rows of one ${step}. Give a whole number of them, or a shorter --step.`,
        );
      }
    },
  };
}

/** The same time of the day in another month. A day that this month lacks becomes its last day. */
function monthsLater(atMs: number, months: number): number {
  const date = new Date(atMs);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, lastDay));
  return date.getTime();
}

/** Returns the beginning of the first of the last 12 months, the default period of rows of months. */
export function yearBefore(nowMs: number): string {
  return `${iso(monthsLater(nowMs, -11)).slice(0, 7)}-01`;
}

/**
 * Returns the timestamps of `--from` and `--until` of a grant. If a day is given, `--from` is the start of that day and `--until`
 * is its end. Without `--from`, the grant begins now. A duration such as `+6h` for `--until` counts from the beginning of the grant.
 *
 * @throws a CommandError
 */
export function grantPeriod(
  { from, until }: { readonly from?: string | undefined; readonly until: string },
  nowMs: number,
): { readonly fromAt: string | undefined; readonly untilAt: string } {
  const fromMs = from === undefined ? nowMs : grantMs('--from', from, { nowMs, afterMs: nowMs });
  const untilMs = grantMs('--until', until, { nowMs, afterMs: Math.max(nowMs, fromMs) });
  if (untilMs <= nowMs) throw new CommandError(`--until ${until} is in the past.`);
  if (untilMs <= fromMs) throw new CommandError(`--until ${until} is not later than --from ${from}.`);
  return { fromAt: from === undefined ? undefined : iso(fromMs), untilAt: iso(untilMs) };
}

const minuteForms =
  'a time such as 14:03 (the last 14:03, in UTC), "2026-11-27 14:03", "yesterday 14:03" or 2026-11-27T14:03Z';

/**
 * Returns the timestamp of `--at`, which selects a minute. A time of the day without a date is the last such time in UTC.
 *
 * @throws a CommandError
 */
export function minuteAt(text: string, nowMs: number): string {
  if (!clockTime.test(text) && !/^\d{4}-\d\d-\d\dT/.test(text))
    throw new CommandError(`--at must be ${minuteForms}; "${text}" is not such a time.`);
  const atMs = timeOfDay(text, nowMs) ?? parseDate(text);
  if (atMs === undefined)
    throw new CommandError(`--at ${text}: there is no such time. --at must be ${minuteForms}.`);
  if (atMs > nowMs)
    throw new CommandError(`--at ${text} is in the future: it is ${iso(nowMs).slice(11, 16)} UTC now.`);
  return iso(atMs);
}

/** A time of the day in UTC, of a day or without one. */
const clockTime =
  /^(?:(?<day>today|yesterday|\d{4}-\d\d-\d\d)[ T])?(?<hour>\d?\d)(?<rest>:\d\d(?::\d\d)?)(?:Z| UTC)?$/;

/** @returns epoch ms. Without a day, it is today, or yesterday if the time has not come yet today. Undefined: there is no such time */
function timeOfDay(text: string, nowMs: number): number | undefined {
  const { day, hour = '', rest = '' } = clockTime.exec(text)?.groups ?? {};
  const time = `${hour.padStart(2, '0')}${rest}`;
  const dayOf = (atMs: number) => iso(atMs).slice(0, 10);
  const named = day === 'today' ? dayOf(nowMs) : day === 'yesterday' ? dayOf(nowMs - dayMs) : day;
  const atMs = parseDate(`${named ?? dayOf(nowMs)}T${time}Z`);
  return named === undefined && atMs !== undefined && atMs > nowMs ? atMs - dayMs : atMs;
}

/**
 * Returns the duration of `--overlap` in the form of the admin API: as it is written, or until a time or the end of a day.
 *
 * @throws a CommandError
 */
export function overlapOf(text: string, nowMs: number): string {
  if (agePattern.test(text)) return text;
  const lengthMs = grantMs('--overlap', text, { nowMs, afterMs: nowMs }) - nowMs;
  if (lengthMs <= 0)
    throw new CommandError(`--overlap ${text} is in the past. 0s ends the older secrets at once.`);
  // A duration has at most six digits, so a long one is rounded up to whole minutes or hours.
  const forms = Object.entries(unitMs).map(([unit, ms]) => `${Math.ceil(lengthMs / ms)}${unit}`);
  return forms.find((form) => agePattern.test(form)) ?? text;
}

/** @param afterMs what a length of time is counted from, and what a time of the day comes after */
function grantMs(
  option: '--from' | '--until' | '--overlap',
  text: string,
  { nowMs, afterMs }: { readonly nowMs: number; readonly afterMs: number },
): number {
  if (text === 'now') return nowMs;
  const daysAhead = ['today', 'tomorrow'].indexOf(text);
  const isDay = daysAhead !== -1 || /^[\d-]{10}$/.test(text);
  const writtenMs = daysAhead === -1 ? parseDate(text) : startOfDay(nowMs) + daysAhead * dayMs;
  if (writtenMs !== undefined) return isDay && option !== '--from' ? writtenMs + dayMs : writtenMs;
  const [, number, unit = ''] = /^\+(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (number !== undefined) return afterMs + Number(number) * (unitMs[unit] ?? dayMs);
  const [, hours, minutes] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  if (hours === undefined) {
    const ofDay = option === '--from' ? 'the start of that day' : 'the end of that day';
    const lengths =
      option === '--overlap'
        ? 'a duration such as 24h, 30m, 7d or 0s'
        : 'a length of time such as +6h, +30m or +2d';
    throw new CommandError(
      `${option} must be a date such as 2026-12-01 or today or tomorrow (${ofDay}, in UTC), a time such as 2026-12-01T18:00:00Z, 18:00 (the next one, in UTC), or ${lengths}.`,
    );
  }
  const atMs = startOfDay(afterMs) + Number(hours) * 3_600_000 + Number(minutes) * 60_000;
  return atMs > afterMs ? atMs : atMs + dayMs;
}

/** Returns the last millisecond of a past or future day, now for today, and any other time as it is. */
function endOfDay(text: string, nowMs: number): string {
  if (text.length > 10) return text;
  const now = iso(nowMs);
  return now.startsWith(text) ? now : `${text}T23:59:59.999Z`;
}

function startOfDay(atMs: number): number {
  return Math.floor(atMs / dayMs) * dayMs;
}

function toInstant(option: string, text: string, nowMs: number): string {
  switch (text) {
    case 'now':
      return iso(nowMs);
    case 'today':
      return iso(nowMs).slice(0, 10);
    case 'yesterday':
      return iso(nowMs - dayMs).slice(0, 10);
  }
  const [, number, unit = ''] = lengthBefore.exec(text) ?? [];
  if (unit === 'mo') return iso(monthsLater(nowMs, -Number(number)));
  if (number !== undefined) return iso(nowMs - Number(number) * (unitMs[unit] ?? dayMs));
  if (parseDate(text) !== undefined) return text;
  const atMs = timeOfDay(text, nowMs);
  if (atMs !== undefined) return iso(atMs);
  throw new CommandError(
    `${option} must be a date such as 2026-11-22 (the ${option === '--to' ? 'end' : 'start'} of that day, in UTC), a time such as 2026-11-22T10:31:00Z or 14:03 (the last 14:03, in UTC), now, today, yesterday, or a time before now such as -7d, -12h, -30m or -12mo.`,
  );
}

/** Such as -7d. */
const lengthBefore = /^-(\d{1,6})(mo|m|h|d)$/;

function iso(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
