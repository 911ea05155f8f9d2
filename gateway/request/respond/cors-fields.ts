import type { IncomingMessage } from 'node:http';
import { token } from '../../shared/http/field-grammar.ts';

/** The origins whose scripts may call the API from a browser; undefined when no origin is configured. */
export type CorsOrigins = ReadonlySet<string> | undefined;

/** The response fields that a script may read, in addition to the "CORS-safelisted response-header names" (Fetch standard). */
const exposedFields = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-RateLimit-Cost',
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
 * Returns the header fields that allow scripts of this origin to read a response. If CORS is configured, every response has `Vary: Origin`,
 * because a cache must not reuse a response for another origin.
 *
 * @returns a flat list of names and values
 */
export function corsFields(origin: string | undefined, origins: CorsOrigins): readonly string[] {
  if (origins === undefined) return none;
  if (origin === undefined || !origins.has(origin)) return varies;
  return ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposedFields, ...varies];
}

const none: readonly string[] = [];
const varies: readonly string[] = ['Vary', 'Origin'];

/**
 * Whether a request is a CORS preflight of an allowed origin (Fetch standard, "CORS-preflight request"). A browser sends a
 * preflight to ask whether a script may send a request.
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
 * Returns the header fields that only the response to a preflight has. The fields are the same for every path, so that they do not
 * reveal which paths exist.
 *
 * @param maxAgeSeconds how long the browser may cache the response
 * @returns a flat list of names and values
 */
export function preflightFields({ headers }: IncomingMessage, maxAgeSeconds: number): readonly string[] {
  const wanted = headers['access-control-request-headers'] ?? '';
  return [
    'Access-Control-Allow-Methods',
    'GET, HEAD, POST, PUT, PATCH, DELETE, QUERY',
    // The response allows all fields that the preflight lists. The value `*` would not include Authorization.
    'Access-Control-Allow-Headers',
    fieldNames.test(wanted) ? wanted : 'Authorization, Content-Type',
    'Access-Control-Max-Age',
    String(maxAgeSeconds),
  ];
}

const fieldNames = new RegExp(`^${token}(?:, ?${token})*$`);
