import { useEffect, useRef } from 'preact/hooks';
import { dayMs, hourMs, minuteMs } from '../../../../../shared/words/figures.js';
import { nowMs, usePolled } from '../../api.js';
import { clock, fullInstant } from '../../formats.js';
import { CopyButton, Fresh, html } from '../../parts.js';
import { changeQuery } from '../../router.js';

/** A chart of a longer period is zoomed, because its minutes are too narrow to be clicked. */
export const clickableMs = 2 * hourMs;
/** Counts of other processes arrive some time after the minute. */
const stillGrowingMs = 3 * minuteMs;

/** Returns the minute in the URL, epoch ms; undefined without a minute. @param {URLSearchParams} query */
export function minuteIn(query) {
  const atMs = Date.parse(query.get('at') ?? '');
  return Number.isNaN(atMs) ? undefined : Math.floor(atMs / minuteMs) * minuteMs;
}

/**
 * Returns the query that explains a minute. If the chart's minutes are too narrow, the query also selects the hour around
 * the minute.
 *
 * @param {number} atMs
 * @param {number} shownMs the length of the period that the chart shows
 */
export function minuteQuery(atMs, shownMs) {
  const at = isoMinute(atMs);
  if (shownMs <= clickableMs) return { at };
  return { at, from: isoMinute(atMs - hourMs / 2), to: isoMinute(atMs + hourMs / 2), period: undefined };
}

/**
 * A field for the time of a minute of the last 24 hours, as `tollgate why KEY --at 14:03` takes it.
 *
 * @param {URLSearchParams} query
 */
export function minuteField(query) {
  const pickedMs = minuteIn(query);
  const choose = (/** @type {any} */ { currentTarget: { value } }) => {
    const atMs = Date.parse(`${new Date(nowMs()).toISOString().slice(0, 10)}T${value}Z`);
    if (!Number.isNaN(atMs)) changeQuery(minuteQuery(atMs > nowMs() ? atMs - dayMs : atMs, dayMs));
  };
  const value = pickedMs === undefined ? '' : new Date(pickedMs).toISOString().slice(11, 16);
  return html`<label class="day muted">minute <input type="time" value=${value} onChange=${choose} /></label>`;
}

/** @param {number} atMs */
export function isoMinute(atMs) {
  return `${new Date(atMs).toISOString().slice(0, 16)}Z`;
}

/**
 * Explains the refusals of a key in the minute of the URL, with one sentence for each kind.
 *
 * @param {{ id: string, atMs: number }} props
 */
export function KeyMinute({ id, atMs }) {
  const everyMs = nowMs() - atMs < stillGrowingMs ? 4_000 : minuteMs;
  const query = { at: isoMinute(atMs) };
  const polled = usePolled('/keys/{id}/why', everyMs, { params: { id }, query });
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  // The last response may be about another minute.
  const body = polled.body && Date.parse(polled.body.at) === atMs ? polled.body : undefined;
  const isKnown = body !== undefined;
  useEffect(() => {
    if (isKnown) place.current?.scrollIntoView({ block: 'nearest' });
  }, [atMs, isKnown]);
  const step = (/** @type {number} */ byMs) => {
    const toMs = atMs + byMs;
    return html`<button type="button" disabled=${toMs > nowMs()} aria-label=${`The minute ${clock(toMs, nowMs()).slice(0, -3)}`} onClick=${() => changeQuery({ at: isoMinute(toMs) }, { replace: true })}>
      ${byMs < 0 ? '‹ ' : ''}${clock(toMs, toMs).slice(0, 5)}${byMs > 0 ? ' ›' : ''}
    </button>`;
  };
  return html`<div class="minute" ref=${place}>
    <header>
      <h3><time dateTime=${isoMinute(atMs)} title=${fullInstant(atMs)}>${clock(atMs, nowMs()).slice(0, -3)}</time></h3>
      ${step(-minuteMs)} ${step(minuteMs)}
      <button type="button" onClick=${() => changeQuery({ at: undefined })}>Close</button>
    </header>
    <div aria-live="polite">${body ? html`<${Fresh} polled=${polled}>${explained(body)}<//>` : polled.error ? html`<p class="empty">${polled.error.message}</p>` : html`<p class="empty">Loading …</p>`}</div>
  </div>`;
}

/** @param {import('../../../../wires/api-types.ts').BodyOf<'/keys/{id}/why'>} body */
function explained({ sentence, refusals, notes }) {
  const texts = [sentence, ...refusals.map((one) => one.sentence), ...notes];
  return html`<p>${sentence} <${CopyButton} text=${texts.join('\n')} /></p>
    ${refusals.length > 0 && html`<ul>${refusals.map((one) => html`<li key=${one.by + one.per}>${one.sentence}</li>`)}</ul>`}
    ${notes.map((note) => html`<p key=${note} class="muted">${note}</p>`)}`;
}
