import htm from 'htm';
import { h } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { duration, figure, percent, relative } from '../../../shared/words/figures.js';
import { windowIn, windowText } from '../../../shared/words/limit-names.js';
import { emptyText } from '../../words/list.js';
import { isStale, nowMs, showSoon } from './api.js';
import { fullInstant, utcClock } from './formats.js';
import { changeQuery, keyPath } from './router.js';
import { createSignal } from './signal.js';

/** @import { ComponentChildren } from 'preact' */
/** @import { KeyWindow } from '../../wires/api-types.ts' */
/** @import { Polled } from './api.js' */

// Small components that several pages share. A component without state is a plain function, so that TypeScript checks
// its arguments.

export const html = htm.bind(h);

/** Whether an element uses letters and arrow keys itself. @param {Element} element */
export function isField(element) {
  return element.matches('input:not([type="checkbox"]), textarea, select');
}

/** Once a second, this signal renders every component that shows an age. */
const ticked = createSignal();
setInterval(() => {
  if (document.visibilityState === 'visible') showSoon(ticked.tell);
}, 1_000);

/** Renders the component again each second. @returns {number} the gateway's time, epoch ms */
export function useNow() {
  ticked.use();
  return nowMs();
}

/**
 * Shows a time relative to now. The full date and time are shown on hover and to screen readers.
 *
 * @param {{ atMs: number | undefined, prefix?: string }} props
 */
export function Instant({ atMs, prefix = '' }) {
  const now = useNow();
  const [full, iso] = useMemo(
    () => (atMs === undefined ? [] : [fullInstant(atMs), new Date(atMs).toISOString()]),
    [atMs],
  );
  if (atMs === undefined) return html`<span class="muted">never</span>`;
  return html`<time dateTime=${iso} title=${full}
    >${prefix}${relative(atMs, now)}<span class="sr"> (${full})</span></time
  >`;
}

/** @param {{ id: string, name?: string | undefined }} key */
export function keyLink({ id, name }) {
  return html`<a href=${keyPath(id)}>${id}</a>${name !== undefined && html`<bdi class="muted"> ${name}</bdi>`}`;
}

/**
 * Shows rows that keep their order while the pointer or the focus is in a row, because a row must not move under a
 * click. Rows have no `key`, so Preact keeps every row element in its place and changes only the content.
 *
 * @template Item
 * @param {'tbody' | 'ul'} as
 * @param {readonly Item[]} items
 * @param {{ idOf: (item: Item) => string, row: (item: Item) => ComponentChildren }} options
 */
export function steadyRows(as, items, { idOf, row }) {
  return html`<${SteadyRows} as=${as} items=${items} idOf=${idOf} row=${row} />`;
}

/** @param {{ as: string, items: readonly any[], idOf: (item: any) => string, row: (item: any) => ComponentChildren }} props */
function SteadyRows({ as, items, idOf, row }) {
  const [held, setHeld] = useState(/** @type {readonly any[] | undefined} */ (undefined));
  const shown = useRef(items);
  const byId = new Map(items.map((item) => [idOf(item), item]));
  shown.current = held ? held.map((item) => byId.get(idOf(item)) ?? item) : items;
  const hold = () => setHeld((before) => before ?? shown.current);
  const release = (/** @type {any} */ { currentTarget, relatedTarget }) => {
    const isIn = currentTarget.contains(relatedTarget) || currentTarget.matches(':hover, :focus-within');
    if (!isIn) setHeld(undefined);
  };
  return html`<${as} class=${as === 'ul' && 'rows'} onPointerEnter=${hold} onPointerLeave=${release} onFocusIn=${hold} onFocusOut=${release}>
    ${shown.current.map(row)}
  <//>`;
}

/**
 * @template Item
 * @typedef {object} Column
 * @property {ComponentChildren} title on a narrow page, the label beside each cell
 * @property {(item: Item) => ComponentChildren} cell
 * @property {'id' | 'number' | 'windows' | 'select'} [kind] the class of its cells
 * @property {string} [narrow] the label on a narrow page, by default the title
 * @property {string} [width] the class of its heading
 * @property {string} [hint]
 * @property {(item: Item) => string | undefined} [cellHint]
 * @property {(item: Item) => boolean} [isBad]
 */

/** The cells that need no label on a narrow page. */
const unlabelled = ['id', 'windows', 'select'];

