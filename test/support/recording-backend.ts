import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket, type TlsOptions } from 'node:tls';
import { backendTls } from './backend-tls.ts';

/** The exact bytes of one request. The text is Latin-1, so that each character is one byte. */
export interface RecordedRequest {
  /** The number of the request's connection, from 1. */
  readonly connection: number;
  readonly method: string;
  readonly target: string;
  /** Request line and header fields, up to and including the empty line. */
  readonly head: string;
  /** The body with its framing. Empty if the backend reacts before it has read the body. */
  readonly rawBody: string;
}

/** The backend's reaction to a request, which may write anything or nothing to the socket. */
export type Reaction = (request: RecordedRequest, socket: Socket) => void;

export interface RecordingBackendOptions {
  readonly host?: string;
  readonly port?: number;
  readonly react?: Reaction;
  /** Whether the backend reacts to the head alone or (by default) to the complete request. */
  readonly reactTo?: 'head' | 'message';
  /** The certificate and other options of Node's TLS server. By default, the options come from `backend-tls.ts`. */
  readonly tls?: TlsOptions;
}

export interface RecordingBackend {
  readonly port: number;
  readonly url: string;
  /** The requests, excluding the health checks. */
  readonly requests: RecordedRequest[];
  /** The reaction to later requests. */
  react: Reaction;
  /** The status of `/healthz`; undefined: the backend sends no response. */
  health: number | undefined;
  healthChecks: number;
  readonly openConnections: () => number;
  /** Resolves when the backend has received this number of requests in total. */
  received(count: number): Promise<void>;
  /** Stops listening and destroys all connections, as if the process had died. */
  close(): Promise<void>;
}

/** An HTTP/1.1 backend on raw sockets. The backend records the exact bytes of requests and may send any bytes as a response. */
export async function startRecordingBackend({
  host = '127.0.0.1',
  port = 0,
  react = (_request, socket) => socket.write(okResponse('{}')),
  reactTo = 'message',
  tls = backendTls()?.certificate,
}: RecordingBackendOptions = {}): Promise<RecordingBackend> {
  const sockets = new Set<Socket>();
  const waiting: { count: number; resolve: () => void }[] = [];
  let connections = 0;

  const options = { noDelay: true };
  const server =
    tls === undefined ? createServer(options, converse) : createTlsServer({ ...options, ...tls }, converse);
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
  });

  function converse(socket: Socket): void {
    const connection = ++connections;
    let unread = '';
    socket.on('error', () => {});
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      unread += text;
      for (;;) {
        const message = takeMessage(unread, reactTo);
        if (message === undefined) return;
        unread = unread.slice(message.head.length + message.rawBody.length);
        serve({ connection, ...message }, socket);
      }
    });
  }

  function serve(request: RecordedRequest, socket: Socket): void {
    if (request.target === '/healthz') {
      backend.healthChecks++;
      if (backend.health !== undefined) socket.write(okResponse('', backend.health));
      return;
    }
    backend.requests.push(request);
    for (const { count, resolve } of waiting) if (backend.requests.length >= count) resolve();
    backend.react(request, socket);
  }

  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address() as AddressInfo;

  const backend: RecordingBackend = {
    port: address.port,
    url: `${tls === undefined ? 'http' : 'https'}://${host}:${address.port}`,
    requests: [],
    react,
    health: 200,
    healthChecks: 0,
    openConnections: () => sockets.size,
    received(count) {
      if (backend.requests.length >= count) return Promise.resolve();
      return new Promise((resolve) => waiting.push({ count, resolve }));
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  return backend;
}

/**
 * Resets a connection. Node cannot reset a TLS socket, so the function closes the socket. The kernel then resets the connection if octets
 * are unread.
 */
export function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** The bytes of a complete response with the right Content-Length. */
export function okResponse(body: string, status = 200, fields: readonly string[] = []): string {
  const lines = [`HTTP/1.1 ${status} Whatever`, ...fields, `Content-Length: ${Buffer.byteLength(body)}`];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** The header field lines of a recorded request, in order. */
export function fieldLines({ head }: RecordedRequest): string[] {
  return head.trimEnd().split('\r\n').slice(1);
}

interface Message {
  readonly method: string;
  readonly target: string;
  readonly head: string;
  readonly rawBody: string;
}

function takeMessage(text: string, reactTo: 'head' | 'message'): Message | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const head = text.slice(0, headEnd + 4);
  const [method = '', target = ''] = head.split(' ', 2);
  const rest = text.slice(head.length);
  const length = reactTo === 'head' ? 0 : bodyLength(head, rest);
  if (length === undefined || rest.length < length) return undefined;
  return { method, target, head, rawBody: rest.slice(0, length) };
}

/** The length of the body at the start of `rest`, including its framing; undefined while the body is incomplete. */
function bodyLength(head: string, rest: string): number | undefined {
  const contentLength = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (contentLength !== undefined) return Number(contentLength);
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return 0;
  let position = 0;
  for (;;) {
    const lineEnd = rest.indexOf('\r\n', position);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(rest.slice(position, lineEnd), 16);
    position = lineEnd + 2 + size + 2;
    if (rest.length < position) return undefined;
    if (size === 0) return position;
  }
}
