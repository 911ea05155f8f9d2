import { h } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { planNotes, planSections, proposals } from '../../../../capabilities/lists/pages.js';
import { counted, figure, percent, utcMinute } from '../../../../shared/words/figures.js';
import { limitsInWords, per } from '../../../../shared/words/limit-names.js';
import { usePolled } from '../api.js';
import { cards, html, instead, Section } from '../parts.js';
import { changeQuery } from '../router.js';
import { PlanTrial } from './plan-trial.js';

/** @import { BodyOf } from '../../../wires/api-types.ts' */
/** @import { PageProps } from '../live.js' */

/** @import { Plan, TriedLimits } from '../../../../capabilities/interfaces/pages.ts' */
/** @typedef {NonNullable<Plan['changes']>[number]} Change */
/** @typedef {BodyOf<'/plans/{name}/distribution'>['minute']} Spread */

/** @param {PageProps} props */
export function Plans({ query }) {
  const polled = usePolled('/plans', 10_000);
  const { plans = [], isComplete } = polled.body ?? {};
  const name = query.get('plan') ?? plans[0]?.name;
  return html`<div class="plans">
    <${Section} title="Plans" heading="h1" polled=${polled}>
      ${
        plans.length === 0
          ? instead(polled, 'There are no plans.')
          : html`${planNotes.map((notesOn) => notesOn(plans))}
            ${cards(plans, { columns: columnsOf(name, plans), idOf: (plan) => plan.name })}
            ${!isComplete && html`<p class="muted">The key directory has more keys than are counted here.</p>`}`
      }
    <//>
    ${plans
      .filter(({ trial }) => trial !== undefined)
      .map((plan) =>
        h(PlanTrial, { key: `trial of ${plan.name}`, plan: plan.name, isOpen: plan.name === name }),
      )}
    ${plans.length > 0 && name !== undefined && onePlan(name, plans, query)}
  </div>`;
}

/** @param {string | undefined} open the name of the plan that is shown below @param {readonly Plan[]} plans @returns {import('../parts.js').Column<Plan>[]} */
function columnsOf(open, plans) {
  const hasLater = plans.some(({ changes = [] }) => changes.some(isLater));
  /** @type {import('../parts.js').Column<Plan>} */
  const later = {
    title: 'Announced changes',
    cell: ({ changes = [] }) => changes.filter(isLater).map(changeText).join('; '),
  };
  return [
    {
      title: 'Plan',
      kind: 'id',
      cell: ({ name }) =>
        html`<a href=${`/plans?plan=${encodeURIComponent(name)}`} aria-current=${name === open ? 'true' : undefined}>${name}</a>`,
    },
    {
      title: 'Limits',
      cell: ({ isCustom, windows, trial }) => {
        if (isCustom) return 'each key states its own';
        const limits = windows.map(({ name, limit }) => `${figure(limit)} ${per(name)}`).join(', ');
        return html`${limits}${trial && html`<br /><span class="muted">trial: ${limitsInWords(trial)}</span>`}`;
      },
    },
    ...(hasLater ? [later] : []),
    { title: 'Operations', cell: ({ operations }) => operations?.join(', ') ?? 'all' },
    { title: 'Keys', kind: 'number', cell: ({ keys }) => figure(keys) },
    { title: 'Disabled', kind: 'number', cell: ({ disabledKeys }) => figure(disabledKeys) },
  ];
}

/** @param {Change} change */
function isLater({ from }) {
  return Date.parse(from) > Date.now();
}

/** Describes a change, for example "from 2027-01-01 00:00 UTC: 40 a minute, 1,000 a day". @param {Change} change */
function changeText({ from, limits }) {
  return `from ${utcMinute(from)}: ${limitsInWords(limits)}`;
}

/**
 * Shows the distribution of a plan's keys, and the effect of other limits.
 *
 * @param {string} name
 * @param {readonly Plan[]} plans
 * @param {URLSearchParams} query
 */
function onePlan(name, plans, query) {
  const plan = plans.find((plan) => plan.name === name);
  const all = plan === undefined || plan.isCustom ? [] : plan.windows;
  const windows = all.filter(({ group }) => group === undefined);
  const tried = planSections.length === 0 ? {} : triedIn(query, windows);
  return html`<${Distribution} key=${`keys of ${name}`} name=${name} tried=${tried} hasGroups=${windows.length < all.length} />
    ${plan !== undefined && windows.length > 0 && planSections.map((Part) => h(Part, { key: name, present: plan, tried, query, proposals }))}`;
}

/**
 * Returns the limits in the URL that differ from the limits of the plan.
 *
 * @param {URLSearchParams} query
 * @param {Plan['windows']} windows
 */
function triedIn(query, windows) {
  /** @type {TriedLimits} */
  const tried = {};
  for (const { name, limit } of windows) {
    const stated = query.get(name) ?? '';
    if (/^[1-9]\d{0,14}$/.test(stated) && Number(stated) !== limit) tried[name] = Number(stated);
  }
  return tried;
}

