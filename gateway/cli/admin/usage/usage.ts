import type { UsageStep } from '../../../shared/schema/query-words.ts';
import { dayMs } from '../../../shared/words/figures.js';
import type { Asking, PeriodOptions } from '../../command.ts';
import { CommandError } from '../../output/command-error.ts';
import { show } from '../../output/show.ts';
import { daysOfMonth, periodQuery, presentMonth, shiftOf, stepFor, yearBefore } from '../period.ts';
import { clientAfterFlush } from '../read/flush-counts.ts';
import { readUsage } from '../read/read-usage.ts';
import { usageCsv, usageLines } from './usage-view.ts';

export interface UsageOptions extends Asking, PeriodOptions {
  readonly step?: UsageStep;
  readonly compare?: string;
  readonly csv?: true;
  readonly month?: string;
  readonly all?: true;
}

export async function usage(id: string | undefined, { all, ...options }: UsageOptions): Promise<void> {
  if (id !== undefined && all === undefined) return showUsage(id, options);
  if (id !== undefined)
    throw new CommandError('Whose usage? Give the id of a key, or --all for every key, not both.');
  return all === undefined ? showWhole(options) : showEveryKey(options);
}

async function showWhole({ month, ...options }: UsageOptions): Promise<void> {
  if (month !== undefined)
    throw new CommandError('Whose usage? With --month, give the id of a key, or --all for every key.');
  const { showTraffic } = await import('./traffic.ts');
  await showTraffic(options);
}

async function showEveryKey({ month, from, to, step, ...options }: UsageOptions): Promise<void> {
  if ([from, to, step].some((option) => option !== undefined))
    throw new CommandError(
      '--all shows a whole month, such as --month 2026-11, and does not accept --from, --to or --step.',
    );
  const { showMonth } = await import('./month-usage.ts');
  await showMonth({ month: month ?? presentMonth(Date.now()), ...options });
}

async function showUsage(
  id: string,
  { month, from, to, step, compare, csv, ...options }: UsageOptions,
): Promise<void> {
  if (month !== undefined && (from !== undefined || to !== undefined))
    throw new CommandError('Which period? Give --month, or --from and --to, not both.');
  const nowMs = Date.now();
  const usual = step === 'month' && to === undefined ? yearBefore(nowMs) : undefined;
  const shift = compare === undefined ? undefined : shiftOf(compare);
  const asked = month === undefined ? { from: from ?? usual, to } : daysOfMonth(month);
  const period = periodQuery(asked, nowMs, shift);
  // The rows must exist in the earlier period, too.
  const oldest = shift?.periodBefore(period, nowMs) ?? period;
  const query = { ...period, step: step ?? (month === undefined ? stepFor(oldest, nowMs) : 'day') };
  shift?.checkStep(query.step);
  const client = await clientAfterFlush(options);
  const isOfDays = query.step === 'day' || query.step === 'month';
  const endsLater = query.to === undefined || Date.parse(query.to) > nowMs - dayMs;
  const mayLackRows = !isOfDays && stepFor(oldest, nowMs) === 'day';
  // A past period has no forecast.
  const withForecast = endsLater && csv === undefined;
  const reply = await readUsage(client, id, query, { shift, withForecast, nowMs });
  if (csv) return show(options, reply, (body) => usageCsv(body, shift));
  show(options, reply, (body, screen) => usageLines(id, body, { shift, screen, nowMs, mayLackRows }));
}
