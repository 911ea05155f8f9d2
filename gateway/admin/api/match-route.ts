import type { Route } from './route.ts';

export type RouteMatch =
  | { readonly kind: 'matched'; readonly route: Route; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  | { readonly kind: 'not_found' }
  /** A segment is no percent-encoded UTF-8. */
  | { readonly kind: 'malformed' };

/** Finds the route of a request. HEAD uses the route of GET. @param path below `/api/v1`, without the query */
export function matchRoute(routes: readonly Route[], method: string, path: string): RouteMatch {
  const segments = path.split('/');
  const there = routes.filter((route) => isMatch(route.path.split('/'), segments));
  const route = there.find((one) => one.method === (method === 'HEAD' ? 'GET' : method));
  if (route === undefined) {
    if (there.length === 0) return { kind: 'not_found' };
    const methods = there.flatMap((one) => (one.method === 'GET' ? ['GET', 'HEAD'] : [one.method]));
    return { kind: 'method_not_allowed', allow: [...new Set(methods)].join(', ') };
  }
  try {
    return { kind: 'matched', route, params: paramsOf(route.path.split('/'), segments) };
  } catch {
    return { kind: 'malformed' };
  }
}

function isMatch(template: readonly string[], segments: readonly string[]): boolean {
  if (template.length !== segments.length) return false;
  return template.every((part, i) => (isName(part) ? segments[i] !== '' : part === segments[i]));
}

/** @throws a URIError */
function paramsOf(template: readonly string[], segments: readonly string[]): Record<string, string> {
  const named = template.flatMap((part, i) =>
    isName(part) ? [[part.slice(1, -1), decodeURIComponent(segments[i] ?? '')]] : [],
  );
  return Object.fromEntries(named);
}

function isName(part: string): boolean {
  return part.startsWith('{');
}
