import { nowMs, queryOf, usePolled } from '../api.js';
import { clock, count, counted, limitsInWords, shortVersion } from '../formats.js';
import { html, Instant, NewestFirst, TextWithKey } from '../parts.js';

const perPage = 50;

/** Changes and failed changes with their author, the newest first. */
export function Changes({ query }) {
  const after = query.get('after') ?? undefined;
  const polled = usePolled(`/changes${queryOf({ limit: perPage, after })}`, 5_000);
  return html`<${NewestFirst}
    title="Changes"
    polled=${polled}
    rows=${polled.body?.changes}
    after=${after}
    row=${(/** @type {any} */ change) => html`<${ChangeRow} key=${change.id} change=${change} />`}
    >Nothing has been changed yet. Save an edit of the configuration: it stands here two seconds later.<//
  >`;
}

function ChangeRow({ change }) {
  const { at, error } = change;
  return html`<li>
    <span class="when"><${Instant} atMs=${Date.parse(at)} /></span>
    <span class="what"><${What} change=${change} /></span>
    ${error !== undefined && html`<pre class="error" tabindex="0" aria-label="Why it failed">${error}</pre>`}
  </li>`;
}

function What({ change: { action, by, files, key, text, before, after, inForce } }) {
  const who = files?.join(', ') ?? (by === 'file' ? 'an edit of the files' : by);
  switch (action) {
    case 'reload_failed':
      return html`<span class="bad">${text}</span> <span class="muted">${who}</span>`;
    case 'reload':
      return html`${text}
        <span class="muted members"
          >${who}${inForce && ` · in force on ${count(inForce.processes)} of ${counted(inForce.of, 'process', 'processes')}`} ·
          configuration ${shortVersion(before)} → ${shortVersion(after)}</span
        >`;
    default:
      return html`<${TextWithKey} text=${text} keyId=${key} />
        <span class="muted members"><${Members} before=${before} after=${after} /></span>`;
  }
}

/**
 * plan free → pro · secret 9f86d081. Each value is isolated: a name from right to left would otherwise swap what was and what is.
 *
 * @param {{ before?: Record<string, any>, after?: Record<string, any> }} members
 */
function Members({ before = {}, after = {} }) {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].map((name, index) => {
    const [from, to] = [before[name], after[name]].map((value) =>
      value === undefined ? undefined : html`<bdi>${inWords(value)}</bdi>`,
    );
    const separator = index === 0 ? '' : ' · ';
    const word = wordOf[name] ?? name;
    if (from === undefined) return html`${separator}${word} ${to}`;
    return to === undefined
      ? html`${separator}${word} was ${from}`
      : html`${separator}${word} ${from} → ${to}`;
  });
}

/** Members whose name is no word. @type {Record<string, string>} */
const wordOf = {
  fromAt: 'from',
  untilAt: 'until',
  expiresAt: 'ends',
  bannedUntilAt: 'banned until',
  digestStart: 'secret',
};

/** @param {any} value @returns {string} */
function inWords(value) {
  if (typeof value === 'number') return count(value);
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(String(value))) return clock(Date.parse(value), nowMs());
  if (Array.isArray(value)) return value.map(inWords).join(', ');
  if (typeof value !== 'object' || value === null) return String(value);
  const isLimits = Object.keys(value).every((name) => name.startsWith('per'));
  return isLimits
    ? limitsInWords(value)
    : Object.entries(value)
        .map(([name, member]) => `${name} ${inWords(member)}`)
        .join(', ');
}
