import { useEffect, useMemo, useState } from 'preact/hooks';
import { ask, nowMs, usePolled, useRows } from '../api.js';
import { alongTime, Chart } from '../charts.js';
import {
  clock,
  count,
  counted,
  duration,
  fullInstant,
  milliseconds,
  noFigure,
  percent,
  rate,
  relative,
} from '../formats.js';
import { useHistory } from '../live.js';
import {
  Choices,
  Fresh,
  html,
  Instant,
  Instead,
  Section,
  Sparkline,
  SteadyRows,
  staleAfterMs,
  TextWithKey,
  useNow,
} from '../parts.js';
import { keyPath } from '../router.js';

const minuteMs = 60_000;

/** How many keys are looked at: a list by state costs a look at all of them. */
const refusedMax = 100;

/** How far back the charts go, and how long a bar is. */
const periods = {
  '15m': { text: '15 min', lengthMs: 15 * minuteMs, stepMs: minuteMs },
  '1h': { text: '1 h', lengthMs: 60 * minuteMs, stepMs: minuteMs },
  '24h': { text: '24 h', lengthMs: 24 * 60 * minuteMs, stepMs: 10 * minuteMs },
};
/** @typedef {keyof typeof periods} PeriodName */
/** @type {PeriodName} */
const usualPeriod = '15m';

/** The usual one is not in the address. */
const periodTexts = Object.fromEntries(
  Object.entries(periods).map(([name, { text }]) => [name === usualPeriod ? '' : name, text]),
);

/** @param {URLSearchParams} query @returns {PeriodName} */
function periodIn(query) {
  const name = query.get('period') ?? '';
  return name in periods ? /** @type {PeriodName} */ (name) : usualPeriod;
}

/** Is it well, how much, how slow, whose fault. */
export function Now({ query, live }) {
  const period = periodIn(query);
  const { lengthMs } = periods[period];
  // The figures need the last quarter of an hour whatever the charts show.
  const traffic = useRows((fromMs) => `/traffic?from=${new Date(fromMs).toISOString()}`, {
    id: period,
    fromMs: () => startOf(nowMs() - lengthMs, minuteMs),
    everyMs: 4_000,
  });
  const happened = useHappened();
  const refused = usePolled(`/keys?sort=refused&limit=${refusedMax}`, 4_000);
  return html`<div class="now">
    <h1 class="sr">Now</h1>
    <${Verdict} live=${live} />
    <${Figures} live=${live} traffic=${traffic} refused=${refused} />
    <${Charts} live=${live} traffic=${traffic} period=${period} happened=${happened} />
    <div class="two lists">
      <${NeedsALook} refused=${refused} />
      <${Happened} happened=${happened} />
    </div>
  </div>`;
}

/** @param {number} atMs @param {number} stepMs */
function startOf(atMs, stepMs) {
  return Math.floor(atMs / stepMs) * stepMs;
}

/** @type {Record<string, string>} */
const toneOf = { well: 'well', bad: 'bad', warning: 'near', notice: 'muted' };

/** The verdict of `/state`: the gravest fault in large letters, other faults below. */
function Verdict({ live }) {
  useNow();
  const { state, polled } = live;
  if (!state) {
    const text = polled.error ? polled.error.message : 'Loading …';
    return html`<div class="verdict"><p class="first ${polled.error ? 'bad' : ''}" role="status">${text}</p></div>`;
  }
  const isAway = polled.error !== undefined && Date.now() - polled.atMs > 2_000;
  if (isAway) {
    const text = `${polled.error?.message} The figures are from ${clock(polled.atMs, Date.now())}; this page goes on asking.`;
    return html`<div class="verdict"><p class="first bad" role="status">${text}</p></div>`;
  }
  const { severity, sentence, faults } = state.verdict;
  const isWell = severity === 'well';
  const others = isWell ? faults : faults.slice(1);
  return html`<div class="verdict">
    ${
      isWell
        ? html`<p class="first well">${sentence}</p>`
        : html`<p class=${`first ${toneOf[severity]}`} role="status"><${Sentence} text=${sentence} /> <${Since} at=${faults[0].sinceAt} /></p>`
    }
    ${
      others.length > 0 &&
      html`<ul>
        ${others.map(
          ({ severity, code, text, sinceAt }) =>
            html`<li class=${toneOf[severity]} key=${`${code} ${text}`}>${text} <${Since} at=${sinceAt} /></li>`,
        )}
      </ul>`
    }
  </div>`;
}

