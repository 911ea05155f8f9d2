import { getMonthUsageWire } from '../../admin/wires/keys/usage.ts';
import { keysPerPageMax } from '../../shared/http/wire.ts';
import type { UsageStep } from '../../shared/schema/query-words.ts';
import { dayMs } from '../../shared/words/figures.js';
import type { Asking, PeriodOptions } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { show } from '../output/show.ts';
import { daysOfMonth, periodQuery, shiftOf, stepFor, yearBefore } from './period.ts';
import { clientAfterFlush } from './read/flush-counts.ts';
import { readList } from './read/read-list.ts';
import { readUsage } from './read/read-usage.ts';
import { monthCsv, monthNotice, monthTable, usageCsv, usageLines } from './usage-view.ts';

export interface UsageOptions extends Asking, PeriodOptions {
  readonly step?: UsageStep;
  readonly compare?: string;
  readonly csv?: true;
  readonly month?: string;
  readonly all?: true;
}

export async function usage(id: string | undefined, { all, ...options }: UsageOptions): Promise<void> {
  if ((id === undefined) === (all === undefined))
    throw new CommandError('Whose usage? Give the id of a key, or --all.');
  await (id === undefined ? showMonth(options) : showUsage(id, options));
}

async function showMonth({ month, csv, ...options }: UsageOptions): Promise<void> {
  const { from, to, step, compare } = options;
  if (month === undefined || [from, to, step, compare].some((option) => option !== undefined))
    throw new CommandError(
      '--all needs a month, such as --month 2026-11, and does not accept --from, --to, --step or --compare.',
    );
  daysOfMonth(month);
  const client = await clientAfterFlush(options);
  const reply = await readList(client, monthPage, { month }, Number.POSITIVE_INFINITY);
  const notice = monthNotice(reply.body);
  if (notice !== undefined) process.stderr.write(`${notice}\n`);
  show(options, reply, csv ? monthCsv : monthTable);
}

async function showUsage(
  id: string,
  { month, from, to, step, compare, csv, ...options }: UsageOptions,
): Promise<void> {
  if (month !== undefined && (from !== undefined || to !== undefined))
    throw new CommandError('Which period? Give --month, or --from and --to, not both.');
  const nowMs = Date.now();
  const usual = step === 'month' && to === undefined ? yearBefore(nowMs) : undefined;
  const period = periodQuery(month === undefined ? { from: from ?? usual, to } : daysOfMonth(month), nowMs);
  const shift = compare === undefined ? undefined : shiftOf(compare);
  // The rows must exist in the earlier period, too.
  const oldest = shift?.periodBefore(period, nowMs) ?? period;
  const query = { ...period, step: step ?? (month === undefined ? stepFor(oldest, nowMs) : 'day') };
  shift?.checkStep(query.step);
  const client = await clientAfterFlush(options);
  // A forecast continues the days of the period, so a past period has none.
  const isOfDays = query.step === 'day' || query.step === 'month';
  const endsLater = query.to === undefined || Date.parse(query.to) > nowMs - dayMs;
  const mayLackRows = !isOfDays && stepFor(oldest, nowMs) === 'day';
  const withForecast = isOfDays && endsLater && csv === undefined;
  const reply = await readUsage(client, id, query, { shift, withForecast, nowMs });
  if (csv) return show(options, reply, (body) => usageCsv(body, shift));
  show(options, reply, (body, screen) => usageLines(id, body, { shift, screen, nowMs, mayLackRows }));
}

const monthPage = { wire: getMonthUsageWire, member: 'keys', perPage: keysPerPageMax };
