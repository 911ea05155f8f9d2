import { createServer, type IncomingMessage } from 'node:http';
import type { Server, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { errorBody, errors } from '../errors.ts';
import type { Certificate } from '../model.ts';
import { createTlsFront, type TlsFrontOptions, tlsRequiredMessage } from '../tls/tls-front.ts';
import { type GatewayState, judgeReadiness } from './readiness.ts';

export interface AdminListener {
  /** The server to listen with. */
  readonly server: Server;
  /** As that of the public listener. */
  setCertificate(certificate: Certificate): void;
  /** Closes it with all its connections. */
  close(): void;
}

export interface AdminListenerOptions {
  readonly currentState: () => GatewayState;
  readonly metrics: { readonly contentType: string; read(): Promise<string> };
  readonly bounds: TlsFrontOptions['bounds'];
  /** With it the listener speaks TLS and nothing else. */
  readonly certificate?: Certificate;
  readonly onFailedHandshake: (reason: string) => void;
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
export function createAdminListener(options: AdminListenerOptions): AdminListener {
  const { bounds, certificate, onFailedHandshake } = options;
  const http = createServer((req, res) => {
    adminResponse(req, options).then(
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
  const admit = ({ remoteAddress }: Socket) => remoteAddress;
  const front =
    certificate && createTlsFront({ certificate, http, admit, onFailure: onFailedHandshake, bounds });
  return {
    server: front?.server ?? http,
    setCertificate: (next) => front?.setCertificate(next),
    close() {
      (front?.server ?? http).close();
      front?.destroyUnfinished();
      http.closeAllConnections();
    },
  };
}

async function adminResponse(
  { method, url = '', socket }: IncomingMessage,
  { currentState, metrics, certificate }: AdminListenerOptions,
): Promise<AdminResponse> {
  const lacksTls = certificate !== undefined && !(socket instanceof TLSSocket);
  if (lacksTls) return errorResponse('invalid_request', tlsRequiredMessage);
  const path = url.split('?', 1)[0] ?? '';
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

function errorResponse(
  code: 'invalid_request' | 'method_not_allowed' | 'not_found',
  message?: string,
): AdminResponse {
  return { status: errors[code].status, body: errorBody(code, message) };
}