/** A reason of many words is set smaller than the fault, so that the fault is read first. */
const largeCharsMax = 90;

/** @param {{ text: string }} props */
function Sentence({ text }) {
  const colon = text.indexOf(': ');
  if (text.length <= largeCharsMax || colon === -1) return text;
  return html`${text.slice(0, colon + 1)} <span class="reason">${text.slice(colon + 2)}</span>`;
}

/** When a fault began, and how long ago that is. */
function Since({ at }) {
  const atMs = Date.parse(at);
  const now = nowMs();
  return html`<span class="since" title=${fullInstant(atMs)}>${`Since ${clock(atMs, now)}, ${duration(now - atMs)}.`}</span>`;
}

function Figures({ live, traffic, refused }) {
  const { totals, polled } = live;
  const limited = limitedOf(refused);
  const limitedHistory = useHistory(limited.number, refused.atMs);
  const { found } = useMemo(() => {
    const now = nowMs();
    const toMs = startOf(now, minuteMs) + minuteMs;
    return alongTime(traffic.body, {
      fromMs: toMs - 15 * minuteMs,
      toMs,
      stepMs: minuteMs,
      merge: ([row]) => row,
    });
  }, [traffic.body]);
  const refusedPart =
    totals && (totals.perSecond === 0 ? 0 : (totals.outcomes['429'] ?? 0) / totals.perSecond);
  const theirs = traffic.body && found.reduce((sum, row) => sum + (row?.failedByUpstream ?? 0), 0);
  const minutes = 'by minute, the last 15 minutes';
  // The last point of the chart: the last minute with requests.
  const { p50Ms, p99Ms } = found.findLast((row) => row !== undefined)?.ownTime ?? {};
  return html`<${Fresh} polled=${polled}><dl class="figures">
    <${Figure} name="requests" value=${rate(totals?.perSecond)} unit=" /s"
      values=${found.map((row) => row?.requests)} label=${`Requests ${minutes}`} />
    <${Figure} name="refused" value=${percent(refusedPart)}
      values=${found.map((row) => row && (row.refused + row.banned) / row.requests)} label=${`Part refused ${minutes}`} />
    <${Figure} name="own p50 / p99" value=${p99Ms === undefined ? noFigure : `${milliseconds(p50Ms)} / ${milliseconds(p99Ms)}`} unit=" ms"
      values=${found.map((row) => row?.ownTime.p99Ms)} label=${`Own time, p99, ${minutes}`} />
    <${Figure} name="keys limited" value=${limited.text}
      values=${limitedHistory} label="Keys limited or banned since this page was opened" />
    <${Figure} name="upstream failures, 15 min" value=${count(theirs)} tone=${theirs > 0 ? 'bad' : ''}
      values=${found.map((row) => row?.failedByUpstream)} label=${`Failures of the upstream ${minutes}`} />
  </dl><//>`;
}

function Figure({ name, value, unit = '', values, label, tone = '' }) {
  return html`<div class=${`figure ${tone}`}>
    <dt>${name}</dt>
    <dd class="value">${value === noFigure ? value : value + unit}</dd>
    <dd class="picture"><${Sparkline} values=${values} label=${label} /></dd>
  </div>`;
}

/** How many keys are at a limit or banned, among those that were refused most. @param {import('../api.js').Polled} refused */
function limitedOf({ body }) {
  if (body === undefined) return { number: undefined, text: noFigure };
  const number = body.keys.filter(({ state }) => state === 'limited' || state === 'banned').length;
  return { number, text: number === refusedMax ? `${count(number)}+` : count(number) };
}

/** The endings of requests, from the ground up. */
const endings = [
  { label: 'admitted', colour: 'blue', of: (row) => row.served },
  { label: 'refused', colour: 'orange', of: (row) => row.refused + row.rejected },
  { label: 'banned', colour: 'grey', of: (row) => row.banned },
  { label: 'our failures', colour: 'violet', of: (row) => row.failedByGateway },
  { label: 'upstream failures', colour: 'red', of: (row) => row.failedByUpstream },
];

const times = [
  { label: 'own p50', colour: 'blue', isDashed: false, of: (row) => row.ownTime.p50Ms },
  { label: 'own p99', colour: 'blue', isDashed: true, of: (row) => row.ownTime.p99Ms },
  {
    label: 'upstream p50',
    colour: 'orange',
    isDashed: false,
    of: (row) => row.upstreamTime.p50Ms,
  },
  {
    label: 'upstream p99',
    colour: 'orange',
    isDashed: true,
    of: (row) => row.upstreamTime.p99Ms,
  },
];

