import { h } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import {
  counted,
  duration,
  figure,
  hourMs,
  milliseconds,
  minuteMs,
  noFigure,
  percent,
  rate,
  relative,
} from '../../../../shared/words/figures.js';
import { windowIn, windowText } from '../../../../shared/words/limit-names.js';
import { spentWindows } from '../../../words/keys.js';
import { ask, nowMs, staleAfterMs, usePolled, useRows } from '../api.js';
import { alongTime, Chart, markersOf, unknownSpans } from '../charts.js';
import {
  compareButton,
  earlierLine,
  isCompared,
  shadedText,
  totalsText,
  useEarlier,
  weekBefore,
} from '../earlier.js';
import { clock, fullInstant } from '../formats.js';
import {
  choicesInAddress,
  Fresh,
  html,
  instead,
  keyLink,
  noteOf,
  resetText,
  Section,
  sparkline,
  steadyRows,
  textWithKey,
  timedRow,
  useNow,
} from '../parts.js';
import { chosenPeriod, periods } from '../periods.js';
import { DeadSecrets } from './keys/dead-secrets.js';

/** @import { BodyOf, RowOf } from '../../../wires/api-types.ts' */
/** @import { Polled, Rows } from '../api.js' */
/** @import { Live } from '../live.js' */
/** @import { PageProps } from '../live.js' */

/** @typedef {Polled<Rows<RowOf<'/traffic'>>>} Traffic */
/** @typedef {BodyOf<'/keys'>} KeyPage */
/** @typedef {KeyPage['keys'][number] & { atMs: number }} Key a key with the time of its response */
/** @typedef {BodyOf<'/events'>['events'][number]} Event */

/**
 * The largest number of keys to request. The keys with the most refused requests come first. A request for all limited
 * keys would make the gateway check every key.
 */
const refusedMax = 100;

/** The page Now: the health of the fleet, its requests, durations and failures. @param {PageProps} props */
export function Now({ query, live }) {
  const period = chosenPeriod(['15m', '1h', '24h', '7d'], query.get('period'));
  // The figures need the minutes of the last 15 minutes. A chart of hours reads its rows itself.
  const { lengthMs } = isOfHours(period) ? periods['15m'] : period;
  const traffic = useRows('/traffic', {
    id: period.value,
    fromMs: () => startOf(nowMs() - lengthMs, minuteMs),
    everyMs: 4_000,
  });
  // This page omits edits of keys, because many edits would hide an outage. The page Events lists edits of keys.
  const happened = usePolled('/events', 4_000, {
    query: { kind: 'incident,ban,reload,reload_failed', limit: 50 },
  });
  const refused = usePolled('/keys', 4_000, { query: { sort: 'refused', limit: refusedMax } });
  return html`<div class="now">
    <h1 class="sr">Now</h1>
    <${Verdict} live=${live} />
    <${Figures} live=${live} traffic=${traffic} refused=${refused} />
    <${Charts} live=${live} traffic=${traffic} period=${period} query=${query} events=${happened.body?.events ?? []} />
    <div class="two lists">
      <${NeedsALook} refused=${refused} />
      ${incidents(happened)}
    </div>
    <${DeadSecrets} />
  </div>`;
}

/** @param {{ lengthMs: number }} period */
function isOfHours({ lengthMs }) {
  return lengthMs > periods['24h'].lengthMs;
}

/** @param {number} atMs @param {number} stepMs */
function startOf(atMs, stepMs) {
  return Math.floor(atMs / stepMs) * stepMs;
}

/** @type {Record<string, string>} */
const toneOf = { well: 'well', bad: 'bad', warning: 'near', notice: 'muted' };

/**
 * Shows the verdict of `/state`: the most serious fault in large letters, and other faults below.
 *
 * @param {{ live: Live }} props
 */
