import { createServer, type Server } from 'node:http';
import { errorBody, errors } from '../errors.ts';
import { type GatewayState, judgeReadiness } from './readiness.ts';

/**
 * The listener for operators, apart from the public one and on loopback by default. `/healthz` says that the process is
 * alive; `/readyz` says whether it can serve, and what is wrong if anything is.
 */
export function createAdminListener(currentState: () => GatewayState): Server {
  return createServer((req, res) => {
    const path = (req.url ?? '').split('?', 1)[0] ?? '';
    const { status, body } = adminResponse(req.method ?? '', path, currentState);
    res.writeHead(status, {
      ...(status === 405 && { Allow: 'GET, HEAD' }),
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': 'no-store',
    });
    res.end(body);
  });
}

function adminResponse(method: string, path: string, currentState: () => GatewayState) {
  if (method !== 'GET' && method !== 'HEAD') return errorResponse('method_not_allowed');
  switch (path) {
    case '/healthz':
      return { status: 200, body: JSON.stringify({ status: 'ok' }) };
    case '/readyz': {
      const readiness = judgeReadiness(currentState());
      return { status: readiness.httpStatus, body: JSON.stringify(readiness.body) };
    }
    default:
      return errorResponse('not_found');
  }
}

function errorResponse(code: 'method_not_allowed' | 'not_found') {
  return { status: errors[code].status, body: errorBody(code) };
}
