/**
 * The path of each page; `{…}` stands for one segment. The listener answers each with the same document, and `routes.js` says
 * what is shown there. What a page shows beside, such as a filter or a period, is in the query.
 */
export const pagePaths = {
  now: '/',
  keys: '/keys',
  key: '/keys/{id}',
  plans: '/plans',
  operations: '/operations',
  upstreams: '/upstreams',
  events: '/events',
  changes: '/changes',
};

/**
 * The page of a path.
 *
 * @param {string} path without the query
 * @returns {{ name: keyof typeof pagePaths, params: Record<string, string> } | undefined}
 */
export function matchPage(path) {
  const segments = path.split('/');
  for (const [name, template] of Object.entries(pagePaths)) {
    const params = matchTemplate(template.split('/'), segments);
    if (params) return { name: /** @type {keyof typeof pagePaths} */ (name), params };
  }
  return undefined;
}

/** @param {string[]} template @param {string[]} segments @returns {Record<string, string> | undefined} */
function matchTemplate(template, segments) {
  if (template.length !== segments.length) return undefined;
  /** @type {Record<string, string>} */
  const params = {};
  for (const [index, part] of template.entries()) {
    const segment = segments[index] ?? '';
    if (!part.startsWith('{')) {
      if (part !== segment) return undefined;
      continue;
    }
    try {
      params[part.slice(1, -1)] = decodeURIComponent(segment);
    } catch {
      return undefined;
    }
    if (segment === '') return undefined;
  }
  return params;
}