function Verdict({ live: { state, polled } }) {
  useNow();
  const { error, atMs } = polled;
  const first = (/** @type {any} */ content, /** @type {string} */ tone) =>
    html`<p class=${`first ${tone}`} role="status">${content}</p>`;
  if (!state) return html`<div class="verdict">${first(noteOf(polled, ''), error ? 'bad' : '')}</div>`;
  if (error !== undefined && Date.now() - atMs > 2_000) {
    const text = `${error.message} The figures are from ${clock(atMs, Date.now())}. This page keeps retrying.`;
    return html`<div class="verdict">${first(text, 'bad')}</div>`;
  }
  const { severity, sentence, faults } = state.verdict;
  const [gravest, ...others] = faults;
  const isWell = severity === 'well' || gravest === undefined;
  return html`<div class="verdict">
    ${isWell ? html`<p class="first well">${sentence}</p>` : first(html`${sentenceOf(sentence)} ${since(gravest.sinceAt)}`, toneOf[severity] ?? '')}
    <ul>
      ${(isWell ? faults : others).map(
        ({ severity, code, text, sinceAt }) =>
          html`<li class=${toneOf[severity]} key=${`${code} ${text}`}>${text} ${since(sinceAt)}</li>`,
      )}
    </ul>
  </div>`;
}

/**
 * The maximum length of a sentence in large letters. If a sentence is longer, the page shows the text after the colon
 * in smaller letters, so that the operator reads the fault before the reason.
 */
const largeCharsMax = 90;

/** @param {string} text */
function sentenceOf(text) {
  const colon = text.indexOf(': ');
  if (text.length <= largeCharsMax || colon === -1) return text;
  return html`${text.slice(0, colon + 1)} <span class="reason">${text.slice(colon + 2)}</span>`;
}

/** Shows when a fault began, and its duration so far. @param {string} at */
function since(at) {
  const atMs = Date.parse(at);
  const now = nowMs();
  return html`<span class="since" title=${fullInstant(atMs)}>${`Since ${clock(atMs, now)}, ${duration(now - atMs)}.`}</span>`;
}

/** @param {{ live: Live, traffic: Traffic, refused: Polled<KeyPage> }} props */
function Figures({ live: { totals, polled }, traffic, refused }) {
  const found = useMemo(() => {
    const toMs = startOf(nowMs(), minuteMs) + minuteMs;
    const period = { fromMs: toMs - 15 * minuteMs, toMs, stepMs: minuteMs };
    return alongTime(traffic.body, { ...period, merge: ([row]) => row }).found;
  }, [traffic.body]);
  const { keys, missing } = refused.body ?? {};
  const limited =
    keys?.filter(({ state }) => state === 'limited' || state === 'banned').length ||
    (missing ? undefined : keys && 0);
  const limitedBefore = useHistory(limited, refused.atMs);
  const refusedPart = totals && (totals.perSecond === 0 ? 0 : totals.refusedPerSecond / totals.perSecond);
  // The recorded counts are some seconds old, so the last minute of the processes may have more.
  const theirs =
    traffic.body &&
    Math.max(
      totals?.failedByUpstream ?? 0,
      found.reduce((sum, row) => sum + (row?.failedByUpstream ?? 0), 0),
    );
  // The durations come from the last minute with requests.
  const { p50Ms, p99Ms } = found.findLast((row) => row !== undefined)?.ownTime ?? {};
  const ownTime = p99Ms === undefined ? noFigure : `${milliseconds(p50Ms)} / ${milliseconds(p99Ms)} ms`;
  const requests = totals ? `${rate(totals.perSecond)} /s` : noFigure;
  const minutes = 'by minute, the last 15 minutes';
  return html`<${Fresh} polled=${polled}><dl class="figures">
    ${tile(
      'requests',
      requests,
      sparkline(
        found.map((row) => row?.requests),
        `Requests ${minutes}`,
      ),
    )}
    ${tile(
      'refused',
      percent(refusedPart),
      sparkline(
        found.map((row) => row && (row.refused + row.banned) / row.requests),
        `Share refused ${minutes}`,
      ),
    )}
    ${tile(
      'own p50 / p99',
      ownTime,
      sparkline(
        found.map((row) => row?.ownTime.p99Ms),
        `Own time, p99, ${minutes}`,
      ),
    )}
    ${tile('keys limited or banned', `${figure(limited)}${limited === refusedMax ? '+' : ''}`, sparkline(limitedBefore, 'Keys limited or banned since this page was opened'))}
    ${tile(
      'upstream failures, 15 min',
      figure(theirs),
      sparkline(
        found.map((row) => row?.failedByUpstream),
        `Failures of the upstream ${minutes}`,
      ),
      theirs ? 'bad' : '',
    )}
  </dl><//>`;
}

