import { useMemo } from 'preact/hooks';
import { dayMs, figure, minuteMs, utcMinute } from '../../../shared/words/figures.js';
import { changeInWords } from '../../words/usage.js';
import { usePolled } from './api.js';
import { html } from './parts.js';
import { changeQuery } from './router.js';

/** @import { RowOf, SentAt } from '../../wires/api-types.ts' */

/** A week or four weeks earlier, so that the weekdays are the same. */
export const weekBefore = { shiftMs: 7 * dayMs, text: 'week before' };
export const fourWeeksBefore = { shiftMs: 28 * dayMs, text: 'four weeks before' };

/** @param {URLSearchParams} query */
export function isCompared(query) {
  return query.get('compare') === '1';
}

/** The button that shows or hides the earlier period in a chart. @param {URLSearchParams} query @param {{ text: string }} earlier */
export function compareButton(query, { text }) {
  const isOn = isCompared(query);
  const title = `Draws the requests of the same period, ${text}, as a dashed line`;
  return html`<button type="button" aria-pressed=${isOn} title=${title} onClick=${() => changeQuery({ compare: isOn ? undefined : '1' })}>${text}</button>`;
}

/**
 * The line of the earlier period in a chart. The record has no row for a period without requests, so such a period
 * counts as zero after the first row. While Redis is away, such a period is not known.
 *
 * @param {{ text: string }} earlier @param {(number | undefined)[]} values
 * @param {unknown} missing defined if the values may lack requests
 */
export function earlierLine({ text }, values, missing) {
  const first = missing === undefined ? values.findIndex((value) => value !== undefined) : -1;
  const line = values.map((value, index) => value ?? (first !== -1 && index > first ? 0 : undefined));
  return { label: text, colour: 'text', isDashed: true, values: line };
}

/**
 * The sum of a chart's requests, and its change since the earlier period. The last bar is not complete, so it is not compared.
 *
 * @param {readonly (number | undefined)[]} values
 * @param {readonly (number | undefined)[] | undefined} before undefined: nothing is compared
 * @param {{ text: string }} [earlier]
 * @param {unknown} [missing] defined if the values may lack requests
 */
export function totalsText(values, before, earlier, missing) {
  const sumOf = (/** @type {readonly (number | undefined)[]} */ some) =>
    some.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0);
  const known = missing === undefined ? '' : 'At least ';
  const total = `${known}${figure(sumOf(values))} requests in this period.`;
  if (before === undefined || earlier === undefined) return total;
  if (missing !== undefined)
    return `${total} They cannot be compared with the ${earlier.text} while Redis is away.`;
  if (before.every((value) => value === undefined))
    return `${total} The record has no request of the ${earlier.text}.`;
  const [now, then] = [values, before].map((some) => sumOf(some.slice(0, -1)));
  return `${total} Without the last bar: ${figure(now)}, and ${figure(then)} the ${earlier.text} (${changeInWords(now ?? 0, then ?? 0)}).`;
}

/** Below a chart that shades a period (`unknownSpans`). @param {number} [untilMs] */
export function shadedText(untilMs = 0) {
  return ` This gateway counts since ${utcMinute(new Date(untilMs).toISOString())}, so the shaded part and the beginning of the bar next to it are not known.`;
}

/** The earlier period is requested again when it has moved by this time. */
const movedMs = 10 * minuteMs;

/**
 * Reads the rows of an earlier period, or of the period itself if `shiftMs` is 0.
 *
 * @template {'/traffic' | '/keys/{id}/usage'} Path
 * @param {Path | undefined} path undefined: nothing is compared
 * @param {{ params?: Readonly<Record<string, string>>, step: string, fromMs: number, toMs: number, shiftMs: number }} options
 * @returns {Map<number, RowOf<Path>>} the rows by the beginning of the period that they are compared with, epoch ms
 */
export function useEarlier(path, { params, step, fromMs, toMs, shiftMs }) {
  const isoAt = (/** @type {number} */ atMs) => new Date(atMs - shiftMs).toISOString();
  const query = {
    from: isoAt(Math.floor(fromMs / movedMs) * movedMs),
    to: isoAt(Math.ceil(toMs / movedMs) * movedMs - 1),
    step,
  };
  const sent = /** @type {SentAt<Path>} */ (/** @type {unknown} */ ({ params, query }));
  const { body } = usePolled(path, minuteMs, sent);
  return useMemo(() => {
    /** @type {{ step: string, rows: RowOf<Path>[] } | undefined} */
    const found = /** @type {any} */ (path && body);
    // The last response may have the rows of another chart.
    const rows = found?.step === step ? found.rows : [];
    return new Map(rows.map((row) => [Date.parse(row.at) + shiftMs, row]));
  }, [path, body, step, shiftMs]);
}
