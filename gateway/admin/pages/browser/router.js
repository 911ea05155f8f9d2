import { matchPage } from './page-paths.js';
import { createSignal } from './signal.js';

const moved = createSignal();
addEventListener('popstate', moved.tell);

/**
 * Returns the open page and its query from the URL, which has filters, order, period and a chosen minute, so a link restores
 * them. The component renders again when the URL changes.
 */
export function usePlace() {
  moved.use();
  const { pathname, search } = location;
  return { page: matchPage(pathname), query: new URLSearchParams(search), path: pathname };
}

/** @param {string} path with the query */
export function goTo(path) {
  if (path === location.pathname + location.search) return;
  history.pushState(null, '', path);
  scrollTo(0, 0);
  moved.tell();
}

/**
 * Changes the query of this page. Default values are omitted from the URL.
 *
 * @param {Record<string, string | undefined>} changes undefined or '' removes a parameter
 * @param {{ replace?: boolean }} [options] whether the change adds no entry to the history, for example while the
 * operator types
 */
export function changeQuery(changes, { replace = false } = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const path = location.pathname + (text === '' ? '' : `?${text}`);
  if (path === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', path);
  else history.pushState(null, '', path);
  moved.tell();
}

/** @param {string} id */
export function keyPath(id) {
  return `/keys/${encodeURIComponent(id)}`;
}

/** Opens links to the same origin without loading the document again. Links for a new tab are left to the browser. */
export function followLinks() {
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = /** @type {Element | null} */ (event.target)?.closest('a[href^="/"]');
    const href = link?.getAttribute('href');
    if (!href || link?.hasAttribute('download')) return;
    event.preventDefault();
    goTo(href);
  });
}