/** @param {string} name @param {string} value @param {any} picture @param {string} [tone] */
function tile(name, value, picture, tone = '') {
  return html`<div class=${`figure ${tone}`}>
    <dt>${name}</dt>
    <dd class="value">${value}</dd>
    <dd class="picture">${picture}</dd>
  </div>`;
}

/**
 * Keeps the last 60 values of a figure, one for each response.
 *
 * @param {number | undefined} value
 * @param {number} atMs the time of the response; 0 before the first
 */
function useHistory(value, atMs) {
  const kept = useRef(/** @type {(number | undefined)[]} */ (Array.from({ length: 60 })));
  useEffect(() => {
    if (atMs !== 0) kept.current = [...kept.current.slice(1), value];
  }, [atMs]);
  return kept.current;
}

/** @typedef {RowOf<'/traffic'>} TrafficRow */

/**
 * The outcomes of requests, in the order of the stacked bars from the bottom.
 *
 * @type {{ label: string, colour: string, of: (row: TrafficRow) => number }[]}
 */
const endings = [
  { label: 'admitted', colour: 'blue', of: (row) => row.served },
  { label: 'refused', colour: 'orange', of: (row) => row.refused + row.rejected },
  { label: 'banned', colour: 'grey', of: (row) => row.banned },
  { label: 'gateway failures', colour: 'violet', of: (row) => row.failedByGateway },
  { label: 'upstream failures', colour: 'red', of: (row) => row.failedByUpstream },
];

/** @type {{ label: string, colour: string, isDashed?: boolean, of: (row: TrafficRow) => number | undefined }[]} */
const times = [
  { label: 'own p50', colour: 'blue', of: (row) => row.ownTime.p50Ms },
  { label: 'own p99', colour: 'blue', isDashed: true, of: (row) => row.ownTime.p99Ms },
  { label: 'upstream p50', colour: 'orange', of: (row) => row.upstreamTime.p50Ms },
  { label: 'upstream p99', colour: 'orange', isDashed: true, of: (row) => row.upstreamTime.p99Ms },
];

