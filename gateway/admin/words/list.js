// The form in which a list of the admin API is described for the command line and for the pages. A browser imports this
// file, too.

import { listOf, utcMinute } from '../../shared/words/figures.js';

/**
 * The meaning of a value for an operator: good, about to become bad, bad, or not in use. A terminal and a page show the
 * meaning as a colour.
 *
 * @typedef {'good' | 'near' | 'bad' | 'off'} Tone
 */

/**
 * A part of a sentence. A terminal shows only the text, and omits a part with `isOnPage`. A page shows `href` as a link and `isCode` in
 * another font. A page isolates a part with `isIsolated`, because a right-to-left name would otherwise swap the texts around it.
 *
 * @typedef {string | { readonly text: string, readonly href?: string, readonly tone?: Tone | undefined, readonly isCode?: true, readonly isIsolated?: true, readonly isOnPage?: true }} Part
 */

/** @typedef {{ readonly parts: readonly Part[], readonly tone?: Tone | undefined }} Sentence */

/**
 * The formats that differ between a terminal, whose times are in UTC, and a page, whose times are local.
 *
 * @typedef {{ readonly nowMs: number, readonly clock: (atMs: number) => string }} Say
 */

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {'text' | 'state' | 'count' | 'percent' | 'ago' | 'until' | 'clock' | 'minute'} [kind] the format of the value, by default `text`.
 * The value of `ago`, `until`, `clock` and `minute` is a time, epoch ms
 * @property {(row: Row, say: Say) => string | number | undefined} value
 * @property {(row: Row) => Tone | undefined} [tone]
 * @property {boolean} [isOptional] whether the column is left out if no row has a value
 * @property {string} [missing] the text for an undefined value, by default an empty text
 * @property {{ title?: string, cutsTo?: number, isOptional?: boolean }} [terminal] see `Column` of the command line
 * @property {{ width?: string, hint?: (row: Row) => string | undefined }} [page] the class of the heading, and a text on
 * hover
 */

/**
 * The question that a list without rows answers.
 *
 * @typedef {{ readonly filter: Readonly<Record<string, string | undefined>>, readonly after?: string | undefined, readonly next?: string | undefined }} Asked
 */

/**
 * The columns of rows that are part of another view.
 *
 * @template Row
 * @typedef {object} Table
 * @property {Readonly<Record<string, Column<Row>>>} columns by name, in the order of the page
 * @property {readonly string[]} onTerminal a narrow terminal shows the first columns, so the most important come first
 * @property {readonly string[]} onPage
 */

/**
 * @template Page the response
 * @template Row
 * @typedef {Table<Row> & ListParts<Page, Row>} List
 */

/**
 * @template Page
 * @template Row
 * @typedef {object} ListParts
 * @property {readonly string[]} inCsv
 * @property {(page: Page) => readonly Row[]} rows
 * @property {(row: Row) => string} idOf
 * @property {(page: Page, say: Say) => readonly Sentence[]} [head] the sentences above the rows
 * @property {(asked: Asked, page: Page, say: Say) => Sentence} empty
 */

/**
 * An entry of a list that is sorted by time.
 *
 * @typedef {object} Entry
 * @property {string} id
 * @property {string} at the time, as an RFC 3339 text
 * @property {string} label the kind of the event, or the author of the change
 * @property {string} text the sentence
 * @property {string} [by] the author of the change, if the sentence does not name the author
 * @property {Tone | undefined} [tone]
 * @property {string} [key] the id of the key in the sentence
 * @property {readonly Sentence[]} details
 * @property {string | undefined} [error] the lines of an error, with a quoted line of a file
 */

/**
 * A list that is sorted by time, the newest entry first.
 *
 * @template Page the response
 * @template Item
 * @typedef {object} Timeline
 * @property {readonly [label: string, text: string]} titles
 * @property {(page: Page) => readonly Item[]} items
 * @property {(item: Item, say: Say) => Entry} entry
 * @property {string} empty
 * @property {Readonly<Record<string, (item: Item) => string | number | undefined>>} inCsv the columns of CSV by name
 */

/**
 * @typedef {{ readonly sinceAt?: string | undefined, readonly reason?: string | undefined, readonly what?: readonly string[], readonly countsFromAt?: string | undefined }} Missing
 * what a response lacks while Redis is away, and since when; `sinceAt` is absent if that is not known
 */

/** @param {Missing} missing */
export function awayText({ sinceAt }) {
  return sinceAt === undefined ? 'Redis does not reply' : `Redis has been away since ${utcMinute(sinceAt)}`;
}

/** The line about a page or list that is not complete. @param {Missing} missing */
export function missingText(missing) {
  const { reason } = missing;
  return [`${awayText(missing)}.`, lackingText(missing), reason && `Reason: ${reason}.`]
    .filter(Boolean)
    .join(' ');
}

/** The same where Redis is named already; empty if nothing is missing. @param {Missing} missing */
export function lackingText({ what = [], countsFromAt }) {
  if (what.length === 0) return '';
  const begun = countsFromAt === undefined ? '' : `, whose own counts begin at ${utcMinute(countsFromAt)}`;
  return `Missing: ${listOf(what)} that are not in the memory of this gateway${begun}, so figures may be too low.`;
}

/**
 * The text in place of rows. A response that is not complete does not show that there are none.
 *
 * @template Text
 * @param {unknown} page the response @param {Text} empty
 */
export function emptyText(page, empty) {
  return Object(page).missing === undefined
    ? empty
    : 'Unknown: Redis is away, and this gateway knows of none.';
}

/** Whether the value is a time, epoch ms. @param {Column<never>['kind']} kind */
export function isTime(kind) {
  return kind === 'ago' || kind === 'until' || kind === 'clock' || kind === 'minute';
}

/** Whether the value is a figure, which is aligned right. @param {Column<never>['kind']} kind */
export function isFigure(kind) {
  return kind === 'count' || kind === 'percent' || kind === 'ago' || kind === 'until';
}

/** Returns the sentence for a terminal, without links and tones. @param {Sentence} sentence */
export function textOf({ parts }) {
  return parts.map((part) => (typeof part === 'string' ? part : part.isOnPage ? '' : part.text)).join('');
}

/** @param {Asked} asked */
export function isFiltered({ filter, after }) {
  return [...Object.values(filter), after].some((value) => value !== undefined && value !== '');
}
