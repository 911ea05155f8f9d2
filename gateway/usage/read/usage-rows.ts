import {
  calendarStartMs,
  calendarWindowsMs,
  windowIndex,
  windowStartMs,
} from '../../shared/calendar-windows.ts';
import { isoSecondOf, type Period } from '../../shared/schema/dates-and-durations.ts';
import type { UsageStep } from '../../shared/schema/query-words.ts';
import { dayMs } from '../../shared/words/figures.js';
import type { GroupTally } from '../groups.ts';
import { differingUnits, offeredOf, refusedByLimit, type Tally, unitsOf } from '../tally.ts';
import type { Usage, UsageState } from '../usage.ts';
import { byPeriod, type UsageMinute, type UsageReader } from './usage-reader.ts';

/** The requests of a key in one minute, hour, day or month of UTC, by outcome. A period without a request has no row. */
export interface UsageRow {
  /** The beginning of the minute, hour, day or month, ISO 8601. */
  readonly at: string;
  readonly offered: number;
  readonly admitted: number;
  /** The number of refused requests, by the limit that refused them: a window, or `concurrent`. */
  readonly refused: Readonly<Record<string, number>>;
  readonly banned: number;
  readonly undecided: number | undefined;
  /** The charged units; undefined if they equal the admitted requests. */
  readonly units: number | undefined;
  readonly unauthorized: number | undefined;
  /** The requests of each group of operations, by its name; undefined without such requests. */
  readonly groups: Readonly<Record<string, GroupRow>> | undefined;
}

interface GroupRow {
  readonly offered: number;
  readonly admitted: number;
  /** The units that were charged to the limits of the group. */
  readonly units: number;
}

export interface RowSources extends Pick<Usage, 'totals'> {
  readonly reader: Pick<UsageReader, 'minutes'>;
  state(): Pick<UsageState, 'keptDays'>;
}

export interface UsageQuery extends Period {
  readonly step: UsageStep;
  /** The names of the key's groups of operations; absent: none. */
  readonly groups?: readonly string[];
}

/** Returns the largest possible number of rows of a query. */
export function rowsOf({ fromMs, toMs, step }: UsageQuery): number {
  const lengthMs = calendarWindowsMs[step];
  return windowIndex(lengthMs, toMs) - windowIndex(lengthMs, fromMs) + 1;
}

/**
 * Returns the usage of a key as rows. A day whose minutes are already deleted is included only if the step is a day or
 * a month. The oldest month lacks the days before the record begins. The result is undefined when the store does not
 * reply.
 *
 * @param days `minutes` makes the row of a day from its minutes while they are kept, and `totals` from the daily
 *   totals if they exist. Daily totals are cheaper to read than minutes, but do not contain `unauthorized`.
 */
export async function usageRows(
  usage: RowSources,
  keyId: string,
  { fromMs, toMs, step, groups }: UsageQuery,
  nowMs: number,
  days: 'minutes' | 'totals' = 'minutes',
): Promise<readonly UsageRow[] | undefined> {
  const lengthMs = calendarWindowsMs[step];
  // The period begins with the whole minute, hour, day or month of the first row.
  const period = {
    fromMs: calendarStartMs(step, fromMs),
    toMs: Math.min(windowStartMs(lengthMs, windowIndex(lengthMs, toMs) + 1) - 1, nowMs),
  };
  const keptFromMs = (Math.floor(nowMs / dayMs) - usage.state().keptDays) * dayMs;
  const isOfDays = step === 'day' || step === 'month';
  const readsTotals = isOfDays && (days === 'totals' || period.fromMs < keptFromMs);
  const [totals] = readsTotals ? ((await usage.totals([keyId])) ?? []) : [new Map<number, Tally>()];
  if (totals === undefined) return undefined;
  // The total of a day is written one day after the day ends. The rows of days after the last total are therefore
  // computed from minutes.
  const minutesFromMs =
    days === 'totals' ? Math.max(keptFromMs, (Math.max(-1, ...totals.keys()) + 1) * dayMs) : keptFromMs;
  const recent = { ...period, fromMs: Math.max(period.fromMs, minutesFromMs) };
  const minutes = await usage.reader.minutes(keyId, recent, groups);
  if (minutes === undefined) return undefined;
  const older = [...totals]
    .map(([day, tally]): UsageMinute => ({ atMs: day * dayMs, tally }))
    .filter(({ atMs }) => atMs >= period.fromMs && atMs <= period.toMs && atMs < minutesFromMs)
    .sort((a, b) => a.atMs - b.atMs);
  return byPeriod([...older, ...minutes], (atMs) => calendarStartMs(step, atMs)).map(rowOf);
}

export function rowOf({ atMs, tally, unauthorized }: UsageMinute): UsageRow {
  return {
    at: isoSecondOf(atMs),
    offered: offeredOf(tally),
    admitted: tally.admitted,
    refused: refusedByLimit(tally),
    banned: tally.banned,
    undecided: tally.undecided || undefined,
    units: differingUnits({ admitted: tally.admitted, units: unitsOf(tally) }),
    unauthorized,
    groups: tally.groups && Object.fromEntries([...tally.groups].map(groupRow)),
  };
}

function groupRow([name, { offered, admitted, units }]: [string, GroupTally]): [string, GroupRow] {
  return [name, { offered, admitted, units }];
}
