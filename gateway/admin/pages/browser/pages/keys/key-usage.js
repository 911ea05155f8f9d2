import { h } from 'preact';
import { useMemo } from 'preact/hooks';
import { dayMs, figure, hourMs, minuteMs, rate } from '../../../../../shared/words/figures.js';
import { nowMs, usePolled, useRows } from '../../api.js';
import { Chart, markersOf, unknownSpans } from '../../charts.js';
import {
  compareButton,
  earlierLine,
  fourWeeksBefore,
  isCompared,
  shadedText,
  totalsText,
  useEarlier,
  weekBefore,
} from '../../earlier.js';
import { clock, fullInstant, periodText } from '../../formats.js';
import { CopyButton, choices, Fresh, html, noteOf, Section, useNow } from '../../parts.js';
import { changeQuery } from '../../router.js';
import { clickableMs, isoMinute, KeyMinute, minuteField, minuteIn, minuteQuery } from './key-minute.js';

/** @import { BodyOf, RowOf } from '../../../../wires/api-types.ts' */

/** @typedef {BodyOf<'/keys/{id}'>} KeyDetail */
/** @typedef {RowOf<'/keys/{id}/usage'>} UsageRow */

const zoomMin = 5 * minuteMs;

/** The length of a bar, and the limit that the chart draws. */
const steps = /** @type {const} */ ({
  minute: { limit: 'perMinute', everyMs: 4_000 },
  day: { limit: 'perDay', everyMs: 30_000 },
  month: { limit: 'perMonth', everyMs: 30_000 },
});

/**
 * The periods of the chart, by their names in URLs. The record ends after 400 days, so 12 months have no earlier period.
 *
 * @type {Readonly<Record<string, { text: string, step: keyof typeof steps, fromMs: (toMs: number) => number, earlier?: typeof weekBefore }>>}
 */
const periods = {
  '1h': { text: '1 h', step: 'minute', fromMs: (toMs) => toMs - hourMs, earlier: weekBefore },
  '24h': { text: '24 h', step: 'minute', fromMs: (toMs) => toMs - dayMs, earlier: weekBefore },
  '7d': { text: '7 days', step: 'day', fromMs: (toMs) => toMs - 7 * dayMs, earlier: weekBefore },
  '30d': { text: '30 days', step: 'day', fromMs: (toMs) => toMs - 30 * dayMs, earlier: fourWeeksBefore },
  '12mo': { text: '12 months', step: 'month', fromMs: (toMs) => laterMonth(toMs, -12) },
};

const periodTexts = Object.fromEntries(Object.entries(periods).map(([name, { text }]) => [name, text]));

/** The beginning of the month of UTC that many months later. @param {number} atMs @param {number} months */
function laterMonth(atMs, months) {
  const date = new Date(atMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months);
}

/** The end of the minute, day or month of a time. @param {keyof typeof steps} step @param {number} atMs */
function endOf(step, atMs) {
  if (step === 'month') return laterMonth(atMs, 1);
  const lengthMs = step === 'day' ? dayMs : minuteMs;
  return (Math.floor(atMs / lengthMs) + 1) * lengthMs;
}

/** @param {keyof typeof steps} step @param {number} fromMs @param {number} toMs */
function beginnings(step, fromMs, toMs) {
  const timesMs = [];
  for (let atMs = fromMs; atMs < toMs; atMs = endOf(step, atMs)) timesMs.push(atMs);
  return timesMs;
}

/**
 * Charts of the key's requests: by minute over an hour, a day or the period in the URL, by day over 30 days, or by month
 * over 12 months. The forecast of the key is below.
 *
 * @param {{ id: string, ban: KeyDetail['ban'], query: URLSearchParams }} props
 */
