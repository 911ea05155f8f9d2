import { useMemo, useState } from 'preact/hooks';
import { nowMs, usePolled, useRows } from '../api.js';
import { alongTime, Chart } from '../charts.js';
import { clock, count, counted, fullInstant, limitsInWords, noFigure, relative } from '../formats.js';
import { KeyActions, Result } from '../key-actions.js';
import {
  Age,
  Cards,
  CopyButton,
  errorColumns,
  Fresh,
  html,
  Instant,
  Section,
  StateWord,
  useNow,
  WindowBar,
} from '../parts.js';
import { changeQuery } from '../router.js';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const zoomMin = 5 * minuteMs;

const periods = {
  '24h': { text: '24 h', lengthMs: dayMs },
  '1h': { text: '1 h', lengthMs: 60 * minuteMs },
};

/** Why a key gets what it gets: in a sentence, then in figures, then over time. */
export function Key({ params: { id }, query, live }) {
  const [result, setResult] = useState(
    /** @type {import('../key-actions.js').Done | undefined} */ (undefined),
  );
  const [isDeleted, setDeleted] = useState(false);
  // Not asked for when it is deleted: a browser reports a 404 as an error.
  const polled = usePolled(isDeleted ? undefined : `/keys/${encodeURIComponent(id)}`, 3_000);
  const operations = usePolled('/operations', minuteMs).body?.operations ?? [];
  const { body: key, error } = polled;
  if (!key) {
    const text =
      error?.status === 404
        ? html`There is no key <b>${id}</b>. <a href="/keys">All keys</a> are on a page of their own.`
        : (error?.message ?? 'Loading …');
    return html`<p class="empty" role=${error ? 'alert' : 'status'}>${text}</p>`;
  }
  const done = (/** @type {string} */ text, isEnd = false) => {
    setResult({ text, atMs: nowMs() });
    setDeleted(isEnd);
  };
  // Its last body stays, which no longer holds.
  if (isDeleted || error?.status === 404) {
    return html`<${Result} of=${result} />
      <p class="empty">There is no key <b>${id}</b>. <a href="/keys">All keys</a> are on a page of their own.</p>`;
  }
  return html`<div class="key">
    <header class="heading">
      <h1>${id}</h1>
      <p>
        ${key.name !== undefined && html`<bdi>${key.name}</bdi> · `}${key.plan} · <${StateWord} state=${key.state} /> ·
        <span class="muted"> ${placeOf(key)}</span>
        ${' '}<${Age} polled=${polled} />
      </p>
      <${Others} of=${key} />
      <${KeyActions} of=${key} live=${live} result=${result} onDone=${done} />
    </header>
    <${Fresh} polled=${polled}>
      <${Why} sentence=${key.why.sentence} />
      <${Windows} windows=${key.windows} ban=${key.ban} strikes=${key.strikes} grant=${key.grant} />
    <//>
    <${UsageChart} id=${id} ban=${key.ban} query=${query} />
    <div class="two">
      <${Operations} operations=${key.operations24h} known=${operations} polled=${polled} />
      <${Secrets} secrets=${key.secrets} source=${key.source} polled=${polled} />
    </div>
    <${Refusals} rows=${key.recentRefusals} polled=${polled} />
  </div>`;
}

const shownApart = [
  ...['id', 'plan', 'name', 'operations', 'secrets', 'state', 'source', 'file', 'line', 'revision'],
  ...['windows', 'ban', 'grant', 'strikes', 'why', 'lastSeenMs', 'offered24h', 'refused24h'],
  ...['operations24h', 'recentRefusals'],
];

/** The stated members of the key that have no other place on the page. @param {any} props */
function Others({ of: key }) {
  const others = Object.entries(key).filter(([name]) => !shownApart.includes(name));
  return others.map(
    ([name, member]) =>
      html`<p key=${name} class="muted">${name}: <bdi>${typeof member === 'string' ? member : JSON.stringify(member)}</bdi></p>`,
  );
}

/** The place where an operator edits the key. @param {any} key */
function placeOf({ source, file, line }) {
  if (source === 'directory') return 'in the directory';
  return file === undefined ? 'in the configuration' : `in ${file}:${line}`;
}

