import type { IncomingMessage } from 'node:http';
import { bounds } from '../timeouts-and-sizes.ts';

/** The origins whose pages may call the API from a browser; undefined when none was configured. */
export type CorsOrigins = ReadonlySet<string> | undefined;

/** What a page's script may read beside the safelisted fields (Fetch standard, "CORS-safelisted response-header name"). */
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
].join(', ');

/**
 * What lets a page of this origin read a response. A cache must not hand a response to one origin to another, so each
 * varies once any origin is allowed.
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

/** Whether a browser asks, before the request itself, if a page of an allowed origin may send it (Fetch standard, "CORS-preflight request"). */
export function isPreflight({ method, headers }: IncomingMessage, origins: CorsOrigins): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    origins?.has(headers.origin) === true
  );
}

/**
 * The answer to a preflight, beside `corsFields`. It is the same for every path: who has no key learns nothing of the
 * paths.
 *
 * @returns flat name, value, …
 */
export function preflightFields({ headers }: IncomingMessage): readonly string[] {
  const wanted = headers['access-control-request-headers'] ?? '';
  return [
    'Access-Control-Allow-Methods',
    'GET, HEAD, POST, PUT, PATCH, DELETE',
    // Whatever a page may want to send: the gateway drops what it must, and `*` would not cover Authorization.
    'Access-Control-Allow-Headers',
    fieldNames.test(wanted) ? wanted : 'Authorization, Content-Type',
    'Access-Control-Max-Age',
    String(bounds.preflightMaxAgeSeconds),
  ];
}

const fieldNames = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:, ?[!#$%&'*+\-.^_`|~0-9A-Za-z]+)*$/;
