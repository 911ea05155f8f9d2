import type { IncomingMessage } from 'node:http';
import type { AdminSettings } from '../../shared/model.ts';
import { type AdminResponse, apiPrefix, errorResponse } from '../admin-response.ts';
import type { AdminApi } from '../api/admin-api.ts';
import type { AdminPages } from '../pages/admin-pages.ts';
import { type GatewayState, judgeReadiness } from '../readiness.ts';
import { checkSite } from './check-site.ts';

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