function Why({ sentence }) {
  return html`<div class="why">
    <p>${sentence}</p>
    <${CopyButton} text=${sentence} />
  </div>`;
}

function Windows({ windows, ban, strikes, grant }) {
  const now = useNow();
  return html`<div class="windows">
    ${windows.map((window) => html`<${WindowBar} key=${window.name} ...${window} now=${now} isLong=${true} />`)}
    <p class="muted ban">
      ${
        ban
          ? html`<span class="bad">Banned</span>, level ${count(ban.level)}, <${Instant} atMs=${ban.untilMs} prefix="ends " />`
          : strikes > 0
            ? `${counted(strikes, 'refusal counts', 'refusals count')} towards the next ban`
            : 'no refusal counts towards a ban'
      }
      ${
        grant &&
        html` · granted ${limitsInWords(grant.limits)}${grant.fromMs && html`, <${Instant} atMs=${grant.fromMs} prefix="begins " />`}, <${Instant} atMs=${grant.untilMs} prefix="ends " />`
      }
    </p>
  </div>`;
}

/** The last 24 hours by minute, or the period in the address. */
function UsageChart({ id, ban, query }) {
  const usage = useRows(
    (fromMs) => `/keys/${encodeURIComponent(id)}/usage?from=${new Date(fromMs).toISOString()}`,
    { id, fromMs: () => Math.floor(nowMs() / minuteMs) * minuteMs - dayMs + minuteMs, everyMs: 4_000 },
  );
  const limits = usePolled(`/keys/${encodeURIComponent(id)}/limits`, 10_000);
  useNow();
  const nowAt = nowMs();
  const zoom = zoomIn(query);
  const period = periodIn(query, usage.body, nowAt);
  const toMs = zoom ? zoom.toMs : Math.floor(nowAt / minuteMs) * minuteMs + minuteMs;
  const fromMs = zoom ? zoom.fromMs : toMs - periods[period].lengthMs;
  const { timesMs, series, units } = useMemo(() => {
    const { timesMs, found } = alongTime(usage.body, {
      fromMs,
      toMs,
      stepMs: minuteMs,
      merge: ([row]) => row,
    });
    const series = [
      { label: 'admitted', colour: 'blue', values: found.map((row) => row?.admitted) },
      { label: 'refused', colour: 'orange', values: found.map((row) => row && refusedIn(row)) },
      { label: 'banned', colour: 'grey', values: found.map((row) => row?.banned) },
    ];
    const hasCosts = found.some((row) => row?.units !== undefined);
    const charged = found.map((row) => row && (row.units ?? row.admitted));
    const units = hasCosts ? [{ label: 'units', colour: 'blue', values: charged }] : undefined;
    return { timesMs, series, units };
  }, [usage.body, fromMs, toMs]);
  const limit = limitOver(limits.body?.limits, fromMs, toMs, nowAt);
  const setZoom = (/** @type {number} */ from, /** @type {number} */ to) => {
    const start = Math.floor(from / minuteMs) * minuteMs;
    const end = Math.max(Math.ceil(to / minuteMs) * minuteMs, start + zoomMin);
    changeQuery({ from: isoOf(start), to: isoOf(end), period: undefined });
  };
  const show = (/** @type {string} */ name) => changeQuery({ period: name, from: undefined, to: undefined });
  const tools = html`<span class="choice" role="group" aria-label="Period">
    ${Object.entries(periods).map(
      ([name, { text }]) =>
        html`<button key=${name} type="button" aria-pressed=${!zoom && name === period} onClick=${() => show(name)}>${text}</button>`,
    )}
    <span class="muted">drag to zoom</span>
  </span>`;
  const note = usage.error
    ? usage.error.message
    : usage.body
      ? 'No request of this key was recorded in this time.'
      : 'Loading …';
  return html`<${Section} title="Asked for and admitted, per minute" tools=${tools} polled=${usage}>
    <${Chart}
      kind="stacked"
      timesMs=${timesMs}
      fromMs=${fromMs}
      toMs=${toMs}
      series=${series}
      limit=${units ? undefined : limit}
      spans=${ban ? [{ fromMs: nowAt, untilMs: ban.untilMs }] : []}
      write=${count}
      note=${note}
      onZoom=${setZoom}
      label=${`Requests of ${id} by minute, from ${fullInstant(fromMs)} to ${fullInstant(toMs)}`}
    />
    ${
      units &&
      html`<h3>Units that the limits were charged, per minute</h3>
        <${Chart}
          kind="stacked"
          timesMs=${timesMs}
          fromMs=${fromMs}
          toMs=${toMs}
          series=${units}
          limit=${limit}
          write=${count}
          note=${note}
          onZoom=${setZoom}
          label=${`Units of ${id} by minute, from ${fullInstant(fromMs)} to ${fullInstant(toMs)}`}
        />`
    }
  <//>`;
}

