import htm from 'htm';
import { h } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { nowMs, showSoon } from './api.js';
import { count, duration, fullInstant, percent, relative } from './formats.js';
import { changeQuery, keyPath } from './router.js';

// Small pieces that several pages are made of.

export const html = htm.bind(h);

/** Everything that shows how long ago something was is drawn anew each second, together. @type {Set<() => void>} */
const onTick = new Set();
setInterval(() => {
  if (document.visibilityState !== 'visible') return;
  showSoon(() => {
    for (const draw of onTick) draw();
  });
}, 1_000);

/** Draws the component each second. @returns {number} the gateway's time, epoch ms */
export function useNow() {
  const [, draw] = useState(0);
  useEffect(() => {
    const tick = () => draw((number) => number + 1);
    onTick.add(tick);
    return () => {
      onTick.delete(tick);
    };
  }, []);
  return nowMs();
}

/** How far away an instant is, with the instant in full on hover and for screen readers. */
export function Instant({ atMs, prefix = '' }) {
  if (atMs === undefined) return html`<span class="muted">never</span>`;
  return html`<${KnownInstant} atMs=${atMs} prefix=${prefix} />`;
}

function KnownInstant({ atMs, prefix }) {
  const now = useNow();
  const [full, iso] = useMemo(() => [fullInstant(atMs), new Date(atMs).toISOString()], [atMs]);
  return html`<time dateTime=${iso} title=${full}
    >${prefix}${relative(atMs, now)}<span class="sr"> (${full})</span></time
  >`;
}

/** @type {Record<string, string>} the colour of a state; each also has its word */
const toneOf = {
  limited: 'bad',
  banned: 'bad',
  near: 'near',
  expired: 'near',
  no_secret: 'near',
  disabled: 'off',
  unused: 'off',
  unknown: 'off',
};

/** The states of keys in words: the API calls one of them `no_secret`. @param {string} state */
export function stateText(state) {
  return state.replace('_', ' ');
}

/** @param {{ state: string }} props */
export function StateWord({ state }) {
  return html`<span class=${`state ${toneOf[state] ?? ''}`}>${stateText(state)}</span>`;
}

/**
 * Rows in the order in which they matter now. While somebody points at them, or has the focus in one, they stay where they
 * are: a row must not move away under a click. Rows are drawn by their place, so that one that changes moves nothing.
 *
 * @param {{ items: any[], idOf: (item: any) => string, row: (item: any) => any, as?: string, name?: string }} props
 */
export function SteadyRows({ items, idOf, row, as = 'tbody', name }) {
  const [held, setHeld] = useState(/** @type {any[] | undefined} */ (undefined));
  const shown = useRef(items);
  const byId = new Map(items.map((item) => [idOf(item), item]));
  shown.current = held ? held.map((item) => byId.get(idOf(item)) ?? item) : items;
  const hold = () => setHeld((before) => before ?? shown.current);
  const release = (/** @type {any} */ { currentTarget, relatedTarget }) => {
    const isIn = currentTarget.contains(relatedTarget) || currentTarget.matches(':hover, :focus-within');
    if (!isIn) setHeld(undefined);
  };
  return html`<${as} class=${name} onPointerEnter=${hold} onPointerLeave=${release} onFocusIn=${hold} onFocusOut=${release}>
    ${shown.current.map(row)}
  <//>`;
}

/**
 * @typedef {object} Column
 * @property {string} title on a narrow page it stands beside each cell
 * @property {(item: any) => any} cell
 * @property {'id' | 'number'} [kind]
 * @property {string} [hint]
 * @property {(item: any) => boolean} [isBad]
 */

/**
 * A table. On a narrow page each row becomes a card.
 *
 * @param {{ columns: Column[], items: any[], idOf: (item: any) => string, isSteady?: boolean }} props
 *   `isSteady`: rows do not move while the pointer or the focus is in them
 */