/** @param {{ name: string, tried: TriedLimits, hasGroups: boolean }} props */
function Distribution({ name, tried, hasGroups }) {
  const polled = usePolled('/plans/{name}/distribution', 30_000, { params: { name } });
  const { body } = polled;
  const title = `${name}: the last 24 hours`;
  if (body === undefined || body.activeKeys === 0) {
    const none = body && `None of ${counted(body.keys, 'key')} has sent a request in the last 24 hours.`;
    return html`<${Section} title=${title} polled=${polled}>${instead(polled, none)}<//>`;
  }
  const { activeKeys, examinedKeys, refusedKeys, minute, day, hasCosts, missing } = body;
  const counts = hasCosts ? 'units' : 'requests';
  const part =
    refusedKeys === 0
      ? `no request ${missing ? 'that this gateway knows ' : ''}was refused${hasGroups ? ' by a limit of all operations' : ''}`
      : `${figure(refusedKeys)} of them had refusals (${percent(refusedKeys / examinedKeys)}), which are included below`;
  const examined =
    examinedKeys < activeKeys
      ? ` Only the ${figure(examinedKeys)} most recently active keys are counted.`
      : '';
  return html`<${Section} title=${title} polled=${polled}>
    <p class="sentence">
      ${`${counted(activeKeys, 'key')} sent requests; ${part}.${examined}`}
    </p>
    <div class="two">
      ${h(SpreadFigure, { title: 'Busiest minute of each key', unit: 'minute', counts, tried: tried.minute, spread: minute })}
      ${h(SpreadFigure, { title: `${hasCosts ? 'Units' : 'Requests'} of each key in 24 hours`, unit: 'day', counts, tried: tried.day, spread: day })}
    </div>
  <//>`;
}

/**
 * Shows the number of keys in each bucket, and the limit as a line that the operator can drag.
 *
 * @param {{ title: string, unit: 'minute' | 'day', counts: string, tried: number | undefined, spread: Spread }} props
 */
function SpreadFigure({ title, unit, counts, tried, spread: { limit, buckets } }) {
  const rows = useRef(/** @type {HTMLTableSectionElement | null} */ (null));
  const most = Math.max(...buckets.map(({ keys }) => keys), 1);
  const shown = tried ?? limit;
  const placeOf = (/** @type {number} */ limit) => buckets.filter(({ from }) => from <= limit).length;
  const at = shown === undefined ? -1 : placeOf(shown);
  const before = tried === undefined || limit === undefined ? -1 : placeOf(limit);
  const change = (/** @type {number} */ to) =>
    changeQuery({ [unit]: to === limit ? undefined : String(to) }, { replace: true });
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
        ${[...buckets, undefined].flatMap((bucket, index) => [
          index === before &&
            html`<tr key="before" class="limit before"><td colspan="3">now ${figure(limit)}</td></tr>`,
          index === at &&
            shown !== undefined &&
            h(LimitLine, { key: 'limit', limit: shown, unit, rows, buckets, onChange: change }),
          bucket && bucketRow(bucket, { most, isOver: shown !== undefined && bucket.from > shown }),
        ])}
      </tbody>
    </table>
  </figure>`;
}

/** @param {Spread['buckets'][number]} bucket @param {{ most: number, isOver: boolean }} options */
function bucketRow({ from, to, keys }, { most, isOver }) {
  return html`<tr key=${from} data-from=${from} data-to=${to}>
    <td class="number range">${to - from === 1 ? figure(from) : `${figure(from)}–${figure(to - 1)}`}</td>
    <td><span class=${`bar ${isOver ? 'bad' : ''}`}><span style=${{ width: `${(100 * keys) / most}%` }}></span></span></td>
    <td class="number">${figure(keys)}</td>
  </tr>`;
}

/**
 * The limit as a line between the rows. The operator drags the line, or moves it by a tenth of the limit with the
 * arrow keys.
 *
 * @param {{ limit: number, unit: string, rows: { current: HTMLTableSectionElement | null }, buckets:
 * Spread['buckets'], onChange: (to: number) => void }} props
 */
function LimitLine({ limit, unit, rows, buckets, onChange }) {
  const handle = useRef(/** @type {HTMLElement | null} */ (null));
  const isMovedByKey = useRef(false);
  useEffect(() => {
    // A line that moves to another place in the table loses the focus.
    if (isMovedByKey.current) handle.current?.focus();
    isMovedByKey.current = false;
  }, [limit]);
  const onPointerDown = (/** @type {any} */ event) => {
    // The event listeners are on `document`, because the dragged line moves to another place in the table.
    const dragged = new AbortController();
    const { signal } = dragged;
    const move = (/** @type {PointerEvent} */ { clientY }) => {
      const to = limitAt(rows.current, clientY);
      if (to !== undefined) onChange(to);
    };
    document.addEventListener('pointermove', move, { signal });
    for (const end of ['pointerup', 'pointercancel'])
      document.addEventListener(end, () => dragged.abort(), { signal });
    event.preventDefault();
    event.currentTarget.focus();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const sign = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (sign === undefined) return;
    const to = limit + sign * Math.max(1, Math.round(limit / 10));
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
        >↕ limit: ${figure(limit)} a ${unit}</span
      >
    </td>
  </tr>`;
}

/**
 * Converts a vertical position within the rows to a limit. The middle of a row, for example, stands for the middle of
 * the row's bucket.
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
