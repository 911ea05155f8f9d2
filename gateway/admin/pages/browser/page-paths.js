import { capabilityPagePaths } from '../../../capabilities/lists/words.js';

/**
 * The path of each page; `{…}` stands for one segment. The listener serves the same HTML document at each path, and
 * `routes.js` has the component of each page. The query has the rest of the page's state, such as a filter or a period.
 */
export const pagePaths = {
  now: '/',
  keys: '/keys',
  key: '/keys/{id}',
  usage: '/usage',
  plans: '/plans',
  operations: '/operations',
  upstreams: '/upstreams',
  events: '/events',
  request: '/requests/{id}',
  ...capabilityPagePaths,
  changes: '/changes',
  settings: '/settings',
};

/**
 * @param {string} path without the query
 * @returns {{ name: keyof typeof pagePaths, params: Record<string, string> } | undefined}
 */
export function matchPage(path) {
  for (const [name, template] of Object.entries(pagePaths)) {
    const found = new RegExp(`^${template.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`).exec(path);
    if (!found) continue;
    try {
      const params = Object.entries(found.groups ?? {}).map(([name, text]) => [
        name,
        decodeURIComponent(text),
      ]);
      return { name: /** @type {keyof typeof pagePaths} */ (name), params: Object.fromEntries(params) };
    } catch {
      return undefined;
    }
  }
  return undefined;
}
