import { getKeyUsageWire, getMonthUsageWire } from '../../admin/wires/keys/usage.ts';
import { keysPerPageMax } from '../../shared/http/wire.ts';
import { printable } from '../../shared/terminal/printable.ts';
import type { Asking, PeriodOptions } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { show } from '../output/show.ts';
import { daysOfMonth, periodQuery, stepFor } from './period.ts';
import { clientAfterFlush } from './read/flush-counts.ts';
import { ofKey } from './read/read-key.ts';
import { readList } from './read/read-list.ts';
import { monthCsv, monthNotice, monthTable, usageCsv, usageTable } from './usage-view.ts';

export interface UsageOptions extends Asking, PeriodOptions {
  readonly step?: string;
  readonly csv?: true;
  readonly month?: string;
  readonly all?: true;
}

export async function usage(id: string | undefined, { all, ...options }: UsageOptions): Promise<void> {
  if ((id === undefined) === (all === undefined))
    throw new CommandError('Whose usage? Give the id of a key, or --all.');
  await (id === undefined ? showMonth(options) : showUsage(id, options));
}

async function showMonth({ month, from, to, step, csv, ...options }: UsageOptions): Promise<void> {
  if (month === undefined || from !== undefined || to !== undefined || step !== undefined)
    throw new CommandError(
      '--all needs a month, such as --month 2026-11, and does not accept --from, --to or --step.',
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
  { month, from, to, step, csv, ...options }: UsageOptions,
): Promise<void> {
  if (month !== undefined && (from !== undefined || to !== undefined))
    throw new CommandError('Which period? Give --month, or --from and --to, not both.');
  const nowMs = Date.now();
  const period = periodQuery(month === undefined ? { from, to } : daysOfMonth(month), nowMs);
  const query = { ...period, step: step ?? (month === undefined ? stepFor(period, nowMs) : 'day') };
  const client = await clientAfterFlush(options);
  const reply = await ofKey(client, id, () => client.ask(getKeyUsageWire, { params: { id }, query }));
  if (csv) return show(options, reply, usageCsv);
  const nothing = [`No request of ${printable(id)} is recorded in this period.`];
  show(options, reply, (body, screen) => (body.rows.length === 0 ? nothing : usageTable(body, screen)));
}

const monthPage = { wire: getMonthUsageWire, member: 'keys', perPage: keysPerPageMax };