/**
 * A table. On a narrow page each row becomes a card.
 *
 * @template Item
 * @param {readonly Item[]} items
 * @param {{ columns: readonly Column<Item>[], idOf: (item: Item) => string, isSteady?: boolean, key?: string }} options
 *   `isSteady`: rows do not move while the pointer or the focus is in them, as long as the key stays the same
 */
export function cards(items, { columns, idOf, isSteady = false, key }) {
  const row = (/** @type {Item} */ item) => html`<tr key=${isSteady ? undefined : idOf(item)}>
    ${columns.map(
      ({ title, cell, kind = '', narrow = title, cellHint, isBad }) =>
        html`<td class=${`${kind} ${isBad?.(item) ? 'bad' : ''}`} data-label=${unlabelled.includes(kind) ? undefined : narrow} title=${cellHint?.(item)}>${cell(item)}</td>`,
    )}
  </tr>`;
  return html`<table key=${key} class="cards">
    <thead>
      <tr>
        ${columns.map(({ title, kind, width = kind === 'number' ? kind : '', hint }) => html`<th scope="col" class=${width} title=${hint}>${title}</th>`)}
      </tr>
    </thead>
    ${isSteady ? steadyRows('tbody', items, { idOf, row }) : html`<tbody>${items.map(row)}</tbody>`}
  </table>`;
}

/** @type {Column<{ readonly clientErrors?: number, readonly serverErrors?: number }>[]} */
export const errorColumns = [
  { title: '4xx', kind: 'number', cell: ({ clientErrors }) => figure(clientErrors) },
  {
    title: '5xx',
    kind: 'number',
    cell: ({ serverErrors }) => figure(serverErrors),
    isBad: ({ serverErrors = 0 }) => serverErrors > 0,
  },
];

/**
 * A window of a key, as the last response had it, so that it agrees with the state and the sentence of the key.
 *
 * @param {KeyWindow} window
 * @param {number} [now] with it, the bar is long and says when the window starts over
 */
export function windowBar({ name, limit, used, resetMs }, now) {
  const isLong = now !== undefined;
  const part = Math.min(1, used / limit);
  const tone = part >= 1 ? 'bad' : part >= 0.8 && windowIn(name) !== 'second' ? 'near' : '';
  const figures = `${figure(used)} of ${figure(limit)}`;
  const kind = `window ${isLong ? 'long' : ''}${windowIn(name) === name ? '' : ' of-group'}`;
  return html`<div key=${name} class=${kind} title=${`${figures} of this ${windowText(name)}, ${percent(part)}`}>
    <span class="name">${name}</span>
    <span class=${`bar ${tone}`}><span style=${{ width: `${part * 100}%` }}></span></span>
    <span class="amount">${figures}</span>
    ${isLong && html`<span class="resets muted">${resetMs > now ? resetText(resetMs, now) : ''}</span>`}
  </div>`;
}

/** @param {number} resetMs @param {number} now */
export function resetText(resetMs, now) {
  // In the last second the text is "in 1 s", because "in 0 s" would be wrong.
  return `resets ${resetMs > now ? `in ${duration(Math.max(1_000, resetMs - now))}` : 'now'}`;
}

/**
 * A button that copies a text and shows whether the copy succeeded. A browser allows pages to use the clipboard only
 * over TLS or on localhost. Otherwise the button shows the text, and selects it. With another `key`, the result of the
 * last attempt disappears.
 *
 * @param {{ text: string, label?: string, hint?: string, isOff?: boolean }} props
 */
export function CopyButton({ text, label = 'Copy', hint, isOff = false }) {
  /** The result of the last attempt. The text may change after the attempt, for example the sentence about a key. */
  const [result, setResult] = useState({ of: '', isCopied: false, attempt: 0 });
  const copy = async () => {
    let isCopied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      isCopied = false;
    }
    setResult(({ attempt }) => ({ of: text, isCopied, attempt: attempt + 1 }));
  };
  const { of, isCopied, attempt } = result;
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setResult((now) => ({ ...now, isCopied: false, of: '' })), 10_000);
    return () => clearTimeout(timer);
  }, [attempt]);
  const toSelect = of !== '' && !isCopied;
  const said = toSelect ? 'The text is selected: copy it with the keyboard.' : 'copied';
  return html`<button type="button" class="copy" title=${hint} disabled=${isOff} onClick=${copy}>${label}</button>
    ${' '}<span class="muted copied" role="status">${of !== '' && said}</span>
    ${toSelect && h(SelectedText, { key: attempt, text: of })}`;
}

