import { useEffect, useRef } from 'preact/hooks';
import { usePolled } from '../api.js';
import { count, counted, per, percent } from '../formats.js';
import { Cards, html, Instead, Section } from '../parts.js';
import { changeQuery } from '../router.js';
import { replayedDays, useWhatIf, WhatIfSection } from './plan-what-if.js';

/** How the keys of a plan are spread under its limits. */
export function Plans({ query }) {
  const polled = usePolled('/plans', 10_000);
  const plans = polled.body?.plans ?? [];
  const name = query.get('plan') ?? plans[0]?.name;
  return html`<div class="plans">
    <${Section} title="Plans" heading="h1" polled=${polled}>
      ${
        plans.length === 0
          ? html`<${Instead} polled=${polled}>There are no plans.<//>`
          : html`<${Cards} columns=${columnsOf(name)} items=${plans} idOf=${(plan) => plan.name} />
            ${polled.body.isComplete ? '' : html`<p class="muted">The directory has more keys than those that are counted here.</p>`}`
      }
    <//>
    ${plans.length > 0 && name !== undefined && html`<${OnePlan} key=${name} name=${name} plan=${plans.find((plan) => plan.name === name)} query=${query} />`}
  </div>`;
}

/** @param {string | undefined} open the name of the plan that is shown below @returns {import('../parts.js').Column[]} */
function columnsOf(open) {
  return [
    {
      title: 'Plan',
      kind: 'id',
      cell: ({ name }) =>
        html`<a href=${`/plans?plan=${encodeURIComponent(name)}`} aria-current=${name === open ? 'true' : undefined}>${name}</a>`,
    },
    {
      title: 'Limits',
      cell: ({ isCustom, windows }) =>
        isCustom
          ? 'each key has its own'
          : windows.map(({ name, limit }) => `${count(limit)} ${per(name)}`).join(', '),
    },
    { title: 'May call', cell: ({ operations }) => operations?.join(', ') ?? 'everything' },
    { title: 'Keys', kind: 'number', cell: ({ keys }) => count(keys) },
    { title: 'Disabled', kind: 'number', cell: ({ disabledKeys }) => count(disabledKeys) },
  ];
}

/** A plan's keys, and what other limits would do to them. */
function OnePlan({ name, plan, query }) {
  const windows = plan === undefined || plan.isCustom ? [] : plan.windows;
  const tried = triedIn(query, windows);
  if (windows.length === 0) return html`<${Distribution} name=${name} tried=${tried} />`;
  return html`<${TriedPlan} name=${name} windows=${windows} tried=${tried} query=${query} />`;
}

function TriedPlan({ name, windows, tried, query }) {
  const days = replayedDays[query.get('days') ?? ''] ?? 1;
  const openKey = query.get('key') ?? undefined;
  const whatIf = useWhatIf({ plan: name, limits: tried, days, key: openKey });
  return html`<${Distribution} name=${name} tried=${tried} />
    <${WhatIfSection} plan=${name} windows=${windows} tried=${tried} days=${days} openKey=${openKey} whatIf=${whatIf} />`;
}

/** The limits in the address that are others than the plan's. @param {URLSearchParams} query @param {any[]} windows */
function triedIn(query, windows) {
  /** @type {Record<string, number>} */
  const tried = {};
  for (const { name, limit } of windows) {
    const stated = query.get(name) ?? '';
    if (/^[1-9]\d{0,14}$/.test(stated) && Number(stated) !== limit) tried[name] = Number(stated);
  }
  return tried;
}

function Distribution({ name, tried }) {
  const polled = usePolled(`/plans/${encodeURIComponent(name)}/distribution`, 30_000);
  const { body } = polled;
  const title = `${name}: the last 24 hours`;
  if (body === undefined || body.activeKeys === 0) {
    const none = body && `None of ${counted(body.keys, 'key')} has sent a request in the last 24 hours.`;
    return html`<${Section} title=${title} polled=${polled}><${Instead} polled=${polled}>${none}<//><//>`;
  }
  const { activeKeys, examinedKeys, refusedKeys, minute, day, hasCosts } = body;
  const counts = hasCosts ? 'units' : 'requests';
  const part =
    refusedKeys === 0
      ? 'none was refused anything'
      : `${counted(refusedKeys, 'was', 'were')} refused something (${percent(refusedKeys / examinedKeys)})`;
  const examined =
    examinedKeys < activeKeys ? ` Counted are the ${count(examinedKeys)} that were active last.` : '';
  return html`<${Section} title=${title} polled=${polled}>
    <p class="sentence">
      ${`${counted(activeKeys, 'key')} sent requests: ${part}.${examined}`}
    </p>
    <div class="two">
      <${Spread} title="Busiest minute of each key" unit="minute" counts=${counts} tried=${tried.minute} ...${minute} />
      <${Spread} title="All of the 24 hours of each key" unit="day" counts=${counts} tried=${tried.day} ...${day} />
    </div>
  <//>`;
}

