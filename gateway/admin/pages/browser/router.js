import { matchPage } from './page-paths.js';
import { createSignal } from './signal.js';

const moved = createSignal();
addEventListener('popstate', moved.tell);

/**
 * The address has the whole state of the page, so a link restores it. The page is drawn again when the address changes.
 */
export function usePlace() {
  moved.use();
  const { pathname, search } = location;
  return { page: matchPage(pathname), query: new URLSearchParams(search), path: pathname };
}

/** Goes to another page. @param {string} path with the query */
export function goTo(path) {
  if (path === location.pathname + location.search) return;
  history.pushState(null, '', path);
  scrollTo(0, 0);
  moved.tell();
}

/**
 * Changes the query of this page. A default value is omitted.
 *
 * @param {Record<string, string | undefined>} changes undefined or '' takes a parameter away
 * @param {{ replace?: boolean }} [options] without an entry of its own in the history, as for text that is being typed
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

/** The path of a key's page. @param {string} id */
export function keyPath(id) {
  return `/keys/${encodeURIComponent(id)}`;
}

/** Follows links of this origin without loading the document again, except links for another tab. */
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