/** The height of a field's borders, and the largest height of a field, in pixels. */
const [borders, selectedHeightMax] = [2, 240];

/** A field with a selected text, which the operator copies with the keyboard. @param {{ text: string }} props */
function SelectedText({ text }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => {
    if (field.current === null) return;
    field.current.style.height = `${Math.min(field.current.scrollHeight + borders, selectedHeightMax)}px`;
    field.current.focus();
  }, []);
  const select = () => field.current?.select();
  return html`<textarea class="selected" ref=${field} readonly spellcheck=${false} aria-label="Text to copy" value=${text} onFocus=${select}></textarea>`;
}

/**
 * Shows a sentence in which the id of the key is a link to the key's page.
 *
 * @param {string} text
 * @param {string | undefined} keyId
 */
export function textWithKey(text, keyId) {
  const at = keyId === undefined ? -1 : indexOfWord(text, keyId);
  if (keyId === undefined || at === -1) return text;
  return html`${text.slice(0, at)}<a href=${keyPath(keyId)}>${keyId}</a>${text.slice(at + keyId.length)}`;
}

/**
 * Finds an id as a whole word. The key `a`, for example, is not found in the name `alice`.
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

/**
 * Shows the age of stale figures, and the reason. Shows nothing while the figures are fresh.
 *
 * @param {{ polled: Polled }} props
 */
export function Age({ polled }) {
  useNow();
  const why = polled.error ? `. ${polled.error.message}` : '';
  const text = isStale(polled) ? `${duration(Date.now() - polled.atMs)} old${why}` : '';
  return html`<span class=${`age ${why && 'with-reason'}`} role="status">${text}</span>`;
}

/**
 * Shows a text in place of rows: a loading text, an error, or the text for an empty list.
 *
 * @param {Polled} polled
 * @param {ComponentChildren} empty
 */
export function instead({ body, error }, empty) {
  if (body !== undefined) return html`<div class="empty">${emptyText(body, empty)}</div>`;
  return html`<div class="empty" role=${error ? 'alert' : 'status'}>${error?.message ?? 'Loading …'}</div>`;
}

/** In place of a chart's figures. @param {Polled} polled @param {string} empty */
export function noteOf({ body, error }, empty) {
  return error?.message ?? (body ? emptyText(body, empty) : 'Loading …');
}

/**
 * @param {{ title: string, polled?: Polled, tools?: ComponentChildren, children?: ComponentChildren, name?: string, heading?: string }} props
 */
export function Section({ title, polled, tools, children, name = '', heading = 'h2' }) {
  return html`<section class=${`section ${name}`}>
    <header>
      <${heading}>${title}<//>
      ${polled && html`<${Age} polled=${polled} />`}
      <div class="tools">${tools}</div>
    </header>
    <${Fresh} polled=${polled}>${children}<//>
  </section>`;
}

/**
 * Shows its children in grey while the polled data is stale.
 *
 * @param {{ polled?: Polled, children?: ComponentChildren }} props
 */
export function Fresh({ polled, children }) {
  useNow();
  return html`<div class=${polled && isStale(polled) ? 'stale' : ''}>${children}</div>`;
}

/**
 * A group of buttons with one button for each value, followed by further content.
 *
 * @template {string} Value
 * @param {Record<Value, string>} texts the text of each value
 * @param {{ label: string, chosen: Value | undefined, choose: (value: Value) => void }} options
 * @param {ComponentChildren} [more]
 */
export function choices(texts, { label, chosen, choose }, more) {
  return html`<span class="choice" role="group" aria-label=${label}>
    ${Object.entries(texts).map(
      ([value, text]) =>
        html`<button key=${value} type="button" aria-pressed=${value === chosen} onClick=${() => choose(/** @type {Value} */ (value))}>${text}</button>`,
    )}
    ${more}
  </span>`;
}

/**
 * A choice whose value is in the URL. When the operator chooses a value, the page shows the first page of the list.
 *
 * @param {string} name of the parameter @param {string} label
 * @param {Record<string, string>} texts the text of each value; '' is the usual one
 * @param {string} chosen
 * @param {ComponentChildren} [more]
 */
