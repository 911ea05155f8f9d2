import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type AdminResponse, errorResponse } from './admin-response.ts';

/**
 * Keeps the pages of other sites, which an operator's browser may show, away from this listener. A name of such a site may
 * resolve to the gateway's address (DNS rebinding); its pages then count as of one origin with the API, and only `Host`
 * gives them away. An address as host is safe: nobody can make a browser believe that it belongs to a site.
 *
 * @param hosts further names that are meant, in lower case
 * @returns the refusal; undefined for a request that may go on
 */
export function checkSite(
  { host, origin }: IncomingHttpHeaders,
  hosts: readonly string[],
): AdminResponse | undefined {
  const name = nameOf(host ?? '');
  if (!isAddress(name) && name !== 'localhost' && !hosts.includes(name)) return errorResponse('unknown_host');
  // The page may have been fetched through a proxy that speaks TLS, so the scheme says nothing.
  const isOwn = origin === undefined || origin.replace(/^https?:\/\//, '') === host?.toLowerCase();
  return isOwn ? undefined : errorResponse('foreign_origin');
}

/** Without the port, in lower case. */
function nameOf(host: string): string {
  return host.replace(/:\d{0,5}$/, '').toLowerCase();
}

/** An IPv6 address stands in brackets (RFC 3986 §3.2.2). */
function isAddress(name: string): boolean {
  return isIP(name) === 4 || (/^\[.*\]$/.test(name) && isIP(name.slice(1, -1)) === 6);
}