export function UsageChart({ id, ban, query }) {
  const nowAt = useNow();
  const zoom = zoomIn(query);
  const asked = periodAsked(query);
  const step = (!zoom && asked && periods[asked]?.step) || 'minute';
  // Rows of minutes are read for 24 hours, so that a change to another period or zoom needs no request.
  const read = step === 'minute' ? '24h' : asked;
  const usage = useRows('/keys/{id}/usage', {
    id: `${read} ${id}`,
    params: { id },
    step,
    fromMs: () => shownFrom(read, nowMs()),
    everyMs: steps[step].everyMs,
  });
  const period = asked ?? usualPeriod(usage.body, nowAt);
  const toMs = zoom ? zoom.toMs : endOf(step, nowAt);
  const fromMs = zoom ? zoom.fromMs : shownFrom(period, nowAt);
  const limits = usePolled('/keys/{id}/limits', 10_000, {
    params: { id },
    query: step === 'minute' ? {} : { from: new Date(fromMs).toISOString() },
  });
  const happened = usePolled('/events', 10_000, {
    query: { kind: 'incident,reload,reload_failed', limit: 50 },
  });
  const earlier = periods[period]?.earlier;
  const isEarlierShown = earlier !== undefined && isCompared(query);
  const before = useEarlier(isEarlierShown ? '/keys/{id}/usage' : undefined, {
    params: { id },
    ...{ step, fromMs, toMs, shiftMs: earlier?.shiftMs ?? 0 },
  });
  const { timesMs, series, units, over, unitsOver, totals, unknown } = useMemo(() => {
    const timesMs = beginnings(step, fromMs, toMs);
    const found = timesMs.map((atMs) => usage.body?.get(atMs));
    const series = [
      { label: 'admitted', colour: 'blue', values: found.map((row) => row?.admitted) },
      // The refused requests are all requests that were neither admitted nor banned.
      {
        label: 'refused',
        colour: 'orange',
        values: found.map((row) => row && row.offered - row.admitted - row.banned),
      },
      { label: 'banned', colour: 'grey', values: found.map((row) => row?.banned) },
      // These requests did not reach the limits, so `offered` does not contain them.
      ...(found.some((row) => row?.unauthorized !== undefined)
        ? [
            {
              label: 'invalid secret',
              colour: 'violet',
              values: found.map((row) => row && (row.unauthorized ?? 0)),
            },
          ]
        : []),
    ];
    const hasCosts = found.some((row) => row?.units !== undefined);
    const units = hasCosts
      ? [{ label: 'units', colour: 'blue', values: found.map(chargedUnits) }]
      : undefined;
    const lineOf = (/** @type {(row: UsageRow | undefined) => number | undefined} */ of) => {
      if (!isEarlierShown) return [];
      const line = earlierLine(
        earlier,
        timesMs.map((atMs) => of(before.get(atMs))),
        usage.body?.missing,
      );
      const isNarrow = step === 'minute' && toMs - fromMs > clickableMs;
      return [isNarrow ? meanOfTen(line) : line];
    };
    const offered = found.map(allRequests);
    const offeredBefore = timesMs.map((atMs) => allRequests(before.get(atMs)));
    const totals = totalsText(
      offered,
      isEarlierShown ? offeredBefore : undefined,
      earlier,
      usage.body?.missing,
    );
    const unknown = unknownSpans(timesMs, found, usage.body?.unknownUntilMs);
    return {
      ...{ timesMs, series, units, totals, unknown },
      ...{ over: lineOf(allRequests), unitsOver: lineOf(chargedUnits) },
    };
  }, [usage.body, before, isEarlierShown, step, fromMs, toMs]);
  const choose = (/** @type {string} */ name) =>
    changeQuery({ period: name, from: undefined, to: undefined, at: undefined });
  const tools = choices(
    periodTexts,
    { label: 'Period', chosen: zoom ? undefined : period, choose },
    html`${earlier && compareButton(query, earlier)}
      ${step === 'minute' && html`<span class="muted">drag to zoom, click a minute to see why</span> ${minuteField(query)}`}`,
  );
  const limit = limitOver(limits.body?.limits, { step, fromMs, toMs, nowAt });
  const ofMinutes = step === 'minute' && {
    markers: happened.body?.events.flatMap(markersOf) ?? [],
    onZoom: zoomTo,
    onPick: (/** @type {number} */ atMs) => changeQuery(minuteQuery(atMs, toMs - fromMs)),
  };
  const pickedMs = step === 'minute' ? minuteIn(query) : undefined;
  const common = {
    kind: /** @type {const} */ ('stacked'),
    ...{ timesMs, fromMs, toMs, pickedMs },
    ...(step !== 'minute' && { step }),
    ...ofMinutes,
    write: figure,
    note: noteOf(usage, 'No requests in this period.'),
  };
  const label = `of ${id} by ${step}, from ${fullInstant(fromMs)} to ${fullInstant(toMs)}`;
  return html`<${Section} title=${`Requests by ${step}`} tools=${tools} polled=${usage}>
    ${h(Chart, {
      ...common,
      ...{ series, over },
      limit: units ? undefined : limit,
      spans: ban && step === 'minute' ? [...unknown, { fromMs: nowAt, untilMs: ban.untilMs }] : unknown,
      label: `Requests ${label}`,
    })}
    ${units && html`<h3>Units charged to the limits, by ${step}</h3> ${h(Chart, { ...common, series: units, over: unitsOver, limit, label: `Units ${label}` })}`}
    <p class="muted totals">${usage.body && totals}${unknown.length > 0 && shadedText(usage.body?.unknownUntilMs)}</p>
    <${KeyForecast} id=${id} />
    ${pickedMs !== undefined && html`<${KeyMinute} id=${id} atMs=${pickedMs} />`}
  <//>`;
}