/** @param {{ live: Live, traffic: Traffic, period: ReturnType<typeof chosenPeriod>, query: URLSearchParams, events: readonly Event[] }} props */
function Charts({ live: { totals, polled }, traffic, period, query, events }) {
  const { value, text, lengthMs, texts } = period;
  const byHour = isOfHours(period);
  const stepMs = byHour ? hourMs : lengthMs > periods['1h'].lengthMs ? 10 * minuteMs : minuteMs;
  // The end of the period is a whole second, so that charts are drawn at most once a second.
  const toMs = startOf(nowMs(), 1_000);
  const fromMs = startOf(toMs - lengthMs, stepMs);
  const isEarlierShown = isCompared(query);
  const asked = { step: byHour ? 'hour' : 'minute', fromMs, toMs };
  const hours = useEarlier(byHour ? '/traffic' : undefined, { ...asked, shiftMs: 0 });
  const rows = byHour ? hours : traffic.body;
  const before = useEarlier(isEarlierShown ? '/traffic' : undefined, {
    ...asked,
    shiftMs: weekBefore.shiftMs,
  });
  const { timesMs, series, over, timeSeries, sums, spans } = useMemo(() => {
    const { timesMs, found } = alongTime(rows, { fromMs, toMs, stepMs, merge: (rows) => rows });
    const running = timesMs.length - 1;
    const rates = found.map((rows, index) => {
      const sinceMs = toMs - (timesMs[index] ?? toMs);
      const seconds = Math.max(1, Math.min(stepMs, sinceMs) / 1_000);
      const scale =
        index === running && rows
          ? liveScale(totals, sumOf(rows, ({ requests }) => requests) / seconds, sinceMs)
          : 1;
      return { rows, perRequest: scale / seconds };
    });
    const series = endings.map(({ of, ...one }) => ({
      ...one,
      values: rates.map(({ rows, perRequest }) => rows && sumOf(rows, of) * perRequest),
    }));
    const timeSeries = times.map(({ of, ...one }) => ({
      ...one,
      values: found.map((rows) => rows && highestOf(rows, of)),
    }));
    const earlier = alongTime(before, { fromMs, toMs, stepMs, merge: (rows) => rows }).found;
    const requestsIn = (/** @type {TrafficRow[] | undefined} */ rows) =>
      rows && sumOf(rows, ({ requests }) => requests);
    const requestsBefore = earlier.map(requestsIn);
    const perSecond = requestsBefore.map((requests) => requests && requests / (stepMs / 1_000));
    const over = isEarlierShown ? [earlierLine(weekBefore, perSecond, traffic.body?.missing)] : [];
    const sums = totalsText(
      found.map(requestsIn),
      isEarlierShown ? requestsBefore : undefined,
      weekBefore,
      traffic.body?.missing,
    );
    const spans = unknownSpans(timesMs, found, traffic.body?.unknownUntilMs);
    return { timesMs, series, over, timeSeries, sums, spans };
  }, [rows, before, isEarlierShown, toMs, value, polled.body === undefined]);
  const note = noteOf(traffic, 'No requests in this period.');
  const write = (/** @type {number | undefined} */ value) =>
    value === undefined ? noFigure : `${rate(value)} /s`;
  const common = { timesMs, fromMs, toMs, markers: events.flatMap(markersOf), spans, note };
  const choice = choicesInAddress('period', 'Period', texts, value, compareButton(query, weekBefore));
  return html`<div class="two">
    <${Section} title="Requests a second" tools=${choice} polled=${traffic}>
      ${h(Chart, {
        ...common,
        kind: 'stacked',
        ...{ series, over },
        write,
        writeAxis: rate,
        label: `Requests a second by outcome, the last ${text}`,
      })}
      <p class="muted totals">${rows && sums}${spans.length > 0 && shadedText(traffic.body?.unknownUntilMs)}</p>
    <//>
    <${Section} title="Request time" polled=${traffic}>
      ${h(Chart, {
        ...common,
        kind: 'lines',
        isLog: true,
        series: timeSeries,
        write: (ms) => (ms === undefined ? noFigure : `${milliseconds(ms)} ms`),
        writeAxis: (ms) => (ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`),
        label: 'p50 and p99 of own and upstream time, in milliseconds, on a logarithmic scale',
      })}
    <//>
  </div>`;
}

/** @param {TrafficRow[]} rows @param {(row: TrafficRow) => number} of */
function sumOf(rows, of) {
  return rows.reduce((sum, row) => sum + of(row), 0);
}

/** @param {TrafficRow[]} rows @param {(row: TrafficRow) => number | undefined} of */
function highestOf(rows, of) {
  const known = rows.map(of).filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/**
 * Returns the factor by which the chart scales the bar of the present minute. The recorded counts of this minute are up
 * to ten seconds old, so the bar is scaled to the present rate of requests. The scaled bar keeps the recorded
 * proportions of the outcomes.
 *
 * @param {Live['totals']} totals
 * @param {number} recorded requests a second
 * @param {number} sinceMs since the bar began
 */
function liveScale(totals, recorded, sinceMs) {
  // A bar that covers more than a minute is not scaled, because the present minute is only a small part of the bar.
  if (!totals || totals.perSecond === 0 || recorded === 0 || sinceMs > minuteMs) return 1;
  return totals.perSecond / recorded;
}

const linesMax = 6;
/** The maximum number of rows on a narrow page. `styles.css` hides all other rows. */
const narrowLinesMax = 4;
const sunsetWithinDays = 30;

/**
 * Lists the keys and operations that need attention. The most urgent keys come first.
 *
 * @param {{ refused: Polled<KeyPage> }} props
 */
function NeedsALook({ refused }) {
  const busiest = usePolled('/keys', 5_000, { query: { sort: 'offered', limit: 50 } });
  // This request is sent only once a minute, because the gateway needs 0.5 s to check up to 10,000 keys.
  const near = usePolled('/keys', minuteMs, { query: { state: 'near', sort: 'offered', limit: 10 } });
  const sunsets = useSunsets();
  const now = useNow();
  /** @type {Map<string, Key>} */
  const byId = new Map();
  // If a key is in several lists, the page uses its entry in the last list, which has the shortest polling interval.
  for (const { body, atMs } of [near, busiest, refused]) {
    for (const key of body?.keys ?? []) byId.set(key.id, { ...key, atMs });
  }
  const keys = [...byId.values()]
    .map((key) => ({ key, urgency: urgencyOf(key, now) }))
    .filter(({ urgency }) => urgency > 0)
    .sort((a, b) => b.urgency - a.urgency || (b.key.refused24h ?? 0) - (a.key.refused24h ?? 0));
  const lines = [
    ...keys.map(({ key }) => ({ id: `key ${key.id}`, content: keyLine(key, now) })),
    ...sunsets.map((sunset) => ({ id: `operation ${sunset.operationId}`, content: sunsetLine(sunset, now) })),
  ];
  const more = (/** @type {number} */ shown, /** @type {string} */ width) =>
    lines.length > shown &&
    html`<p class=${`more ${width}`}>${`and ${figure(lines.length - shown)} more`}</p>`;
  return html`<${Section} title="Needs attention" polled=${refused} tools=${html`<a href="/keys">All keys</a>`} name="lines">
    ${
      lines.length === 0
        ? instead(
            refused,
            `No key is banned or near a limit, and no operation with callers ends within ${sunsetWithinDays} days.`,
          )
        : steadyRows('ul', lines.slice(0, linesMax), {
            idOf: ({ id }) => id,
            row: ({ content }) => html`<li>${content}</li>`,
          })
    }
    ${more(linesMax, 'of-six')} ${more(narrowLinesMax, 'of-four')}
  <//>`;
}

