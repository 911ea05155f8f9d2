import type { IncomingMessage } from 'node:http';

/** The origins whose pages may call the API from a browser. Undefined when none is configured. */
export type CorsOrigins = ReadonlySet<string> | undefined;

/** The fields that a script may read besides the "CORS-safelisted response-header names" of the Fetch standard. */
const exposedFields = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Request-Id',
  'Deprecation',
  'Sunset',
  'Link',
  'X-Stability',
  'X-Key-Expires',
].join(', ');

/**
 * The fields that let a page of this origin read a response. If any origin is allowed, every response has `Vary: Origin`, because a
 * cache must not reuse a response for another origin.
 *
 * @returns flat name, value, …
 */
export function corsFields(origin: string | undefined, origins: CorsOrigins): readonly string[] {
  if (origins === undefined) return none;
  if (origin === undefined || !origins.has(origin)) return varies;
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposedFields, ...varies];
}

const none: readonly string[] = [];
const varies: readonly string[] = ['Vary', 'Origin'];

/**
 * Whether this is a preflight for a page of an allowed origin (Fetch standard, "CORS-preflight request"). With it a browser asks
 * whether the page may send a request.
 */
export function isPreflight({ method, headers }: IncomingMessage, origins: CorsOrigins): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    origins?.has(headers.origin) === true
  );
}

/**
 * The fields of the response to a preflight, besides `corsFields`. They are the same for every path, so that they do not reveal
 * which paths exist.
 *
 * @param maxAgeSeconds how long the browser may cache them
 * @returns flat name, value, …
 */
export function preflightFields({ headers }: IncomingMessage, maxAgeSeconds: number): readonly string[] {
  const wanted = headers['access-control-request-headers'] ?? '';
  return [
    'Access-Control-Allow-Methods',
    'GET, HEAD, POST, PUT, PATCH, DELETE',
    // All fields that the page asks for. `*` would not cover Authorization.
    'Access-Control-Allow-Headers',
    fieldNames.test(wanted) ? wanted : 'Authorization, Content-Type',
    'Access-Control-Max-Age',
    String(maxAgeSeconds),
  ];
}

const fieldNames = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:, ?[!#$%&'*+\-.^_`|~0-9A-Za-z]+)*$/;