/**
 * Replaces each value of a line by the mean of its ten minutes. A line through each of many narrow minutes would cover
 * the bars.
 *
 * @param {ReturnType<typeof earlierLine>} line
 */
function meanOfTen({ label, values, ...line }) {
  const means = values.map((_, index) => {
    const first = index - (index % 10);
    const known = values.slice(first, first + 10).filter((value) => value !== undefined);
    return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0) / known.length;
  });
  return { ...line, label: `${label}, mean`, values: means, write: rate };
}

/** @param {UsageRow | undefined} row */
function allRequests(row) {
  return row && row.offered + (row.unauthorized ?? 0);
}

/** @param {UsageRow | undefined} row */
function chargedUnits(row) {
  return row && (row.units ?? row.admitted);
}

/** States when the key reaches its limit a month. @param {{ id: string }} props */
function KeyForecast({ id }) {
  const polled = usePolled('/keys/{id}/forecast', minuteMs, { params: { id } });
  const { limit, used = 0, sentence, expected, earliestAt, today } = polled.body ?? {};
  if (limit === undefined || sentence === undefined) return null;
  const tone = (earliestAt ?? today) || used >= limit ? 'near' : expected ? '' : 'muted';
  return html`<${Fresh} polled=${polled}>
    <p class=${`forecast ${tone}`}>${sentence} <${CopyButton} text=${sentence} /></p>
  <//>`;
}

/** @param {number} fromMs @param {number} toMs */
function zoomTo(fromMs, toMs) {
  const startMs = Math.floor(fromMs / minuteMs) * minuteMs;
  const endMs = Math.max(Math.ceil(toMs / minuteMs) * minuteMs, startMs + zoomMin);
  changeQuery({ from: isoMinute(startMs), to: isoMinute(endMs), period: undefined });
}

/**
 * Returns the limit over the period, and a legend such as "limit 50 a minute, 60 until 14:05". The result is undefined if
 * the key had no such limit in the period.
 *
 * @param {BodyOf<'/keys/{id}/limits'>['limits'] | undefined} limits the oldest first
 * @param {{ step: keyof typeof steps, fromMs: number, toMs: number, nowAt: number }} period
 */
function limitOver(limits = [], { step, fromMs, toMs, nowAt }) {
  const changes = limits
    .map(({ fromAt, limits }) => ({ fromMs: Date.parse(fromAt), value: limits[steps[step].limit] }))
    .filter(
      ({ fromMs: atMs, value }, index, all) =>
        atMs < toMs && (index === 0 || value !== all[index - 1]?.value),
    )
    .filter((_, index, all) => (all[index + 1]?.fromMs ?? toMs) > fromMs);
  if (changes.every(({ value }) => value === undefined)) return undefined;
  const [last, before] = [changes.at(-1), changes.at(-2)];
  const now = last?.value === undefined ? `no limit a ${step}` : `limit ${figure(last.value)} a ${step}`;
  const until = (/** @type {number} */ atMs) =>
    step === 'minute' ? clock(atMs, nowAt).slice(0, -3) : periodText('day', atMs, nowAt);
  const earlier =
    last && before
      ? `, ${before.value === undefined ? 'none' : figure(before.value)} until ${until(last.fromMs)}`
      : '';
  return { steps: changes, label: `${now}${earlier}` };
}

/** Returns the beginning of a period that ends now, epoch ms. @param {string | undefined} name @param {number} nowAt */
function shownFrom(name = '24h', nowAt) {
  const { step, fromMs } = periods[name] ?? {
    step: /** @type {const} */ ('minute'),
    fromMs: (/** @type {number} */ toMs) => toMs - dayMs,
  };
  return fromMs(endOf(step, nowAt));
}

/** Returns the name of the period in the URL; undefined without one. @param {URLSearchParams} query */
function periodAsked(query) {
  const name = query.get('period') ?? '';
  return Object.hasOwn(periods, name) ? name : undefined;
}

/**
 * Chooses the period of the chart if the URL has none. While only the last hour has requests, the chart shows one hour,
 * because a chart of a day would show these requests too small.
 *
 * @param {Map<number, UsageRow> | undefined} rows
 * @param {number} nowAt
 */
function usualPeriod(rows, nowAt) {
  const isRecent = rows !== undefined && rows.size > 0 && Math.min(...rows.keys()) > nowAt - hourMs;
  return isRecent ? '1h' : '24h';
}

/** @param {URLSearchParams} query */
function zoomIn(query) {
  const fromMs = Date.parse(query.get('from') ?? '');
  const toMs = Date.parse(query.get('to') ?? '');
  const isPeriod = toMs - fromMs >= minuteMs && toMs - fromMs <= dayMs;
  return isPeriod ? { fromMs: Math.floor(fromMs / minuteMs) * minuteMs, toMs } : undefined;
}
