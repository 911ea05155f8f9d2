import { isTime } from './list.js';

/** @import { Column, List, Say, Timeline } from './list.js' */

// Comma-separated values (RFC 4180) for the command line and for downloads of the pages.

/**
 * Makes the lines of comma-separated values, the titles first.
 *
 * @param {readonly string[]} titles @param {readonly (readonly (string | number)[])[]} rows
 * @returns {readonly string[]}
 */
export function csv(titles, rows) {
  return [titles, ...rows].map((row) => row.map(field).join(','));
}

/**
 * Numbers are plain, times are RFC 3339 texts in UTC, and a missing value is empty.
 *
 * @template Page
 * @template Row
 * @param {Pick<List<Page, Row>, 'columns' | 'inCsv' | 'rows'>} list @param {Page} page @param {Say} say
 */
export function listCsv({ columns, inCsv, rows }, page, say) {
  const shown = inCsv.flatMap((name) => columns[name] ?? []);
  return csv(
    inCsv,
    rows(page).map((row) => shown.map(({ kind, value }) => rawValue(kind, value(row, say)))),
  );
}

/**
 * @template Page
 * @template Item
 * @param {Pick<Timeline<Page, Item>, 'items' | 'inCsv'>} timeline @param {Page} page
 */
export function timelineCsv({ items, inCsv }, page) {
  return csv(
    Object.keys(inCsv),
    items(page).map((item) => Object.values(inCsv).map((value) => value(item) ?? '')),
  );
}

/** @param {Column<never>['kind']} kind @param {string | number | undefined} value */
function rawValue(kind, value) {
  if (value === undefined) return '';
  return typeof value === 'number' && isTime(kind) ? new Date(value).toISOString() : value;
}

/**
 * Escapes a cell by RFC 4180 §2.6 and §2.7. A text is one line. A text that a spreadsheet would read as a formula gets an apostrophe in front.
 *
 * @param {string | number} value
 */
function field(value) {
  const text = String(value).replace(/\s+/g, ' ').trim();
  const safe = /^[=+\-@\t]/.test(text) && typeof value === 'string' ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