/**
 * The minute limit over the period, and its legend: "limit 50 a minute, 60 until 14:05". Undefined where there was none.
 *
 * @param {{ fromAt: string, limits: { perMinute?: number } }[] | undefined} limits the oldest first
 * @param {number} fromMs
 * @param {number} toMs
 * @param {number} nowAt
 */
function limitOver(limits = [], fromMs, toMs, nowAt) {
  const steps = limits
    .map(({ fromAt, limits }) => ({ fromMs: Date.parse(fromAt), value: limits.perMinute }))
    .filter(
      ({ fromMs: atMs, value }, index, all) =>
        atMs < toMs && (index === 0 || value !== all[index - 1]?.value),
    )
    .filter((_, index, all) => (all[index + 1]?.fromMs ?? toMs) > fromMs);
  if (steps.every(({ value }) => value === undefined)) return undefined;
  const [last, before] = [steps.at(-1), steps.at(-2)];
  const figure = (/** @type {number | undefined} */ value) => (value === undefined ? 'none' : count(value));
  const now = last?.value === undefined ? 'no limit a minute' : `limit ${count(last.value)} a minute`;
  const earlier =
    last && before
      ? `, ${figure(before.value)} until ${clock(last.fromMs, nowAt).replace(/:\d\d$/, '')}`
      : '';
  return { steps, label: `${now}${earlier}` };
}

/** Every request that was neither admitted nor banned. @param {any} row */
function refusedIn({ offered, admitted, banned }) {
  return offered - admitted - banned;
}

/** @param {number} atMs */
function isoOf(atMs) {
  return `${new Date(atMs).toISOString().slice(0, 16)}Z`;
}

/**
 * The last hour while nothing older is recorded, since of a day that would be a thin line.
 *
 * @param {URLSearchParams} query
 * @param {Map<number, any> | undefined} rows
 * @param {number} nowAt
 * @returns {keyof typeof periods}
 */
function periodIn(query, rows, nowAt) {
  const name = query.get('period') ?? '';
  if (name in periods) return /** @type {keyof typeof periods} */ (name);
  const isRecent = rows !== undefined && rows.size > 0 && Math.min(...rows.keys()) > nowAt - 60 * minuteMs;
  return isRecent ? '1h' : '24h';
}

/** @param {URLSearchParams} query */
function zoomIn(query) {
  const fromMs = Date.parse(query.get('from') ?? '');
  const toMs = Date.parse(query.get('to') ?? '');
  const isPeriod = toMs - fromMs >= minuteMs && toMs - fromMs <= dayMs;
  return isPeriod ? { fromMs, toMs } : undefined;
}

/** @param {{ operations: any[] | undefined, known: any[], polled: import('../api.js').Polled }} props */
function Operations({ operations, known, polled }) {
  const deprecated = new Set(
    known.filter(({ deprecation }) => deprecation !== undefined).map(({ operationId }) => operationId),
  );
  const columns = [
    {
      title: 'Operation',
      kind: 'id',
      cell: ({ operationId }) => html`${operationId === '' ? html`<i>no operation</i>` : operationId}
        ${deprecated.has(operationId) && html` <span class="near">deprecated</span>`}`,
    },
    { title: 'Requests', kind: 'number', cell: ({ requests }) => count(requests) },
    ...errorColumns,
  ];
  return html`<${Section} title="Operations, 24 h" polled=${polled}>
    ${
      operations === undefined || operations.length === 0
        ? html`<p class="empty">
            ${operations === undefined ? 'Nothing is recorded: usage.keepDays is 0.' : 'It called no operation in the last 24 hours.'}
          </p>`
        : html`<${Cards} columns=${columns} items=${operations} idOf=${({ operationId }) => operationId} />`
    }
  <//>`;
}