export function Cards({ columns, items, idOf, isSteady = false }) {
  const row = (/** @type {any} */ item) => html`<tr key=${isSteady ? undefined : idOf(item)}>
    ${columns.map(
      ({ title, cell, kind = '', isBad }) =>
        html`<td class=${`${kind} ${isBad?.(item) ? 'bad' : ''}`} data-label=${kind === 'id' ? undefined : title}>${cell(item)}</td>`,
    )}
  </tr>`;
  return html`<table class="cards">
    <thead>
      <tr>
        ${columns.map(({ title, kind, hint }) => html`<th scope="col" class=${kind === 'number' ? kind : ''} title=${hint}>${title}</th>`)}
      </tr>
    </thead>
    ${isSteady ? html`<${SteadyRows} items=${items} idOf=${idOf} row=${row} />` : html`<tbody>${items.map(row)}</tbody>`}
  </table>`;
}

/** @type {Column[]} */
export const errorColumns = [
  { title: '4xx', kind: 'number', cell: ({ clientErrors }) => count(clientErrors) },
  {
    title: '5xx',
    kind: 'number',
    cell: ({ serverErrors }) => count(serverErrors),
    isBad: ({ serverErrors }) => serverErrors > 0,
  },
];

/** How much of a window is used. */
export function WindowBar({ name, limit, used, resetMs, now, isLong = false }) {
  // After its reset a window is empty, also before the next response says so.
  const usedNow = resetMs !== undefined && resetMs <= now && used > 0 ? 0 : used;
  const part = Math.min(1, usedNow / limit);
  const tone = part >= 1 ? 'bad' : part >= 0.8 && name !== 'second' ? 'near' : '';
  const figures = `${count(usedNow)} of ${count(limit)}`;
  return html`<div class=${`window ${isLong ? 'long' : ''}`} title=${`${figures} of this ${name}, ${percent(part)}`}>
    <span class="name">${name}</span>
    <span class=${`bar ${tone}`}><span style=${{ width: `${part * 100}%` }}></span></span>
    <span class="amount">${figures}</span>
    ${isLong && html`<span class="resets muted">${resetMs > now ? `resets in ${resetWords(resetMs - now)}` : ''}</span>`}
  </div>`;
}

/** @param {number} ms */
function resetWords(ms) {
  // "in 0 s" for the last second would be wrong.
  return duration(Math.max(1_000, ms));
}

/** Copies a text, and says whether that worked. */
export function CopyButton({ text }) {
  const [said, setSaid] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('copied');
    } catch {
      // Without TLS, and not on localhost, a browser has no clipboard for pages.
      setSaid('select the text to copy it');
    }
    setTimeout(() => setSaid(''), 3_000);
  };
  return html`<button type="button" onClick=${copy}>Copy</button> <span class="muted" role="status">${said}</span>`;
}

/** A sentence in which the key leads to its page. */
export function TextWithKey({ text, keyId }) {
  const at = keyId === undefined ? -1 : indexOfWord(text, keyId);
  if (at === -1) return text;
  return html`${text.slice(0, at)}<a href=${keyPath(keyId)}>${keyId}</a>${text.slice(at + keyId.length)}`;
}

/**
 * Where an id stands on its own: the key `a` is not the first letter of `alice`, who changed it.
 *
 * @param {string} text @param {string} id
 */
function indexOfWord(text, id) {
  let at = text.indexOf(id);
  while (at !== -1 && (isInId(text[at - 1]) || isInId(text[at + id.length]))) at = text.indexOf(id, at + 1);
  return at;
}

/** @param {string | undefined} character */
function isInId(character) {
  return character !== undefined && /[A-Za-z0-9_@+-]/.test(character);
}

/** Says how old figures are that should be younger, and why; empty while all is well. */
export function Age({ polled }) {
  useNow();
  const ageMs = ageOf(polled);
  const why = polled.error ? `. ${polled.error.message}` : '';
  return html`<span class=${`age ${why && 'with-reason'}`} role="status">${ageMs > staleAfterMs ? `${duration(ageMs)} old${why}` : ''}</span>`;
}

export const staleAfterMs = 5_000;