/** How many keys are in each bucket, and where the limit is among them: its line can be dragged. */
function Spread({ title, unit, counts, limit, tried, buckets }) {
  const rows = useRef(/** @type {HTMLTableSectionElement | null} */ (null));
  const most = Math.max(...buckets.map(({ keys }) => keys), 1);
  const shown = tried ?? limit;
  const placeOf = (/** @type {number | undefined} */ of) =>
    of === undefined ? -1 : buckets.findIndex(({ from }) => from > of);
  const at = placeOf(shown);
  const before = tried === undefined ? -2 : placeOf(limit);
  const change = (/** @type {number} */ to) =>
    changeQuery({ [unit]: to === limit ? undefined : String(to) }, { replace: true });
  const line = html`<${LimitLine} key="limit" limit=${shown} unit=${unit} rows=${rows} buckets=${buckets} onChange=${change} />`;
  const beforeLine = html`<tr key="before" class="limit before"><td colspan="3">now ${count(limit)}</td></tr>`;
  return html`<figure class="spread">
    <h3>${title}</h3>
    <table>
      <thead>
        <tr>
          <th scope="col" class="number">${counts}</th>
          <th scope="col"><span class="sr">share of the largest bucket</span></th>
          <th scope="col" class="number">keys</th>
        </tr>
      </thead>
      <tbody ref=${rows}>
        ${buckets.flatMap(({ from, to, keys }, index) => [
          index === before && beforeLine,
          index === at && line,
          html`<tr key=${from} data-from=${from} data-to=${to}>
            <td class="number range">${rangeOf(from, to)}</td>
            <td><span class=${`bar ${shown !== undefined && from > shown ? 'bad' : ''}`}><span style=${{ width: `${(100 * keys) / most}%` }}></span></span></td>
            <td class="number">${count(keys)}</td>
          </tr>`,
        ])}
        ${before === -1 && limit !== undefined && beforeLine}
        ${at === -1 && shown !== undefined && line}
      </tbody>
    </table>
  </figure>`;
}

/** The limit as a line that is dragged over the rows, or moved by the arrow keys: a tenth at a time. */
function LimitLine({ limit, unit, rows, buckets, onChange }) {
  const handle = useRef(/** @type {HTMLElement | null} */ (null));
  const isMovedByKey = useRef(false);
  useEffect(() => {
    // A line that has moved to another place in the table has lost the focus.
    if (isMovedByKey.current) handle.current?.focus();
    isMovedByKey.current = false;
  }, [limit]);
  const onPointerDown = (/** @type {any} */ event) => {
    // The line is drawn anew between other rows while it is dragged: what moves is followed on the document.
    const move = (/** @type {PointerEvent} */ { clientY }) => {
      const to = limitAt(rows.current, clientY);
      if (to !== undefined) onChange(to);
    };
    const end = () => {
      document.removeEventListener('pointermove', move);
      document.removeEventListener('pointerup', end);
      document.removeEventListener('pointercancel', end);
    };
    document.addEventListener('pointermove', move);
    document.addEventListener('pointerup', end);
    document.addEventListener('pointercancel', end);
    event.preventDefault();
    event.currentTarget.focus();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const step = Math.max(1, Math.round(limit / 10));
    const to = {
      ArrowDown: limit + step,
      ArrowRight: limit + step,
      ArrowUp: limit - step,
      ArrowLeft: limit - step,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    isMovedByKey.current = true;
    onChange(Math.max(1, to));
  };
  return html`<tr class="limit">
    <td colspan="3">
      <span
        class="handle"
        ref=${handle}
        role="slider"
        tabindex="0"
        aria-label=${`limit of a ${unit}`}
        aria-orientation="vertical"
        aria-valuemin="1"
        aria-valuemax=${Math.max(buckets.at(-1)?.to ?? 1, limit)}
        aria-valuenow=${limit}
        onPointerDown=${onPointerDown}
        onKeyDown=${onKeyDown}
        >↕ limit: ${count(limit)} a ${unit}</span
      >
    </td>
  </tr>`;
}

/**
 * The limit at a height of the rows: within a row as far into its bucket as into the row.
 *
 * @param {HTMLTableSectionElement | null} body
 * @param {number} y
 */
function limitAt(body, y) {
  const rows = /** @type {HTMLTableRowElement[]} */ ([...(body?.querySelectorAll('tr[data-from]') ?? [])]);
  let limit;
  for (const row of rows) {
    const { top, height } = row.getBoundingClientRect();
    const [from, to] = [Number(row.dataset.from), Number(row.dataset.to)];
    if (y < top) return limit ?? from;
    limit = Math.max(1, Math.round(from + Math.min(1, (y - top) / height) * (to - from)));
    if (y < top + height) return limit;
  }
  return limit;
}

/** @param {number} from @param {number} to */
function rangeOf(from, to) {
  return to - from === 1 ? count(from) : `${count(from)}–${count(to - 1)}`;
}