/** @param {{ secrets: any[], source: string, polled: import('../api.js').Polled }} props */
function Secrets({ secrets, source, polled }) {
  const now = useNow();
  const columns = [
    {
      title: 'SHA-256',
      kind: 'id',
      hint: 'The first digits of its SHA-256 digest',
      cell: ({ digestStart }) => html`<code>${digestStart}…</code>`,
    },
    {
      title: 'Created',
      kind: 'number',
      cell: ({ createdAt }) =>
        createdAt === undefined ? noFigure : html`<${Instant} atMs=${Date.parse(createdAt)} />`,
    },
    {
      title: 'Last used',
      kind: 'number',
      cell: ({ lastUsedAt }) => html`<${Instant} atMs=${lastUsedAt && Date.parse(lastUsedAt)} />`,
    },
    {
      title: 'Got 401',
      kind: 'number',
      hint: 'Requests with this secret after it had expired or while the key was disabled, and the last of these requests',
      cell: ({ unauthorized }) =>
        unauthorized === undefined
          ? noFigure
          : html`${count(unauthorized.requests)}, <${Instant} atMs=${Date.parse(unauthorized.lastAt)} />`,
    },
    {
      title: 'Ends',
      kind: 'number',
      isBad: ({ isExpired }) => isExpired,
      cell: ({ expiresAt, isExpired }) => {
        if (expiresAt === undefined) return noFigure;
        const endsMs = Date.parse(expiresAt);
        return html`<time title=${fullInstant(endsMs)} dateTime=${expiresAt}>${isExpired ? 'ended ' : ''}${relative(endsMs, now)}</time>`;
      },
    },
  ];
  return html`<${Section} title="Secrets" polled=${polled}>
    ${
      secrets.length === 0
        ? html`<p class="empty">It has no secret, so nobody can call with it.</p>`
        : html`<${Cards} columns=${columns} items=${secrets} idOf=${({ digestStart }) => digestStart} />`
    }
    ${source === 'file' && html`<p class="muted">Its secrets, and whether it is revoked, are edited where it is written, by hand or with <code>tollgate keys</code>.</p>`}
  <//>`;
}

/** @param {{ rows: any[] | undefined, polled: import('../api.js').Polled }} props */
function Refusals({ rows, polled }) {
  if (rows === undefined) return undefined;
  const now = nowMs();
  const columns = [
    {
      title: 'Minute',
      kind: 'id',
      cell: ({ at }) =>
        html`<time title=${fullInstant(Date.parse(at))} dateTime=${at}>${clock(Date.parse(at), now).slice(0, -3)}</time>`,
    },
    { title: 'Asked for', kind: 'number', cell: ({ offered }) => count(offered) },
    { title: 'Admitted', kind: 'number', cell: ({ admitted }) => count(admitted) },
    ...(rows.some(({ units }) => units !== undefined)
      ? [{ title: 'Units', kind: 'number', cell: ({ admitted, units = admitted }) => count(units) }]
      : []),
    { title: 'Refused', kind: 'number', cell: ({ offered, admitted }) => count(offered - admitted) },
    { title: 'By', cell: refusedBy },
  ];
  return html`<${Section} title="Last minutes with refusals" polled=${polled}>
    ${
      rows.length === 0
        ? html`<p class="empty">None of its requests was refused in the last 24 hours.</p>`
        : html`<${Cards} columns=${columns} items=${rows} idOf=${({ at }) => at} />`
    }
  <//>`;
}

/** @param {any} row */
function refusedBy({ refused, banned, undecided = 0 }) {
  const parts = Object.entries(refused).map(([name, number]) => `${name} limit ${count(Number(number))}`);
  if (banned > 0) parts.push(`ban ${count(banned)}`);
  if (undecided > 0) parts.push(`Redis away ${count(undecided)}`);
  return parts.join(', ');
}
