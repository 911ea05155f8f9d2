import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type AdminResponse, errorResponse } from '../admin-response.ts';

/**
 * Refuses a request that an operator's browser sends from a page of another site. If the host name of another site
 * resolves to the gateway's address (DNS rebinding), the browser treats the site's pages and the API as the same
 * origin. `Host` then contains the name of the other site. An IP address in `Host` is safe, because no other site can
 * use the gateway's address as its host name.
 *
 * @param hosts further allowed names, in lower case
 * @returns the refusal; undefined for an allowed request
 */
export function checkSite(
  { host, origin }: IncomingHttpHeaders,
  hosts: readonly string[],
): AdminResponse | undefined {
  const name = nameOf(host ?? '');
  if (!isAddress(name) && name !== 'localhost' && !hosts.includes(name)) return errorResponse('unknown_host');
  // The comparison ignores the scheme, because a TLS proxy may have served the page.
  const isOwn = origin === undefined || origin.replace(/^https?:\/\//, '') === host?.toLowerCase();
  return isOwn ? undefined : errorResponse('foreign_origin');
}

/** The host name without the port, in lower case. */
function nameOf(host: string): string {
  return host.replace(/:\d{0,5}$/, '').toLowerCase();
}

/** In a `Host` field, brackets enclose an IPv6 address (RFC 3986 §3.2.2). */
function isAddress(name: string): boolean {
  return isIP(name) === 4 || (/^\[.*\]$/.test(name) && isIP(name.slice(1, -1)) === 6);
}
