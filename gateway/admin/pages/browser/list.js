import { figure, percent, relative } from '../../../shared/words/figures.js';
import { stateText, stateTone } from '../../words/keys.js';
import { isFigure } from '../../words/list.js';
import { clock, fullInstant } from './formats.js';
import { cards, html, Instant, instead } from './parts.js';

/** @import { ComponentChildren } from 'preact' */
/** @import { Asked, Column, List, Say, Sentence, Table, Tone } from '../../words/list.js' */
/** @import { Polled } from './api.js' */

/**
 * The rows of a list of the admin API as a table, or the sentence about an empty list.
 *
 * @template Page
 * @template Row
 * @param {List<Page, Row>} list
 * @param {Polled<Page>} polled
 * @param {{ asked: Asked, now: number, key?: string, cells?: Record<string, Cell<Row>>, first?: readonly
 * import('./parts.js').Column<Row>[] }} options `cells`: the cells that the list does not describe, by the name of the column.
 * `first`: further columns, before the others
 */
export function listTable(list, polled, { asked, now, key, cells = {}, first = [] }) {
  const { body } = polled;
  const rows = body === undefined ? [] : list.rows(body);
  if (rows.length === 0)
    return instead(polled, body === undefined ? '' : sentence(list.empty(asked, body, sayAt(now))));
  return cards(rows, {
    ...(key !== undefined && { key, isSteady: true }),
    idOf: list.idOf,
    columns: [...first, ...columnsOf(list, { now, cells, rows })],
  });
}

/**
 * The sentences above the rows of a list.
 *
 * @template Page
 * @template Row
 * @param {List<Page, Row>} list @param {Page} page @param {number} now
 */
export function listHead({ head }, page, now) {
  return html`<div class="sentence">
    ${head?.(page, sayAt(now)).map((one, index) => html`<p key=${index} class=${classOf(one.tone)}>${sentence(one)}</p>`)}
  </div>`;
}

/**
 * @template Row
 * @typedef {{ kind?: 'id' | 'windows' | 'number', narrow?: string, width?: string, cell: (row: Row) => ComponentChildren }} Cell
 */

/**
 * The columns of a list, for `cards`.
 *
 * @template Row
 * @param {Table<Row>} list
 * @param {{ now: number, cells?: Record<string, Cell<Row>>, rows?: readonly Row[] }} options
 * @returns {import('./parts.js').Column<Row>[]}
 */
export function columnsOf({ columns, onPage }, { now, cells = {}, rows = [] }) {
  const say = sayAt(now);
  return onPage.flatMap((name) => {
    const column = columns[name];
    if (column === undefined) return [];
    if (column.isOptional && rows.every((row) => column.value(row, say) === undefined)) return [];
    const { title, kind = 'text', tone, page = {} } = column;
    return [
      {
        title,
        ...(isFigure(kind) && { kind: /** @type {const} */ ('number') }),
        cell: (row) => cellOf(column, row, say),
        ...(page.width !== undefined && { width: page.width }),
        ...(page.hint && { cellHint: page.hint }),
        ...(tone && kind !== 'state' && { isBad: (row) => tone(row) === 'bad' }),
        ...cells[name],
      },
    ];
  });
}

/**
 * @template Row
 * @param {Column<Row>} column @param {Row} row @param {Say} say
 * @returns {ComponentChildren}
 */
function cellOf({ kind = 'text', value, tone, missing = '' }, row, say) {
  const found = value(row, say);
  if (found === undefined) return missing === '' ? '' : html`<span class="muted">${missing}</span>`;
  if (typeof found === 'string') return kind === 'state' ? stateWord(found, tone?.(row)) : found;
  switch (kind) {
    case 'percent':
      return percent(found);
    case 'ago':
      return html`<${Instant} atMs=${found} />`;
    case 'until':
      return relative(Math.max(found, say.nowMs), say.nowMs);
    case 'clock':
      return say.clock(found);
    case 'minute':
      return minute(found, say);
    default:
      return figure(found);
  }
}

/** Shows a time to the minute. @param {number} atMs @param {Say} say */
export function minute(atMs, { clock }) {
  return html`<time dateTime=${new Date(atMs).toISOString()} title=${fullInstant(atMs)}>${clock(atMs).slice(0, -3)}</time>`;
}

/** A page shows times of UTC, and its header names the zone. @param {number} nowMs @returns {Say} */
export function sayAt(nowMs) {
  return { nowMs, clock: (atMs) => clock(atMs, nowMs) };
}

/** A word with its tone as a colour. @param {string} word @param {Tone | undefined} tone */
function stateWord(word, tone) {
  return html`<span class=${`state ${classOf(tone)}`}>${word}</span>`;
}

/** @param {string} state */
export function keyStateWord(state) {
  return stateWord(stateText(state), stateTone(state));
}

/** Good is the usual case, so it has no colour. @param {Tone | undefined} tone */
export function classOf(tone = 'good') {
  return tone === 'good' ? '' : tone;
}

/** @param {Sentence} sentence */
export function sentence({ parts }) {
  return parts.map((part) => {
    if (typeof part === 'string') return part;
    const { text, href, tone, isCode, isIsolated } = part;
    if (isIsolated) return html`<bdi>${text}</bdi>`;
    if (href !== undefined) return html`<a class=${classOf(tone)} href=${href}>${text}</a>`;
    return isCode ? html`<code>${text}</code>` : html`<span class=${classOf(tone)}>${text}</span>`;
  });
}
