import { useEffect, useRef, useState } from 'preact/hooks';
import { counted, figure } from '../../../shared/words/figures.js';
import { ActionDialog } from './action-dialog.js';
import { actions } from './actions.js';
import { mayWrite } from './key-actions.js';
import { html, isField } from './parts.js';

/** @import { Key } from '../../words/keys.js' */
/** @import { Action } from './actions.js' */
/** @import { Column } from './parts.js' */

const { grant, ungrant, ban, unban, rotate, revoke, restore, edit } = actions;
/** @type {readonly Action[]} */
const ofMany = [grant, ungrant, ban, unban, rotate, revoke, restore, edit];

/**
 * The selection of rows in a list of keys, for a token that may write. The selection is kept while the list changes and
 * on its other pages. Another filter and Esc clear it.
 *
 * @param {{ keys: readonly Key[], filter: string, live: import('./live.js').Live }} options `keys`: the shown keys
 * @returns {{ columns: readonly Column<Key>[], bar: unknown }} both empty for a token that may not write
 */
export function useSelection({ keys, filter, live }) {
  const [selected, setSelected] = useState(/** @type {ReadonlyMap<string, Key>} */ (new Map()));
  const [open, setOpen] = useState(/** @type {Action | undefined} */ (undefined));
  const clear = () => setSelected(new Map());
  const head = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(clear, [filter]);
  useEffect(() => {
    const listener = (/** @type {KeyboardEvent} */ { key, target }) => {
      const isElsewhere = document.querySelector('dialog[open]') || isField(/** @type {Element} */ (target));
      if (key === 'Escape' && !isElsewhere) clear();
    };
    document.addEventListener('keydown', listener);
    return () => document.removeEventListener('keydown', listener);
  }, []);
  // The button that opened the dialog no longer exists after a change of all keys.
  useEffect(() => {
    if (open === undefined && selected.size === 0 && document.activeElement === document.body)
      head.current?.focus({ preventScroll: true });
  }, [open]);
  if (!mayWrite(live)) return { columns: [], bar: undefined };

  const select = (/** @type {readonly Key[]} */ some, /** @type {boolean} */ isSelected) => {
    const after = new Map(selected);
    for (const key of some) {
      if (isSelected) after.set(key.id, key);
      else after.delete(key.id);
    }
    setSelected(after);
  };
  const shown = keys.filter(({ id }) => selected.has(id)).length;
  const isAll = keys.length > 0 && shown === keys.length;
  const box = (
    /** @type {string} */ label,
    /** @type {boolean} */ checked,
    /** @type {readonly Key[]} */ some,
    /** @type {object} */ more = {},
  ) =>
    html`<label class="box"><input type="checkbox" aria-label=${label} checked=${checked} onChange=${() => select(some, !checked)} ...${more} /></label>`;
  const isPartly = shown > 0 && !isAll;
  const elsewhere = selected.size > shown ? `, ${figure(selected.size - shown)} not on this page` : '';
  const countText = selected.size > 0 ? `${counted(selected.size, 'key')} selected${elsewhere}` : '';
  return {
    columns: [
      {
        kind: 'select',
        width: 'select',
        title: box(`Select all ${counted(keys.length, 'key')} on this page`, isAll, keys, {
          indeterminate: isPartly,
          ref: head,
        }),
        cell: (key) => box(`Select ${key.id}`, selected.has(key.id), [key]),
      },
    ],
    bar: html`<p class="sr" role="status">${countText}</p>
      ${
        selected.size > 0 &&
        html`<div class="selection" role="group" aria-label="Selected keys">
          <p>${countText}</p>
          <div class="buttons">
            ${ofMany.map((action) => html`<button key=${action.title} type="button" onClick=${() => setOpen(action)}>${action.buttonOfMany ?? action.button}</button>`)}
          </div>
          <button type="button" onClick=${clear}>Clear</button>
        </div>`
      }
      ${
        open &&
        html`<${ActionDialog}
          key=${open.title}
          of=${[...selected.values()]}
          action=${open}
          live=${live}
          isSummed
          onDone=${(/** @type {import('./action-dialog.js').Done} */ { failedIds }) =>
            setSelected(new Map([...selected].filter(([id]) => failedIds.includes(id))))}
          onClose=${() => setOpen(undefined)}
        />`
      }`,
  };
}
