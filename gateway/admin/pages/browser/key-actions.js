import { useState } from 'preact/hooks';
import { ActionDialog } from './action-dialog.js';
import { actions } from './actions.js';
import { html, Instant } from './parts.js';

/** @import { Key } from '../../words/keys.js' */
/** @import { Done } from './action-dialog.js' */
/** @import { Action } from './actions.js' */

/** @typedef {{ text: string, atMs: number }} Shown */

/**
 * The buttons are shown only with a token that may write. Actions that make the key stop working come last.
 *
 * @param {{ of: Key, further: Readonly<Record<string, Action>>, live: import('./live.js').Live, done: Shown | undefined, onDone: (done: Done) => void }} props
 *   `further`: the actions of capabilities
 */
export function KeyActions({ of: key, further, live, done, onDone }) {
  const [open, setOpen] = useState(/** @type {Action | undefined} */ (undefined));
  if (!mayWrite(live)) return undefined;
  /** @type {readonly Action[]} */
  const all = [...Object.values(actions), ...Object.values(further)];
  const offered = all
    .filter(({ isOffered }) => isOffered(key))
    .sort((a, b) => Number(a.isTyped ?? false) - Number(b.isTyped ?? false));
  return html`<div class="actions" role="group" aria-label="Actions">
      ${offered.map((action) => html`<button key=${action.title} type="button" onClick=${() => setOpen(action)}>${action.button}</button>`)}
    </div>
    ${result(done)}
    ${open && html`<${ActionDialog} key=${open.title} of=${[key]} action=${open} live=${live} onDone=${onDone} onClose=${() => setOpen(undefined)} />`}`;
}

/**
 * The button of one action, at the place of what it changes.
 *
 * @param {{ of: Key, action: Action, live: import('./live.js').Live, onDone: (done: Done) => void }} props
 */
export function KeyAction({ of: key, action, live, onDone }) {
  const [isOpen, setOpen] = useState(false);
  if (!mayWrite(live)) return undefined;
  return html`<button type="button" aria-label=${`${action.title} ${key.id}`} onClick=${() => setOpen(true)}>${action.button}</button>
    ${isOpen && html`<${ActionDialog} of=${[key]} action=${action} live=${live} onDone=${onDone} onClose=${() => setOpen(false)} />`}`;
}

/** @param {import('./live.js').Live} live */
export function mayWrite({ state }) {
  return state?.token.may === 'write';
}

/**
 * The result of the last action, with its time, because another operator may have undone the action since.
 *
 * @param {Shown | undefined} done
 */
export function result(done) {
  return html`<p class="result" role="status">${done?.text}</p>
    ${done && html`<p class="muted">Done <${Instant} atMs=${done.atMs} /></p>`}`;
}
