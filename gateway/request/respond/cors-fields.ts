import type { IncomingMessage } from 'node:http';

/** The origins whose pages may call the API from a browser; undefined when none was configured. */
export type CorsOrigins = ReadonlySet<string> | undefined;

/** The fields that a page's script may read beside the safelisted ones (Fetch standard, "CORS-safelisted response-header name"). */
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
 * The fields that let a page of this origin read a response. Once any origin is allowed, every response says
 * `Vary: Origin`: a cache must not give the response to one origin to another.
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
 * Whether this is a preflight (Fetch standard, "CORS-preflight request") for a page of an allowed origin: the browser asks
 * whether the page may send a request, before it sends that request.
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
 * The fields of the response to a preflight, beside `corsFields`. They are the same for every path, so that a client
 * without a key learns nothing of the paths.
 *
 * @param maxAgeSeconds how long the browser may remember them
 * @returns flat name, value, …
 */
export function preflightFields({ headers }: IncomingMessage, maxAgeSeconds: number): readonly string[] {
  const wanted = headers['access-control-request-headers'] ?? '';
  return [
    'Access-Control-Allow-Methods',
    'GET, HEAD, POST, PUT, PATCH, DELETE',
    // All that the page asks for: the gateway drops what it must, and `*` would not cover Authorization.
    'Access-Control-Allow-Headers',
    fieldNames.test(wanted) ? wanted : 'Authorization, Content-Type',
    'Access-Control-Max-Age',
    String(maxAgeSeconds),
  ];
}

const fieldNames = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:, ?[!#$%&'*+\-.^_`|~0-9A-Za-z]+)*$/;
