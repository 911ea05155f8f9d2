import * as z from 'zod';
import { isoSecondOf } from '../../shared/schema/dates-and-durations.ts';
import { differingUnits, offeredOf, unitsOf } from '../../usage/tally.ts';
import type { Period } from '../../usage/usage-calendar.ts';
import { byPeriod, type UsageMinute } from '../../usage/usage-reader.ts';
import { chargedUnits, count, instant, list, positive, words } from '../api/response-parts.ts';
import type { KeySources } from './key-sources.ts';
import { refusedByWindow, refusedShown } from './why.ts';

export const usageSteps = ['minute', 'hour', 'day'] as const;

export type UsageStep = (typeof usageSteps)[number];

const stepMs: Readonly<Record<UsageStep, number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** The requests of a key in one minute, hour or day, by outcome. A period without a request has no row. */
export const usageRow = z.object({
  at: instant.describe('The beginning of the row.'),
  offered: count.describe('Requests with a decision.'),
  admitted: count,
  refused: refusedShown,
  banned: count,
  undecided: positive
    .optional()
    .describe('Requests that got 503 because Redis was away and `redis.onFailure` is `refuse`.'),
  units: chargedUnits,
  unauthorized: positive
    .optional()
    .describe(
      'Requests with an invalid secret of the key. They do not count as offered. Recorded for as long as minutes are.',
    ),
});

export type UsageRow = z.output<typeof usageRow>;

export const keyUsage = z.object({ step: words(...usageSteps), rows: list(usageRow) });

export type KeyUsage = z.output<typeof keyUsage>;

export interface UsageQuery extends Period {
  readonly step: UsageStep;
}

/** The number of rows of a query. */
export function rowsOf({ fromMs, toMs, step }: UsageQuery): number {
  return Math.floor(toMs / stepMs[step]) - Math.floor(fromMs / stepMs[step]) + 1;
}

/**
 * The usage of a key. Days without their minutes are included only as whole days. Undefined when the store does not
 * reply.
 */
export async function usageRows(
  { usage, nowMs }: KeySources,
  keyId: string,
  { fromMs, toMs, step }: UsageQuery,
): Promise<readonly UsageRow[] | undefined> {
  if (usage === undefined) return [];
  const length = stepMs[step];
  // Rows are whole, so the first row begins with its minute, hour or day.
  const period = {
    fromMs: Math.floor(fromMs / length) * length,
    toMs: Math.min(Math.floor(toMs / length) * length + length - 1, nowMs()),
  };
  const keptFromMs = (Math.floor(nowMs() / stepMs.day) - usage.state().keptDays) * stepMs.day;
  const minutes = await usage.reader.minutes(keyId, {
    ...period,
    fromMs: Math.max(period.fromMs, keptFromMs),
  });
  if (minutes === undefined) return undefined;
  const rows = byPeriod(minutes, length);
  if (step !== 'day' || period.fromMs >= keptFromMs) return rows.map(rowOf);
  const [totals] = (await usage.totals([keyId])) ?? [];
  if (totals === undefined) return undefined;
  const older = [...totals]
    .map(([day, tally]): UsageMinute => ({ atMs: day * stepMs.day, tally }))
    .filter(({ atMs }) => atMs >= period.fromMs && atMs <= period.toMs && atMs < keptFromMs)
    .sort((a, b) => a.atMs - b.atMs);
  return [...older, ...rows].map(rowOf);
}

export function rowOf({ atMs, tally, unauthorized }: UsageMinute): UsageRow {
  return {
    at: isoSecondOf(atMs),
    offered: offeredOf(tally),
    admitted: tally.admitted,
    refused: refusedByWindow(tally),
    banned: tally.banned,
    undecided: tally.undecided || undefined,
    units: differingUnits({ admitted: tally.admitted, units: unitsOf(tally) }),
    unauthorized,
  };
}