function Charts({ live, traffic, period, happened }) {
  const { lengthMs, stepMs } = periods[/** @type {PeriodName} */ (period)];
  const { totals, polled } = live;
  // Charts are drawn once a second, however often the totals change.
  const toMs = startOf(nowMs(), 1_000);
  const fromMs = startOf(toMs - lengthMs, stepMs);
  const { timesMs, series, timeSeries } = useMemo(() => {
    const { timesMs, found } = alongTime(traffic.body, {
      fromMs,
      toMs,
      stepMs,
      merge: (rows) => mergeRows(rows),
    });
    const running = timesMs.length - 1;
    const seconds = (/** @type {number} */ index) => {
      const beganMs = timesMs[index] ?? toMs;
      return Math.max(1, (Math.min(beganMs + stepMs, toMs) - beganMs) / 1_000);
    };
    const scale = liveScale(totals, found[running], seconds(running), toMs - (timesMs[running] ?? 0));
    const series = endings.map(({ label, colour, of }) => ({
      label,
      colour,
      values: found.map((row, index) => row && (of(row) / seconds(index)) * (index === running ? scale : 1)),
    }));
    const timeSeries = times.map(({ of, ...one }) => ({
      ...one,
      values: found.map((row) => row && of(row)),
    }));
    return { timesMs, series, timeSeries };
  }, [traffic.body, toMs, period, polled.body === undefined]);
  const markers = markersOf(happened.events);
  const choice = html`<${Choices} label="Period" name="period" options=${periodTexts} chosen=${period === usualPeriod ? '' : period} />`;
  const note = traffic.error
    ? traffic.error.message
    : traffic.body
      ? 'No request was recorded in this time.'
      : 'Loading …';
  const write = (/** @type {number | undefined} */ value) =>
    value === undefined ? noFigure : `${rate(value)} /s`;
  const common = { timesMs, fromMs, toMs, markers, note };
  return html`<div class="two">
    <${Section} title="Requests a second, by outcome" tools=${choice} polled=${traffic}>
      <${Chart} ...${common} kind="stacked" series=${series} write=${write} writeAxis=${rate}
        label=${`Requests a second by outcome, the last ${periods[/** @type {PeriodName} */ (period)].text}`} />
    <//>
    <${Section} title="Time of a request" polled=${traffic}>
      <${Chart} ...${common} kind="lines" isLog=${true} series=${timeSeries} write=${writeMs} writeAxis=${axisMs}
        label="Own and upstream time, half and 99 of 100 requests, in milliseconds, on a logarithmic scale" />
    <//>
  </div>`;
}

/** @param {number | undefined} ms */
function writeMs(ms) {
  return ms === undefined ? noFigure : `${milliseconds(ms)} ms`;
}

/** @param {number} ms */
function axisMs(ms) {
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}

/**
 * The record of the running minute lags behind by up to ten seconds, so its bar has the height of what processes do now, in the
 * proportions of the record.
 *
 * @param {import('../live.js').Totals | undefined} totals
 * @param {any} row
 * @param {number} seconds
 * @param {number} sinceMs since the bar began
 */
function liveScale(totals, row, seconds, sinceMs) {
  const recorded = row ? row.requests / seconds : 0;
  // The running minute is a small part of a longer bar.
  if (!totals || recorded === 0 || sinceMs > minuteMs) return 1;
  return totals.perSecond === 0 ? 1 : totals.perSecond / recorded;
}

/** Several minutes as one: their requests, and the highest of their times. @param {any[]} rows */
function mergeRows(rows) {
  const [first, ...others] = rows;
  if (others.length === 0) return first;
  const sum = (/** @type {string} */ name) => rows.reduce((total, row) => total + row[name], 0);
  const highest = (/** @type {string} */ name) => {
    /** @type {Record<string, number>} */
    const found = {};
    for (const row of rows) {
      for (const [percentile, ms] of Object.entries(row[name])) {
        found[percentile] = Math.max(found[percentile] ?? 0, Number(ms));
      }
    }
    return found;
  };
  return {
    requests: sum('requests'),
    served: sum('served'),
    refused: sum('refused'),
    banned: sum('banned'),
    rejected: sum('rejected'),
    failedByGateway: sum('failedByGateway'),
    failedByUpstream: sum('failedByUpstream'),
    ownTime: highest('ownTime'),
    upstreamTime: highest('upstreamTime'),
  };
}

