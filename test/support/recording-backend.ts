import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket, type TlsOptions } from 'node:tls';

/** One request as it stood on the wire; text is Latin-1, so that each character is one byte. */
export interface RecordedRequest {
  /** Counts from 1: which of the backend's connections it came on. */
  readonly connection: number;
  readonly method: string;
  readonly target: string;
  /** Request line and fields up to the empty line, exactly. */
  readonly head: string;
  /** What followed, framing included; empty when the backend was asked to react to the head. */
  readonly rawBody: string;
}

/** Writes whatever it likes to the socket, or nothing. */
export type Reaction = (request: RecordedRequest, socket: Socket) => void;

export interface RecordingBackendOptions {
  readonly host?: string;
  readonly port?: number;
  readonly react?: Reaction;
  /** When it reacts: to the head alone, or (default) when the whole request is there. */
  readonly reactTo?: 'head' | 'message';
  /** Its certificate, and what else Node's TLS server takes; absent: cleartext. */
  readonly tls?: TlsOptions;
}

export interface RecordingBackend {
  readonly port: number;
  readonly url: string;
  /** All but the health checks. */
  readonly requests: RecordedRequest[];
  /** What the next requests meet. */
  react: Reaction;
  /** Status of `/healthz`; undefined hangs. */
  health: number | undefined;
  healthChecks: number;
  readonly openConnections: () => number;
  /** Resolves when the backend has that many requests. */
  received(count: number): Promise<void>;
  /** Stops listening and cuts all connections, as a process that dies. */
  close(): Promise<void>;
}

/** An HTTP/1.1 backend on raw sockets: it records bytes exactly and can misbehave in every way that bytes can. */
export async function startRecordingBackend({
  host = '127.0.0.1',
  port = 0,
  react = (_request, socket) => socket.write(okResponse('{}')),
  reactTo = 'message',
  tls,
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

/** Ends a connection with a reset. A socket of Node's TLS can only be closed, which resets it if octets are unread. */
export function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** A whole answer with the right Content-Length. */
export function okResponse(body: string, status = 200, fields: readonly string[] = []): string {
  const lines = [`HTTP/1.1 ${status} Whatever`, ...fields, `Content-Length: ${Buffer.byteLength(body)}`];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** The lines of a recorded head after the request line, in order. */
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

/** The raw length of the body at the start of `rest`; undefined while it is not known. */
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
