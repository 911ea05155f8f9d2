import { pagePaths } from './page-paths.js';
import { isField } from './parts.js';
import { goTo } from './router.js';
import { routes } from './routes.js';

/** The longest time between `g` and the letter of a page. */
const secondKeyMs = 1_500;

/** The keyboard shortcuts, for the dialog that `?` opens. @type {readonly (readonly [string, string])[]} */
export const shortcuts = [
  ['/', 'find a key'],
  ...Object.values(routes).flatMap(({ nav }) =>
    nav ? [/** @type {const} */ ([`g ${nav.letter}`, `open ${nav.text}`])] : [],
  ),
  ['↓ ↑', 'move through the rows of a table, by links or by check boxes'],
  ['Esc', 'leave a field, close a dialog, clear the selection'],
  ['?', 'show this list'],
];

export const shortcutsButtonId = 'shortcuts';

export function listenToKeys() {
  let goneAtMs = Number.NEGATIVE_INFINITY;
  document.addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // Shortcuts are disabled while a dialog is open, because opening another page would discard the dialog's content.
    if (document.querySelector('dialog[open]')) return;
    if (event.key === 'Escape') {
      target.blur();
      return;
    }
    if (isField(target)) return;
    if (event.key === '?') {
      document.getElementById(shortcutsButtonId)?.click();
      return;
    }
    if (event.key === '/') {
      const search = document.getElementById('search');
      if (!(search instanceof HTMLInputElement)) return;
      event.preventDefault();
      // Selecting the text lets the operator replace it by typing.
      search.select();
      return;
    }
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      if (walkRows(target, event.key === 'ArrowDown' ? 1 : -1)) event.preventDefault();
      return;
    }
    if (event.key === 'g') {
      goneAtMs = event.timeStamp;
      return;
    }
    if (event.timeStamp - goneAtMs > secondKeyMs) return;
    goneAtMs = Number.NEGATIVE_INFINITY;
    const found = Object.entries(routes).find(([, { nav }]) => nav?.letter === event.key);
    if (found) goTo(pagePaths[/** @type {keyof typeof pagePaths} */ (found[0])]);
  });
}

/**
 * Moves the focus from the link in a row to the link in the next or previous row, or from check box to check box.
 *
 * @param {HTMLElement} from
 * @param {1 | -1} step
 */
function walkRows(from, step) {
  const links = from.matches('[type="checkbox"]')
    ? [...document.querySelectorAll('[type="checkbox"]')]
    : [...document.querySelectorAll('tbody tr a, .rows li a')].filter(isFirstOfRow);
  const at = links.indexOf(from);
  // The first arrow key moves the focus into the table.
  if (at === -1 && !from.matches('body, main')) return false;
  const next = at === -1 ? links[0] : links[at + step];
  if (!(next instanceof HTMLElement)) return false;
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
  return true;
}

/** @param {Element} link */
function isFirstOfRow(link) {
  return link.closest('tr, li')?.querySelector('a') === link;
}