/** @param {import('./api.js').Polled} polled */
function ageOf({ body, atMs }) {
  return body === undefined ? 0 : Date.now() - atMs;
}

/** Whether figures are too old to be taken for the present ones. @param {import('./api.js').Polled} polled */
export function isStale(polled) {
  return ageOf(polled) > staleAfterMs;
}

/** The text in place of rows: still loading, not available, or empty. */
export function Instead({ polled, children }) {
  if (polled.body !== undefined) return html`<div class="empty">${children}</div>`;
  const text = polled.error ? polled.error.message : 'Loading …';
  return html`<div class="empty" role=${polled.error ? 'alert' : 'status'}>${text}</div>`;
}

/** A section of a page under its heading. */
export function Section({ title, polled, tools, children, name, heading = 'h2' }) {
  return html`<section class=${`section ${name ?? ''}`}>
    <header>
      <${heading}>${title}<//>
      ${polled && html`<${Age} polled=${polled} />`}
      <div class="tools">${tools}</div>
    </header>
    <${Fresh} polled=${polled}>${children}<//>
  </section>`;
}

/** Grey when what is in it is old. */
export function Fresh({ polled, children }) {
  useNow();
  return html`<div class=${polled && isStale(polled) ? 'stale' : ''}>${children}</div>`;
}

/**
 * A choice that is in the address. Another one leads back to the first page.
 *
 * @param {{ label: string, name: string, options: Record<string, string>, chosen: string }} props the text of each value; '' is the usual one
 */
export function Choices({ label, name, options, chosen }) {
  return html`<span class="choice" role="group" aria-label=${label}>
    ${Object.entries(options).map(
      ([value, text]) => html`<button
        key=${value}
        type="button"
        aria-pressed=${value === chosen}
        onClick=${() => changeQuery({ [name]: value || undefined, after: undefined })}
      >${text}</button>`,
    )}
  </span>`;
}

/**
 * The buttons below a list, whose place in it is in the address.
 *
 * @param {{ first: string, further: string, after: string | undefined, next: string | undefined, children?: any }} props
 */
export function Paging({ first, further, after, next, children }) {
  return html`<p class="paging">
    <button type="button" disabled=${after === undefined} onClick=${() => changeQuery({ after: undefined })}>${first}</button>
    <button type="button" disabled=${next === undefined} onClick=${() => changeQuery({ after: next })}>${further}</button>
    ${children}
  </p>`;
}

/**
 * A page with a list of what all processes report, the newest first.
 *
 * @param {{ title: string, polled: import('./api.js').Polled, rows: any[] | undefined, after: string | undefined, tools?: any, name?: string, row: (item: any) => any, children?: any }} props
 *   `children`: what stands there where there are no rows
 */
export function NewestFirst({ title, polled, rows = [], after, tools, name = '', row, children }) {
  const { next, isComplete = true } = polled.body ?? {};
  return html`<${Section} title=${title} heading="h1" polled=${polled} tools=${tools}>
    ${!isComplete && html`<p class="near">Redis is away: only what the process that answers has seen itself.</p>`}
    ${
      rows.length === 0
        ? html`<${Instead} polled=${polled}>${children}<//>`
        : html`<ul class=${`rows changes ${name}`}>${rows.map(row)}</ul>`
    }
    <${Paging} first="Newest" further="Older" after=${after} next=${next} />
  <//>`;
}

/** A few values as a small picture. Gaps are left out. */
export function Sparkline({ values, label }) {
  const known = values.filter((value) => value !== undefined);
  const most = Math.max(...known, 1e-9);
  const wide = 100 / Math.max(values.length, 1);
  const path = values
    .map((value, index) => {
      if (value === undefined) return '';
      const height = Math.max(value === 0 ? 0.6 : 1.5, (value / most) * 22);
      return `M${(index * wide).toFixed(2)} 24v-${height.toFixed(2)}h${(wide * 0.8).toFixed(2)}v${height.toFixed(2)}z`;
    })
    .join('');
  return html`<svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${label}>
    <path d=${path} />
  </svg>`;
}
