import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { AdminSettings } from '../../shared/model.ts';
import { type AdminResponse, apiPrefix, errorResponse } from '../admin-response.ts';
import type { AdminApi } from '../api/admin-api.ts';
import type { AdminPages } from '../pages/admin-pages.ts';
import { type GatewayState, judgeReadiness } from '../readiness.ts';

export interface AdminPathsDeps {
  readonly currentState: () => GatewayState;
  readonly metrics: { readonly contentType: string; read(): Promise<Buffer> };
  /** Returns the current `admin` settings. */
  readonly admin: () => AdminSettings;
  readonly api: AdminApi;
  readonly pages: AdminPages;
}

/**
 * The paths of the admin listener. `/healthz` reports that the process is alive. `/readyz` reports whether the gateway
 * can serve, and its faults. `/metrics` is for Prometheus. Requests for `/healthz`, `/readyz` and `/metrics` come from
 * programs, so they need no token and may have any host name. All other paths are for people with a browser, and refuse
 * requests from pages of other sites.
 */
export function createAdminPaths({
  currentState,
  metrics,
  admin,
  api,
  pages,
}: AdminPathsDeps): (req: IncomingMessage, requestId: string) => Promise<AdminResponse> {
  const open = new Map<string, () => AdminResponse | Promise<AdminResponse>>([
    ['/healthz', () => ({ status: 200, body: JSON.stringify({ status: 'ok' }) })],
    [
      '/readyz',
      () => {
        const { httpStatus, body } = judgeReadiness(currentState());
        return { status: httpStatus, body: JSON.stringify(body) };
      },
    ],
    ['/metrics', async () => ({ status: 200, body: await metrics.read(), contentType: metrics.contentType })],
  ]);

  return async (req, requestId) => {
    const { method, url = '', headers } = req;
    const path = url.split('?', 1)[0] ?? '';
    const page = open.get(path);
    if (page !== undefined) {
      const isRead = method === 'GET' || method === 'HEAD';
      return isRead ? page() : errorResponse('method_not_allowed', undefined, { Allow: 'GET, HEAD' });
    }
    const refusal = checkSite(headers, admin().hosts);
    if (refusal !== undefined) return refusal;
    return path.startsWith(`${apiPrefix}/`) ? api(req, requestId) : pages(method, path, headers);
  };
}

/**
 * Refuses a request that an operator's browser sends from a page of another site. If the host name of another site
 * resolves to the gateway's address (DNS rebinding), the browser treats the site's pages and the API as the same
 * origin. `Host` then contains the name of the other site. An IP address in `Host` is safe, because no other site can
 * use the gateway's address as its host name.
 *
 * @param hosts further allowed names, in lower case
 * @returns the refusal; undefined for an allowed request
 */
function checkSite(
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
