import { getMonthUsageWire } from '../../../admin/wires/keys/usage.ts';
import { listCsv } from '../../../admin/words/csv.js';
import { emptyText } from '../../../admin/words/list.js';
import {
  emptyMonthText,
  type MonthKey,
  type MonthPage,
  monthList,
  monthNotice,
} from '../../../admin/words/usage.js';
import { keysPerPageMax } from '../../../shared/http/wire.ts';
import { wrapText } from '../../../shared/terminal/text-width.ts';
import type { Asking } from '../../command.ts';
import { listTable, sayAt } from '../../output/list.ts';
import type { Screen } from '../../output/screen.ts';
import { show } from '../../output/show.ts';
import type { AdminClient } from '../admin-client.ts';
import { daysOfMonth, shiftOf } from '../period.ts';
import { clientAfterFlush } from '../read/flush-counts.ts';
import { readList } from '../read/read-list.ts';
import { beforeIsUnknown } from './compare-rows.ts';

interface MonthOptions extends Asking {
  readonly month: string;
  readonly compare?: string | undefined;
  readonly csv?: true | undefined;
}

/** The usage of a month, and of the month with which it is compared. */
export interface ComparedMonth extends MonthPage {
  readonly keys: MonthKey[];
  readonly before?: MonthPage;
}

const monthPages = { wire: getMonthUsageWire, member: 'keys', perPage: keysPerPageMax };

/** Shows the usage of all keys in a month. The exit code is 1 if figures are missing. */
export async function showMonth({ month, compare, csv, ...options }: MonthOptions): Promise<void> {
  const { from } = daysOfMonth(month);
  const before = compare === undefined ? undefined : monthBefore(from, compare);
  const client = await clientAfterFlush(options);
  const present = await readMonth(client, month);
  const earlier = before === undefined ? undefined : await readMonth(client, before);
  const body = earlier === undefined ? present.body : compareMonths(present.body, earlier.body);
  const json = earlier === undefined ? present.json : { ...Object(present.json), before: earlier.json };
  const notices = [
    ...[present.body, earlier?.body].map((page) => page && monthNotice(page)),
    earlier?.body.missing && beforeIsUnknown,
  ];
  for (const notice of notices) if (notice !== undefined) process.stderr.write(`${notice}\n`);
  const list = earlier === undefined ? monthList : { ...monthList, inCsv: [...monthList.inCsv, 'before'] };
  show(options, { body, json }, (shown, screen, nowMs) =>
    csv ? listCsv(list, shown, sayAt(nowMs)) : monthTable(shown, screen, nowMs),
  );
  // A script must not take the figures for a bill.
  if (present.body.missing !== undefined || earlier?.body.missing !== undefined) process.exitCode = 1;
}

function readMonth(client: AdminClient, month: string) {
  return readList(client, monthPages, { month }, Number.POSITIVE_INFINITY);
}

function monthBefore(from: string, compare: string): string {
  const shift = shiftOf(compare);
  shift.checkStep('month');
  return shift.periodBefore({ from, to: from }, 0).from.slice(0, 7);
}

/**
 * Adds the earlier requests of each key, unless Redis is away. A key that is only in the earlier month has no requests in the present one.
 */
export function compareMonths(present: MonthPage, before: MonthPage): ComparedMonth {
  if (before.missing !== undefined) return { ...present, keys: [...present.keys], before };
  const earlier = new Map(before.keys.map((key) => [key.id, key]));
  const known = new Set(present.keys.map(({ id }) => id));
  const onlyEarlier = before.keys
    .filter(({ id }) => !known.has(id))
    .map(({ units: _, ...key }) => ({ ...key, offered: 0, admitted: 0 }));
  const isOver = !present.toAt.startsWith(present.month);
  const keys = [...present.keys, ...onlyEarlier].map((key) => ({
    ...key,
    isOver,
    before: earlier.get(key.id)?.offered ?? 0,
  }));
  return { ...present, keys, before };
}

/** The keys with requests, the most admitted requests first. */
export function monthTable(
  page: MonthPage | ComparedMonth,
  screen: Screen,
  nowMs: number,
): readonly string[] {
  const keys: readonly MonthKey[] = page.keys;
  const busy = keys
    .filter(({ offered, before = 0 }) => offered + before > 0)
    .sort((a, b) => b.admitted - a.admitted);
  if (busy.length === 0) return wrapText(emptyText(page, emptyMonthText(page)), screen.columns);
  return listTable(monthList, monthList.rows({ ...page, keys: busy }), screen, nowMs);
}
