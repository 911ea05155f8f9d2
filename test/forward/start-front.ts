import { once } from 'node:events';
import { createServer, type IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { errorBody, errors } from '../../gateway/errors.ts';
import { createForwarder, type Forwarder, type ForwardOutcome } from '../../gateway/forward/forwarder.ts';
import type { Bounds } from '../../gateway/forward/targets.ts';
import { createTurnEnd } from '../../gateway/turn-end.ts';

export interface FrontOptions {
  readonly url: string;
  readonly resolve?: (hostname: string) => Promise<readonly string[]>;
  readonly bounds?: Partial<Bounds>;
  readonly bodyBytesMax?: number;
  readonly requestFields?: readonly string[];
  readonly responseFields?: readonly string[];
  readonly keepForwarded?: boolean;
  /** What comes before forwarding, as the limits do. */
  readonly before?: (res: ServerResponse) => Promise<unknown>;
}

export interface Front {
  readonly port: number;
  readonly forwarder: Forwarder;
  readonly outcomes: ForwardOutcome[];
  /** What `forward` rejected with; the client's connection was cut then. */
  readonly bugs: unknown[];
  /** Resolves when that many requests have ended. */
  ended(count: number): Promise<void>;
  close(): Promise<void>;
}

/** The forwarder behind a bare node:http server, as the request path uses it. */
export async function startFront({
  url,
  resolve,
  bounds,
  bodyBytesMax = 1_048_576,
  requestFields = [],
  responseFields = [],
  keepForwarded = false,
  before = async () => {},
}: FrontOptions): Promise<Front> {
  const forwarder = createForwarder({
    upstream: { url, health: '/healthz' },
    log: pino({ level: 'silent' }),
    atTurnEnd: createTurnEnd(),
    nowMs: Date.now,
    ...(resolve && { resolve }),
    ...(bounds && { bounds }),
  });
  const outcomes: ForwardOutcome[] = [];
  const bugs: unknown[] = [];
  const common = { requestFields, responseFields, keepForwarded };

  const server = createServer(serve);
  server.on('checkContinue', serve);
  server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const res = new ServerResponse(req);
    res.assignSocket(socket);
    res.once('finish', () => socket.end());
    void forwarder
      .forwardUpgrade({ ...common, holder: 'acme', req, res, socket, head })
      .then((outcome) => end(outcome, res))
      .catch(cut(res));
  });

  function serve(req: IncomingMessage, res: ServerResponse): void {
    void before(res)
      .then(() => forwarder.forward({ ...common, req, res, bodyBytesMax }))
      .then((outcome) => end(outcome, res))
      .catch(cut(res));
  }

  function cut(res: ServerResponse) {
    return (bug: unknown) => {
      bugs.push(bug);
      res.destroy();
    };
  }

  function end(outcome: ForwardOutcome, res: ServerResponse): void {
    outcomes.push(outcome);
    if (outcome.kind !== 'failed' || outcome.headersSent) return;
    res.writeHead(errors[outcome.code].status, { Connection: 'close' });
    res.end(errorBody(outcome.code));
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    forwarder,
    outcomes,
    bugs,
    async ended(count) {
      while (outcomes.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await forwarder.close();
    },
  };
}

/** Sends raw bytes and reads until the connection closes; ask for `Connection: close`. */
export async function sendRaw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  let received = '';
  socket.on('data', (chunk: string) => {
    received += chunk;
  });
  socket.on('error', () => {});
  socket.write(text, 'latin1');
  await once(socket, 'close');
  return received;
}

/** A request without a body whose connection closes after the answer. */
export function get(target: string, ...fields: string[]): string {
  return [`GET ${target} HTTP/1.1`, 'Host: api.test', ...fields, 'Connection: close', '', ''].join('\r\n');
}

export function statusOf(answer: string): number {
  return Number(answer.split(' ', 2)[1]);
}