export function choicesInAddress(name, label, texts, chosen, more) {
  const choose = (/** @type {string} */ value) => changeQuery({ [name]: value, after: undefined });
  return choices(texts, { label, chosen, choose }, more);
}

/**
 * A list of options whose chosen value is in the URL.
 *
 * @param {string} name of the parameter @param {string} label
 * @param {readonly (readonly string[])[]} options value and text of each; '' is the usual value
 * @param {string} [chosen]
 */
export function selectInAddress(name, label, options, chosen = '') {
  const choose = (/** @type {any} */ { currentTarget }) =>
    changeQuery({ [name]: currentTarget.value, after: undefined });
  // A link may contain a value that is not an option, such as a removed plan.
  const all = options.some(([option]) => option === chosen) ? options : [...options, [chosen, chosen]];
  return html`<select aria-label=${label} value=${chosen} onChange=${choose}>
    ${all.map(([option, text]) => html`<option key=${option} value=${option} selected=${option === chosen}>${text}</option>`)}
  </select>`;
}

const typingMs = 250;

/**
 * A search field whose text is in the URL.
 *
 * @param {{ name: string, chosen: string | undefined, hint: string, charsMax: number }} props `name` of the parameter
 */
export function SearchInAddress({ name, chosen = '', hint, charsMax }) {
  const typed = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const [text, setText] = useState(chosen);
  const written = useRef(chosen);
  // The Back button or a link may change the URL. The field's own change must not undo what was typed since.
  useEffect(() => {
    if (chosen !== written.current) setText(chosen);
    written.current = chosen;
  }, [chosen]);
  useEffect(() => () => clearTimeout(typed.current), []);
  const type = (/** @type {any} */ { currentTarget: { value } }) => {
    setText(value);
    clearTimeout(typed.current);
    typed.current = setTimeout(() => {
      written.current = value;
      changeQuery({ [name]: value, after: undefined }, { replace: true });
    }, typingMs);
  };
  const label = `${hint.charAt(0).toUpperCase()}${hint.slice(1)}`;
  return html`<input type="search" value=${text} onInput=${type} maxlength=${charsMax} placeholder=${hint} aria-label=${label} />`;
}

/**
 * The buttons for the pages of a list. The position in the list is in the URL.
 *
 * @param {{ first: string, further: string, after: string | undefined, next: string | undefined }} options
 * @param {ComponentChildren} [more]
 */
export function paging({ first, further, after, next }, more) {
  const button = (
    /** @type {string} */ text,
    /** @type {boolean} */ isOff,
    /** @type {string | undefined} */ to,
  ) =>
    html`<button type="button" disabled=${isOff} onClick=${() => changeQuery({ after: to })}>${text}</button>`;
  return html`<p class="paging">
    ${button(first, after === undefined, undefined)} ${button(further, next === undefined, next)} ${more}
  </p>`;
}

/**
 * @param {{ readonly id: string, readonly at: string }} item
 * @param {ComponentChildren} content
 * @param {{ more?: ComponentChildren, isSteady?: boolean }} [options] `more`: content below the row
 */
export function timedRow({ id, at }, content, { more, isSteady = false } = {}) {
  const atMs = Date.parse(at);
  return html`<li key=${isSteady ? undefined : id}>
    <span class="when"><span>${utcClock(atMs, nowMs())}</span> <${Instant} atMs=${atMs} /></span>
    <span class="what">${content}</span>${more}
  </li>`;
}

/**
 * Shows a few values as a small bar chart. An undefined value has no bar.
 *
 * @param {readonly (number | undefined)[]} values
 * @param {string} label
 */
export function sparkline(values, label) {
  const highest = Math.max(...values.map((value) => value ?? 0), 1e-9);
  const wide = 100 / Math.max(values.length, 1);
  const bars = values.map((value, index) => {
    if (value === undefined) return '';
    const height = Math.max(value === 0 ? 0.6 : 1.5, (value / highest) * 22).toFixed(2);
    return `M${(index * wide).toFixed(2)} 24v-${height}h${(wide * 0.8).toFixed(2)}v${height}z`;
  });
  return html`<svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${label}>
    <path d=${bars.join('')} />
  </svg>`;
}
