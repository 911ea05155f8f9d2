import { counted, figure } from '../../../../shared/words/figures.js';
import { nowMs, usePolled } from '../api.js';
import { clock, limitsInWords, shortVersion } from '../formats.js';
import { html, newestFirst, textWithKey, timedRow } from '../parts.js';

/** @import { BodyOf } from '../../../wires/api-types.ts' */
/** @import { PageProps } from '../live.js' */

/** @typedef {BodyOf<'/changes'>['changes'][number]} Change */

const perPage = 50;

/** Changes and failed changes with their author, the newest first. @param {PageProps} props */
export function Changes({ query }) {
  const after = query.get('after') ?? undefined;
  const polled = usePolled('/changes', 5_000, { query: { limit: perPage, after } });
  return newestFirst(polled, polled.body?.changes ?? [], {
    title: 'Changes',
    after,
    row: changeRow,
    empty: 'No changes yet. An edit of the configuration is listed here two seconds after you save it.',
  });
}

/** @param {Change} change */
function changeRow(change) {
  const { error } = change;
  const more =
    error !== undefined && html`<pre class="error" tabindex="0" aria-label="Why it failed">${error}</pre>`;
  return timedRow(change, whatChanged(change), { more });
}

/** @param {Change} change */
function whatChanged({ action, by, files, key, text, before, after, inForce }) {
  const who = files?.join(', ') ?? (by === 'file' ? 'an edit of the files' : by);
  if (action === 'reload_failed')
    return html`<span class="bad">${text}</span> <span class="muted">${who}</span>`;
  const details =
    action === 'reload'
      ? html`${who}${inForce && ` · in force on ${figure(inForce.processes)} of ${counted(inForce.of, 'process', 'processes')}`} ·
          configuration ${shortVersion(before && String(before))} → ${shortVersion(after && String(after))}`
      : action.startsWith('plan.')
        ? who
        : members(Object(before), Object(after));
  return html`${textWithKey(text, key)} <span class="muted members">${details}</span>`;
}

/**
 * Shows changed members, for example "plan free → pro · secret 9f86d081". Each value is in its own `<bdi>`, because a
 * right-to-left name would otherwise swap the old and the new value.
 *
 * @param {Readonly<Record<string, unknown>>} [before] @param {Readonly<Record<string, unknown>>} [after]
 */
function members(before = {}, after = {}) {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].map((name, index) => {
    const [from, to] = [before[name], after[name]].map((value) =>
      value === undefined ? undefined : html`<bdi>${inWords(value)}</bdi>`,
    );
    const start = `${index === 0 ? '' : ' · '}${wordOf[name] ?? name}`;
    if (from === undefined) return html`${start} ${to}`;
    return to === undefined ? html`${start} was ${from}` : html`${start} ${from} → ${to}`;
  });
}

/** The words that the page shows instead of some member names. @type {Record<string, string>} */
const wordOf = {
  fromAt: 'from',
  untilAt: 'until',
  expiresAt: 'ends',
  bannedUntilAt: 'banned until',
  digestStart: 'secret',
};

/** @param {unknown} value @returns {string} */
function inWords(value) {
  if (typeof value === 'number') return figure(value);
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(String(value))) return clock(Date.parse(String(value)), nowMs());
  if (Array.isArray(value)) return value.map(inWords).join(', ');
  if (typeof value !== 'object' || value === null) return String(value);
  const all = Object.entries(value);
  if (all.every(([name]) => name.startsWith('per'))) return limitsInWords(Object.fromEntries(all));
  return all.map(([name, member]) => `${name} ${inWords(member)}`).join(', ');
}