const linesMax = 6;
/** On a narrow page: `styles.css` hides the others. */
const narrowLinesMax = 4;
const sunsetWithinDays = 30;

/** Keys and operations that somebody will ask about, those first that fail now. */
function NeedsALook({ refused }) {
  const busiest = usePolled('/keys?sort=offered&limit=50', 5_000);
  // Looks at one key after the other, up to 10,000 of them: half a second of work, so it is not asked often.
  const near = usePolled('/keys?state=near&sort=offered&limit=10', minuteMs);
  const sunsets = useSunsets();
  const now = useNow();
  /** @type {Map<string, any>} */
  const byId = new Map();
  // The list that is polled most often comes last, so that its state of a key counts.
  for (const { body, atMs } of [near, busiest, refused]) {
    for (const key of body?.keys ?? []) byId.set(key.id, { ...key, atMs });
  }
  const keys = [...byId.values()]
    .map((key) => ({ key, urgency: urgencyOf(key, now) }))
    .filter(({ urgency }) => urgency > 0)
    .sort((a, b) => b.urgency - a.urgency || (b.key.refused24h ?? 0) - (a.key.refused24h ?? 0));
  const lines = [
    ...keys.map(({ key }) => ({ id: `key ${key.id}`, content: html`<${KeyLine} item=${key} now=${now} />` })),
    ...sunsets.map((operation) => ({
      id: `operation ${operation.operationId}`,
      content: html`<${SunsetLine} operation=${operation} />`,
    })),
  ];
  const all = html`<a href="/keys">All keys</a>`;
  return html`<${Section} title="Needs a look" polled=${refused} tools=${all} name="lines">
    ${
      lines.length === 0
        ? html`<${Instead} polled=${refused}
            >No key is banned, at a limit or near one, and no operation that is still called ends within ${sunsetWithinDays} days. When one
            is, it stands here with the time at which it may call again.<//
          >`
        : html`<${SteadyRows}
            as="ul"
            name="rows"
            items=${lines.slice(0, linesMax)}
            idOf=${({ id }) => id}
            row=${({ content }) => html`<li>${content}</li>`}
          />`
    }
    <${More} of=${lines.length} shown=${linesMax} name="of-six" />
    <${More} of=${lines.length} shown=${narrowLinesMax} name="of-four" />
  <//>`;
}

/** @param {{ of: number, shown: number, name: string }} options `name`: at which width it is true */
function More({ of, shown, name }) {
  return of > shown && html`<p class=${`more ${name}`}>${`and ${count(of - shown)} more`}</p>`;
}

/** @param {any} key @param {number} now */
function urgencyOf({ state, windows }, now) {
  if (state === 'banned') return 5;
  if (state === 'near') {
    // A window may have begun anew since it was asked for.
    const near = windows.filter(({ used, limit, resetMs }) => used / limit >= 0.8 && resetMs > now);
    return near.length === 0 ? 0 : near.some(({ name }) => isLong(name)) ? 2 : 1;
  }
  if (state !== 'limited') return 0;
  // A minute's limit is over in seconds, a day's stays.
  return windows.some(({ remaining, name }) => remaining === 0 && isLong(name)) ? 4 : 3;
}

/** @param {string} name */
function isLong(name) {
  return name === 'hour' || name === 'day' || name === 'month';
}

function KeyLine({ item, now }) {
  const { id, state, windows, ban, refused24h, atMs } = item;
  const ageMs = Date.now() - atMs;
  const age = ageMs > 2 * staleAfterMs ? ` · ${duration(ageMs)} old` : '';
  const fullest = windows.toSorted((a, b) => b.used / b.limit - a.used / a.limit || b.resetMs - a.resetMs)[0];
  const [what, then] =
    state === 'banned'
      ? [`banned until ${clock(ban?.untilMs ?? now, now)}`, `${count(refused24h)} refused in 24 h`]
      : state === 'limited'
        ? [`all ${count(fullest.limit)} of the ${fullest.name} used`, resets(fullest, now)]
        : [`${percent(fullest.used / fullest.limit)} of the ${fullest.name} used`, resets(fullest, now)];
  return html`<a href=${keyPath(id)}>${id}</a>
    <span class=${state === 'near' ? 'near' : 'bad'}>${what}</span>
    <span class="muted">${then}${age}</span>`;
}