/** @param {Key} key @param {number} now */
function urgencyOf({ state, windows }, now) {
  const hasLong = (/** @type {readonly { name: string }[]} */ windows) =>
    windows.some(({ name }) => !['second', 'minute'].includes(windowIn(name)));
  if (state === 'banned') return 5;
  // A used-up day limit is more urgent than a used-up minute limit, which resets within seconds.
  if (state === 'limited') return hasLong(windows.filter(({ remaining }) => remaining === 0)) ? 4 : 3;
  if (state !== 'near') return 0;
  // Windows that were reset after the response are ignored.
  const near = windows.filter(({ used, limit, resetMs }) => used / limit >= 0.8 && resetMs > now);
  return near.length === 0 ? 0 : hasLong(near) ? 2 : 1;
}

/** @param {Key} key @param {number} now */
function keyLine({ id, state, windows, ban, refused24h, atMs }, now) {
  const ageMs = Date.now() - atMs;
  const age = ageMs > 2 * staleAfterMs ? ` · ${duration(ageMs)} old` : '';
  const [spent] = spentWindows({ windows, ban }).toSorted((a, b) => b.resetMs - a.resetMs);
  const [fullest] = windows.toSorted((a, b) => b.used / b.limit - a.used / a.limit || b.resetMs - a.resetMs);
  const shown = spent ?? fullest;
  const share = spent ? `all ${figure(spent.limit)}` : shown && percent(shown.used / shown.limit);
  const used = shown && `${share} of this ${windowText(shown.name)} used`;
  const [what, then] =
    state === 'banned'
      ? [
          `banned until ${clock(ban?.untilMs ?? now, now)}`,
          spent ? used : `${figure(refused24h)} refused in 24 h`,
        ]
      : [used, shown && resetText(shown.resetMs, now)];
  return html`${keyLink({ id })}
    <span class=${state === 'near' ? 'near' : 'bad'}>${what}</span>
    <span class="muted">${then}${age}</span>`;
}

