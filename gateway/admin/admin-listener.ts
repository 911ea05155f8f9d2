import { createServer, type Server } from 'node:http';
import { errorBody, errors } from '../errors.ts';
import { type GatewayState, judgeReadiness } from './readiness.ts';

interface AdminSources {
  readonly currentState: () => GatewayState;
  readonly metrics: { readonly contentType: string; read(): Promise<string> };
}

interface AdminResponse {
  readonly status: number;
  readonly body: string;
  /** Default: JSON. */
  readonly contentType?: string;
}

/**
 * The listener for operators, apart from the public one and on loopback by default. `/healthz` says that the process is
 * alive; `/readyz` says whether it can serve, and what is wrong if anything is; `/metrics` is read by Prometheus.
 */
export function createAdminListener(sources: AdminSources): Server {
  return createServer((req, res) => {
    const path = (req.url ?? '').split('?', 1)[0] ?? '';
    adminResponse(req.method ?? '', path, sources).then(
      ({ status, body, contentType = 'application/json' }) => {
        res.writeHead(status, {
          ...(status === 405 && { Allow: 'GET, HEAD' }),
          'Content-Type': contentType,
          'Content-Length': Buffer.byteLength(body),
          'Cache-Control': 'no-store',
        });
        res.end(body);
      },
      () => res.destroy(),
    );
  });
}

async function adminResponse(
  method: string,
  path: string,
  { currentState, metrics }: AdminSources,
): Promise<AdminResponse> {
  if (method !== 'GET' && method !== 'HEAD') return errorResponse('method_not_allowed');
  switch (path) {
    case '/healthz':
      return { status: 200, body: JSON.stringify({ status: 'ok' }) };
    case '/readyz': {
      const readiness = judgeReadiness(currentState());
      return { status: readiness.httpStatus, body: JSON.stringify(readiness.body) };
    }
    case '/metrics':
      return { status: 200, body: await metrics.read(), contentType: metrics.contentType };
    default:
      return errorResponse('not_found');
  }
}

function errorResponse(code: 'method_not_allowed' | 'not_found'): AdminResponse {
  return { status: errors[code].status, body: errorBody(code) };
}
