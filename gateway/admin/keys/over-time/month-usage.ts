import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { dayMs } from '../../../shared/words/figures.js';
import { firstDayOf, monthAfter, totalsKeptDays } from '../../../usage/read/daily-totals.ts';
import type { Requests } from '../../../usage/read/usage-reader.ts';
import { differingUnits, offeredOf, unitsOf } from '../../../usage/tally.ts';
import { lacksData } from '../../api/missing-data.ts';
import type { MonthPage } from '../../wires/keys/usage.ts';
import { findKnownKeys, pageOfIds } from '../find-keys.ts';
import type { KeySources } from '../key-sources.ts';

export interface MonthQuery {
  /** A month of UTC such as 2026-11; by default the present month. */
  readonly month?: string | undefined;
  /** The member `next` of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/**
 * Returns a page of keys with their usage in a month, for billing. The page includes keys of the configuration, keys of
 * the directory, and removed keys that are still in the index of active keys. Each key costs one read, and one more
 * read for each day whose minutes are still recorded. The result is undefined when the store does not reply.
 */
export async function monthUsage(
  sources: Omit<KeySources, 'readStatus'>,
  { month = new Date(sources.nowMs()).toISOString().slice(0, 7), after = '', limit }: MonthQuery,
): Promise<MonthPage | 'not_kept' | undefined> {
  const { usage } = sources;
  const nowMs = sources.nowMs();
  const startMs = firstDayOf(month) * dayMs;
  const endMs = firstDayOf(monthAfter(month)) * dayMs;
  if (usage === undefined || startMs > nowMs || endMs < nowMs - totalsKeptDays * dayMs) return 'not_kept';
  const active = await usage.reader.active();
  const recorded = active?.map(({ keyId }) => keyId);
  const page = recorded && (await pageOfIds(sources, { after, limit, further: recorded }));
  if (page === undefined) return undefined;
  const [known, found] = await Promise.all([
    findKnownKeys(sources, page.ids),
    requestsOf(sources, usage, page.ids, month),
  ]);
  if (known === undefined || found === undefined) return undefined;
  const byId = new Map(known.filter(({ isUnread }) => !isUnread).map(({ key }) => [key.id, key]));
  const keptDays = sources.settings().redis === undefined ? usage.state().keptDays : totalsKeptDays;
  const keptFromMs = (Math.floor(nowMs / dayMs) - keptDays) * dayMs;
  const keys = page.ids.flatMap((id, index): MonthPage['keys'] => {
    const { offered, admitted, units } = found[index] ?? { offered: 0, admitted: 0, units: 0 };
    const key = byId.get(id);
    if (offered === 0 && (key === undefined || lacksData())) return [];
    const differing = differingUnits({ admitted, units });
    return [{ id, name: key?.name, plan: key?.plan, offered, admitted, units: differing }];
  });
  return {
    month,
    fromAt: isoOf(Math.max(startMs, keptFromMs)),
    toAt: isoOf(Math.min(endMs, nowMs)),
    keys,
    next: page.next,
  };
}

/** Adds up the hourly counts of the days whose minutes are still recorded, and the daily totals of earlier days. */
async function requestsOf(
  { nowMs }: Pick<KeySources, 'nowMs'>,
  { reader, totals, state }: NonNullable<KeySources['usage']>,
  keyIds: readonly string[],
  month: string,
): Promise<readonly Requests[] | undefined> {
  const firstDay = firstDayOf(month);
  const today = Math.floor(nowMs() / dayMs);
  const keptDay = Math.max(firstDay, today - state().keptDays);
  const endDay = Math.min(firstDayOf(monthAfter(month)), today + 1);
  const [kept, earlier] = await Promise.all([
    reader.requestsOf(keyIds, { fromDay: keptDay, endDay }),
    keptDay === firstDay ? [] : totals(keyIds, month),
  ]);
  if (kept === undefined || earlier === undefined) return undefined;
  return kept.map((ofKept, index) => {
    const sum = { ...ofKept };
    for (const [day, tally] of earlier[index] ?? []) {
      if (day >= keptDay) continue;
      sum.offered += offeredOf(tally);
      sum.admitted += tally.admitted;
      sum.units += unitsOf(tally);
    }
    return sum;
  });
}