/** @typedef {{ operationId: string, sunsetAt: string, callers: number }} Sunset */

/** @param {Sunset} sunset @param {number} now */
function sunsetLine({ operationId, sunsetAt, callers }, now) {
  const atMs = Date.parse(sunsetAt);
  return html`<b>${operationId}</b>
    <span class="near">${atMs <= now ? 'past its sunset' : `sunset ${relative(atMs, now)}`}</span>
    <span class="muted">${counted(callers, 'key still calls', 'keys still call')}</span>`;
}

/**
 * Finds operations that are near or past their sunset and are still called. The result includes the number of keys that
 * call each operation.
 */
function useSunsets() {
  const { body } = usePolled('/operations', minuteMs);
  const [found, setFound] = useState(/** @type {Sunset[]} */ ([]));
  useEffect(() => {
    const left = new AbortController();
    const asked = (body?.operations ?? []).map(async ({ operationId, deprecation, requests = 0 }) => {
      const { sunsetAt, daysToSunset = Number.MAX_VALUE } = deprecation ?? {};
      if (sunsetAt === undefined || daysToSunset >= sunsetWithinDays || requests === 0) return [];
      const one = { params: { operationId }, query: { limit: 1 } };
      const { callers, more = 0 } = await ask('/operations/{operationId}/callers', one, left.signal);
      return callers.length === 0 ? [] : [{ operationId, sunsetAt, callers: callers.length + more }];
    });
    Promise.all(asked).then(
      (all) => left.signal.aborted || setFound(all.flat().sort((a, b) => (a.sunsetAt < b.sunsetAt ? -1 : 1))),
      // A failed request is ignored, because the next poll repeats it.
      () => {},
    );
    return () => left.abort();
  }, [body]);
  return found;
}

/**
 * Lists outages, bans and other incidents. Omitted are changes that an operator made on purpose, and bans that have ended, which would
 * hide outages.
 *
 * @param {Polled<BodyOf<'/events'>>} happened
 */
function incidents(happened) {
  const all = happened.body?.events ?? [];
  const banOf = (/** @type {Event} */ { key, untilAt }) => `${key} ${untilAt}`;
  const ended = new Set(all.filter(({ kind }) => kind === 'ban_ended').map(banOf));
  const events = all.filter(
    (event) => event.group !== 'change' && event.kind !== 'ban_ended' && !ended.has(banOf(event)),
  );
  return html`<${Section} title="Incidents" polled=${happened} tools=${html`<a href="/events">All events</a>`} name="lines happened">
    ${
      events.length === 0
        ? instead(
            happened,
            'No outage in the last seven days, and no key is banned. Incidents are listed here and marked in the charts.',
          )
        : steadyRows('ul', events.slice(0, linesMax), {
            idOf: ({ id }) => id,
            row: (event) => timedRow(event, textWithKey(event.text, event.key), { isSteady: true }),
          })
    }
  <//>`;
}
