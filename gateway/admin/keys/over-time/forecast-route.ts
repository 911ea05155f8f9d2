import type { Changes } from '../../../fleet/changes.ts';
import { calendarStartMs } from '../../../shared/calendar-windows.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { counted, dayMs, figure, hourMs, minuteMs } from '../../../shared/words/figures.js';
import { type Forecast, forecast, forecastDays } from '../../../usage/forecast.ts';
import { totalsKeptDays } from '../../../usage/read/daily-totals.ts';
import { type UsageRow, usageRows } from '../../../usage/read/usage-rows.ts';
import { jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { lacksData } from '../../api/missing-data.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { getKeyForecastWire, type KeyForecast } from '../../wires/keys/usage.ts';
import { findKeys, statusesOf } from '../find-keys.ts';
import { type KeySources, noSuchKey } from '../key-sources.ts';
import { limitBeginnings, uncountedText } from './limit-beginnings.ts';

/** `GET /keys/{id}/forecast` states when the key reaches its limit a month. */
export function forecastRoute(sources: KeySources, changes: Pick<Changes, 'read'>): Route {
  return defineRoute({
    ...getKeyForecastWire,
    needs: 'read',
    readsCounts: true,
    async respond({ params: { id = '' } }) {
      const found = await findKeys(sources, [id]);
      if (found?.length === 0) return noSuchKey();
      const status = (await statusesOf(sources, found ?? []))?.get(id);
      if (status === undefined) return storeUnavailable();
      const { windows, nowMs } = status.rateLimit;
      const place = windows.findIndex(({ name, group }) => name === 'month' && group === undefined);
      const window = windows[place];
      if (window === undefined) {
        return jsonResponse({ sentence: `There is no forecast, because ${id} has no limit a month.` });
      }
      const { limit, resetMs: endMs } = window;
      const month = { id, limit, used: status.used[place] ?? 0, nowMs, endMs };
      const days = sources.usage && (await recordedDays(sources.usage, id, nowMs));
      if (sources.usage !== undefined && days === undefined) return storeUnavailable();
      const { usage } = sources;
      const readPace = async () => {
        const period = { fromMs: nowMs - hourMs, toMs: nowMs };
        const minutes = usage && (await usageRows(usage, id, { ...period, step: 'minute' }, nowMs));
        return recentPace(minutes, nowMs);
      };
      const view = await forecastView(month, days, readPace);
      const units = unitsSince(calendarStartMs('month', nowMs), days);
      const [listed] = found ?? [];
      const begun =
        listed && (await limitBeginnings(sources, changes, { listed, status }, [{ window: 'month', units }]));
      const uncounted = begun?.get('month');
      if (uncounted === undefined) return jsonResponse(view);
      const setAt = (atMs: number) => `on ${dateOf(atMs)} at ${timeOf(atMs)} UTC`;
      const since = uncountedText('The limit a month', { window: 'month', ...uncounted }, setAt, nowMs);
      return jsonResponse({ ...view, sentence: `${view.sentence} ${since}` });
    },
  });
}

function unitsSince(startMs: number, rows: readonly UsageRow[] = []): number {
  const since = rows.filter(({ at }) => Date.parse(at) >= startMs);
  return since.reduce((sum, row) => sum + chargedIn(row), 0);
}

function chargedIn({ units, admitted }: UsageRow): number {
  return units ?? admitted;
}

interface Month {
  readonly id: string;
  readonly limit: number;
  readonly used: number;
  readonly nowMs: number;
  readonly endMs: number;
}

/** Reads the rows of all recorded days. Most of them come from one read of the daily totals. */
function recordedDays(
  usage: NonNullable<KeySources['usage']>,
  id: string,
  nowMs: number,
): Promise<readonly UsageRow[] | undefined> {
  const period = { fromMs: nowMs - totalsKeptDays * dayMs, toMs: nowMs };
  return usageRows(usage, id, { ...period, step: 'day' }, nowMs, 'totals');
}

/** @param rows the recorded days; undefined without a usage record */
async function forecastView(
  month: Month,
  rows: readonly UsageRow[] | undefined,
  readPace: () => Promise<RecentPace>,
): Promise<KeyForecast> {
  const { id, limit, used, nowMs, endMs } = month;
  const none = (reason: string): KeyForecast => ({ limit, used, sentence: `No forecast: ${reason}.` });
  if (lacksData()) return none('Redis is away, and the record of this process alone is incomplete');
  if (used >= limit) {
    const sentence = `${id} has used ${presentLimit(limit)}. The next month begins on ${dateOf(endMs)}.`;
    return { limit, used, sentence };
  }
  if (rows === undefined) return none('usage is not recorded, because usage.keepDays is 0');
  const todayMs = calendarStartMs('day', nowMs);
  // The first recorded day may have begun before the first request, so it is not complete.
  const completeDays = (todayMs - Date.parse(rows[0]?.at ?? isoOf(todayMs))) / dayMs - 1;
  if (completeDays < forecastDays) {
    return none(
      `it needs ${forecastDays} complete days on record, and ${id} has ${Math.max(0, completeDays)}`,
    );
  }
  const byDay = new Map(rows.map((row) => [Date.parse(row.at), row]));
  const days = Array.from({ length: forecastDays }, (_, index) =>
    byDay.get(todayMs - (forecastDays - index) * dayMs),
  );
  const cut = days.filter((row) => row?.refused.month !== undefined).length;
  if (cut > 0) {
    return none(
      `the limit a month refused requests on ${cut} of the last ${forecastDays} days, so these days do not show the pace`,
    );
  }
  const units = days.map((row) => (row === undefined ? 0 : chargedIn(row)));
  const unitsToday = unitsSince(todayMs, rows);
  const found = forecast({ days: units, unitsToday, used, limit, nowMs, endMs });
  switch (found.kind) {
    case 'few_days':
      return none(`${id} was charged on only ${found.activeDays} of the last ${forecastDays} days`);
    case 'unlike_today': {
      const today = { units: unitsToday, most: Math.floor(found.most) };
      const { sentence } = none(
        `${id} was charged ${counted(unitsToday, 'unit')} today, but the last ${forecastDays} days allow at most ${figure(today.most)} for a whole day`,
      );
      const pace = await readPace();
      const limitMs = limitAtPaceOf(pace, month);
      if (limitMs >= endMs) return { limit, used, today, sentence };
      const then = recentPaceText('it', pace, limit, limitMs);
      return { limit, used, today: { ...today, limitAt: isoOf(limitMs) }, sentence: `${sentence} ${then}` };
    }
    case 'uneven':
      return none(`the last ${forecastDays} days of ${id} are too uneven`);
    case 'forecast': {
      const [expected, low, high] = [found.expected, found.low, found.high].map(Math.round) as [
        number,
        number,
        number,
      ];
      return {
        limit,
        used,
        sentence: sentenceOf(month, found, { pace: await readPace(), days: units }),
        expected: { units: expected, low, high },
        earliestAt: isoOf(found.earliestMs),
        latestAt: isoOf(found.latestMs),
      };
    }
  }
}

interface RecentPace {
  readonly units: number;
  /** Epoch ms, at a whole minute, because the record has minutes. */
  readonly fromMs: number;
  readonly nowMs: number;
}

/**
 * The pace of the last hour, or since the first charge of this hour. A pace that has more than doubled is that of the last ten minutes, so
 * that an hour does not hide a surge.
 */
export function recentPace(minutes: readonly UsageRow[] | undefined, nowMs: number): RecentPace {
  const paceSince = (fromMs: number) => ({ units: unitsSince(fromMs, minutes), fromMs, nowMs });
  const hourAgoMs = calendarStartMs('minute', nowMs - hourMs);
  const tenMinutesAgoMs = calendarStartMs('minute', nowMs - 10 * minuteMs);
  const charged = (minutes ?? []).filter((row) => chargedIn(row) > 0);
  const firstMs = Math.min(tenMinutesAgoMs, ...charged.map(({ at }) => Date.parse(at)));
  const [hour, tenMinutes] = [paceSince(Math.max(hourAgoMs, firstMs)), paceSince(tenMinutesAgoMs)];
  return unitsAnHour(tenMinutes) > 2 * unitsAnHour(hour) ? tenMinutes : hour;
}

function unitsAnHour({ units, fromMs, nowMs }: RecentPace): number {
  return (units / (nowMs - fromMs)) * hourMs;
}

/** Epoch ms; Infinity without units. */
function limitAtPaceOf(pace: RecentPace, { limit, used, nowMs }: Month): number {
  return nowMs + ((limit - used) / unitsAnHour(pace)) * hourMs;
}

function recentPaceText(who: string, { fromMs }: RecentPace, limit: number, limitMs: number): string {
  return `At its pace since ${timeOf(fromMs)} UTC, ${who} reaches ${presentLimit(limit)} on ${dateOf(limitMs)} at about ${timeOf(limitMs)} UTC.`;
}

interface Recent {
  readonly pace: RecentPace;
  /** The units of each of the last complete days. */
  readonly days: readonly number[];
}

/** The forecast knows only whole days. If an hour at the present pace has much of a day, the sentence says so, and begins with where it leads. */
function sentenceOf(month: Month, found: FoundForecast, { pace, days }: Recent): string {
  const most = Math.max(...days);
  const ofDays = sentenceOfDays(month, found);
  if (unitsAnHour(pace) <= most / 4) return ofDays;
  const surge = `Since ${timeOf(pace.fromMs)} UTC it was charged ${counted(pace.units, 'unit')}, and ${figure(most)} on the busiest of these days.`;
  const limitMs = limitAtPaceOf(pace, month);
  const isEarlier = limitMs < (found.earliestMs ?? month.endMs);
  const ofPace = isEarlier ? [recentPaceText(month.id, pace, month.limit, limitMs)] : [];
  return [...ofPace, ofDays, surge].join(' ');
}

type FoundForecast = Extract<Forecast, { kind: 'forecast' }>;

function sentenceOfDays(
  { id, limit, used, nowMs }: Month,
  { expected, low, high, earliestMs, latestMs }: FoundForecast,
): string {
  const ofMonth = presentLimit(limit);
  const reached = () => {
    if (earliestMs === undefined) return `${id} does not reach ${ofMonth}`;
    if (latestMs === undefined) return `${id} may reach ${ofMonth}, on ${dateOf(earliestMs)} at the earliest`;
    if (latestMs === earliestMs) return `${id} reaches ${ofMonth} on ${dateOf(earliestMs)}`;
    return `${id} reaches ${ofMonth} between ${new Date(earliestMs).getUTCDate()} and ${dateOf(latestMs)}`;
  };
  const range = figure(low) === figure(high) ? '' : ` (${figure(low)} to ${figure(high)})`;
  return `At the pace of the last ${forecastDays} days, ${reached()}. Its count was ${figure(used)} at ${isoOf(nowMs).slice(11, 19)} UTC, and is expected to be ${figure(expected)}${range} at the month's end.`;
}

function presentLimit(limit: number): string {
  return `its present limit of ${counted(limit, 'unit')} a month`;
}

const months = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October'],
  ...['November', 'December'],
];

/** A day of UTC such as "21 December". */
function dateOf(atMs: number): string {
  const date = new Date(atMs);
  return `${date.getUTCDate()} ${months[date.getUTCMonth()]}`;
}

function timeOf(atMs: number): string {
  return isoOf(atMs).slice(11, 16);
}