/** @param {any} window @param {number} now */
function resets({ resetMs }, now) {
  return resetMs > now ? `resets in ${duration(Math.max(1_000, resetMs - now))}` : 'resets now';
}

function SunsetLine({ operation: { operationId, sunsetAt, callers } }) {
  const now = nowMs();
  const atMs = Date.parse(sunsetAt);
  return html`<b>${operationId}</b>
    <span class="near">${atMs <= now ? 'past its sunset' : `sunset ${relative(atMs, now)}`}</span>
    <span class="muted">${counted(callers, 'key still calls', 'keys still call')}</span>`;
}

/** Operations that end soon, or have, and are still called; each with the number of keys. */
function useSunsets() {
  const { body } = usePolled('/operations', minuteMs);
  const [found, setFound] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    const ending = (body?.operations ?? []).filter(
      ({ deprecation, requests }) => deprecation?.daysToSunset <= sunsetWithinDays && requests > 0,
    );
    let isLeft = false;
    const asked = ending.map(async ({ operationId, deprecation }) => {
      const { callers, more = 0 } = await ask(
        `/operations/${encodeURIComponent(operationId)}/callers?limit=1`,
      );
      return { operationId, sunsetAt: deprecation.sunsetAt, callers: callers.length + more };
    });
    Promise.all(asked).then(
      (all) => !isLeft && setFound(all.filter(({ callers }) => callers > 0)),
      // The next round asks again.
      () => {},
    );
    return () => {
      isLeft = true;
    };
  }, [body]);
  return found;
}

/**
 * Incidents, bans and reloads, the newest first. Edits of keys are on the page of events: many of them would
 * hide an outage.
 *
 * @returns {{ polled: import('../api.js').Polled, events: Happened[] }}
 *
 * @typedef {{ id: string, atMs: number, beganMs: number | undefined, kind: string, group: string, text: string, keyId?: string, about?: string }} Happened
 */
function useHappened() {
  const polled = usePolled('/events?kind=incident,ban,reload,reload_failed&limit=50', 4_000);
  const events = (polled.body?.events ?? []).map(
    ({ id, at, beganAt, kind, group, text, key, target, server }) => ({
      id,
      atMs: Date.parse(at),
      beganMs: beganAt && Date.parse(beganAt),
      kind,
      group,
      text,
      keyId: key,
      about: target ?? server,
    }),
  );
  return { polled, events };
}

/** What explains a change of all requests is marked in the charts, in few words. @type {Record<string, string>} */
const marks = {
  reload: 'configuration',
  reload_failed: 'edit not valid',
  store_away: 'Redis away',
  store_back: 'Redis back',
  target_unhealthy: 'target down',
  target_healthy: 'target back',
  recording_paused: 'not recorded',
  recording_resumed: 'recorded again',
  worker_ended: 'worker ended',
};

/** @param {Happened[]} events */
function markersOf(events) {
  return events.flatMap(({ atMs, beganMs, kind, about }) => {
    if (!(kind in marks)) return [];
    const markOf = (/** @type {number} */ atMs, /** @type {string} */ kind) => ({
      atMs,
      text: [marks[kind], about].filter(Boolean).join(' '),
    });
    const begin = beginOf[kind];
    return begin && beganMs ? [markOf(beganMs, begin), markOf(atMs, kind)] : [markOf(atMs, kind)];
  });
}

/** An outage that is over is one event: its end. @type {Record<string, string>} */
const beginOf = {
  store_back: 'store_away',
  target_healthy: 'target_unhealthy',
  recording_resumed: 'recording_paused',
};

/** Outages and bans, which no operator caused on purpose. */
function Happened({ happened: { polled, events } }) {
  const incidents = events.filter(({ group, kind }) => group !== 'change' && kind !== 'ban_ended');
  const all = html`<a href="/events">All events</a>`;
  return html`<${Section} title="Incidents" polled=${polled} tools=${all} name="lines happened">
    ${
      incidents.length === 0
        ? html`<${Instead} polled=${polled}
            >Nothing went wrong in the last seven days: no outage, no ban. An incident stands here and as a line in the charts.<//
          >`
        : html`<${SteadyRows}
            as="ul"
            name="rows"
            items=${incidents.slice(0, linesMax)}
            idOf=${({ id }) => id}
            row=${({ atMs, text, keyId }) => html`<li>
              <span class="when"><${Instant} atMs=${atMs} /></span>
              <span class="what" title=${text}><${TextWithKey} text=${text} keyId=${keyId} /></span>
            </li>`}
          />`
    }
  <//>`;
}
