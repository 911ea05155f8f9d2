import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** One response, parsed strictly. */
export interface RawResponse {
  readonly status: number;
  readonly reason: string;
  /** Field names in lower case; several fields with one name are joined with ", ". */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface RawClient {
  readonly socket: Socket;
  send(bytes: string | Buffer): void;
  /**
   * The next response; set `head` after a HEAD request. @throws when the response is malformed or the connection ends first
   */
  response(options?: { readonly head?: boolean }): Promise<RawResponse>;
  /** All responses until the connection ends. @throws on a reset, or when bytes arrive that are not a response */
  responsesToEnd(): Promise<RawResponse[]>;
  /** Resolves when the connection is closed or reset. */
  readonly closed: Promise<void>;
  destroy(): void;
}

/** A client that sends bytes unchanged and accepts only strictly valid responses. */
export async function openRawClient(
  port: number,
  options: {
    readonly localAddress?: string;
    /** Whether the client can still send after the server has closed its side of the connection. */
    readonly allowHalfOpen?: boolean;
    /** The certificate that the client trusts. With a certificate, the client uses TLS. */
    readonly ca?: string;
  } = {},
): Promise<RawClient> {
  const address = { port, host: '127.0.0.1', ...options };
  const socket = options.ca === undefined ? connect(address) : connectTls(address);
  socket.setNoDelay(true);
  // The buffer has room for more octets, so that a long response is not copied at each read.
  let room = Buffer.alloc(4_096);
  let [begin, end] = [0, 0];
  let ended = false;
  let failure: Error | undefined;
  let wake: () => void = () => {};
  socket.on('data', (chunk) => {
    if (end + chunk.length > room.length) {
      const larger = Buffer.alloc(2 * (end - begin + chunk.length));
      end = room.copy(larger, 0, begin, end);
      begin = 0;
      room = larger;
    }
    end += chunk.copy(room, end);
    wake();
  });
  socket.on('end', () => {
    ended = true;
    wake();
  });
  socket.on('error', (error) => {
    failure = error;
    wake();
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const connected = options.ca === undefined ? 'connect' : 'secureConnect';
  await new Promise<void>((resolve, reject) => socket.once(connected, resolve).once('error', reject));

  /** Undefined when the connection ended between two responses. */
  async function next(head: boolean): Promise<RawResponse | undefined> {
    for (;;) {
      const received = room.subarray(begin, end);
      const parsed = parseResponse(received, { head, ended });
      if (parsed !== undefined) {
        begin += parsed.length;
        return parsed.response;
      }
      if (failure !== undefined) throw failure;
      if (ended && received.length === 0) return undefined;
      if (ended) throw new Error(`the connection ended within a response: ${received.toString('latin1')}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }

  return {
    socket,
    closed,
    send: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    async response({ head = false } = {}) {
      const response = await next(head);
      if (response === undefined) throw new Error('the connection ended without a response');
      return response;
    },
    async responsesToEnd() {
      const responses: RawResponse[] = [];
      for (let response = await next(false); response !== undefined; response = await next(false)) {
        responses.push(response);
      }
      return responses;
    },
    destroy: () => socket.destroy(),
  };
}

/** Sends bytes on a new connection and reads all responses until the server closes it. */
export async function exchangeRaw(port: number, bytes: string | Buffer): Promise<RawResponse[]> {
  const client = await openRawClient(port);
  try {
    client.send(bytes);
    return await client.responsesToEnd();
  } finally {
    client.destroy();
  }
}

interface Parsed {
  readonly response: RawResponse;
  readonly length: number;
}

/** Parses the response at the beginning of the bytes; undefined while it is incomplete. */
function parseResponse(
  bytes: Buffer,
  { head, ended }: { readonly head: boolean; readonly ended: boolean },
): Parsed | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const [, digits, reason = ''] = /^HTTP\/1\.1 ([1-5]\d\d) ([\t\x20-\x7e]*)$/.exec(statusLine) ?? [];
  if (digits === undefined) throw new Error(`malformed status line: ${JSON.stringify(statusLine)}`);
  const headers = parseHeaders(lines);
  const status = Number(digits);
  const start = headEnd + 4;
  const framed =
    head || status < 200 || status === 204 || status === 304 ? { body: '', end: start } : undefined;
  const content = framed ?? parseBody({ bytes, start, headers, ended });
  return content && { response: { status, reason, headers, body: content.body }, length: content.end };
}

function parseHeaders(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value = ''] = /^([!#$%&'*+\-.^_`|~\w]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`malformed header line: ${JSON.stringify(line)}`);
    const key = name.toLowerCase();
    const earlier = headers.get(key);
    if (earlier !== undefined && singular.has(key)) throw new Error(`two ${name} fields in one response`);
    headers.set(key, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  return headers;
}

const singular = new Set(['content-length', 'content-type', 'date', 'connection', 'transfer-encoding']);

interface BodyPosition {
  readonly bytes: Buffer;
  readonly start: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly ended: boolean;
}

function parseBody({
  bytes,
  start,
  headers,
  ended,
}: BodyPosition): { body: string; end: number } | undefined {
  const contentLength = headers.get('content-length');
  const transferEncoding = headers.get('transfer-encoding');
  if (contentLength !== undefined) {
    if (transferEncoding !== undefined) throw new Error('Content-Length beside Transfer-Encoding');
    if (!/^\d+$/.test(contentLength)) throw new Error(`malformed Content-Length: ${contentLength}`);
    const end = start + Number(contentLength);
    return bytes.length < end ? undefined : { body: bytes.toString('utf8', start, end), end };
  }
  if (transferEncoding === 'chunked') return parseChunks(bytes, start);
  if (transferEncoding !== undefined) throw new Error(`unknown Transfer-Encoding: ${transferEncoding}`);
  return ended ? { body: bytes.toString('utf8', start), end: bytes.length } : undefined;
}

function parseChunks(bytes: Buffer, start: number): { body: string; end: number } | undefined {
  const chunks: Buffer[] = [];
  for (let position = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', position);
    if (lineEnd === -1) return undefined;
    const size = bytes.toString('latin1', position, lineEnd);
    if (!/^[0-9a-fA-F]+$/.test(size)) throw new Error(`malformed chunk size: ${JSON.stringify(size)}`);
    const chunkStart = lineEnd + 2;
    const chunkEnd = chunkStart + Number.parseInt(size, 16);
    if (bytes.length < chunkEnd + 2) return undefined;
    if (bytes.toString('latin1', chunkEnd, chunkEnd + 2) !== '\r\n')
      throw new Error('a chunk without its end');
    if (chunkEnd === chunkStart) return { body: Buffer.concat(chunks).toString('utf8'), end: chunkEnd + 2 };
    chunks.push(bytes.subarray(chunkStart, chunkEnd));
    position = chunkEnd + 2;
  }
}
