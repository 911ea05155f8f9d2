import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { pino } from 'pino';
import type { TargetSeen } from '../../../gateway/fleet/process-state.ts';
import type {
  Attempt,
  ForwardOutcome,
  TunnelOpener,
} from '../../../gateway/request/forward/forward-types.ts';
import { createForwarder, type Forwarder } from '../../../gateway/request/forward/forwarder.ts';
import type { SharedChecks } from '../../../gateway/request/forward/upstream/watch-health.ts';
import { createListener } from '../../../gateway/request/listen/listener.ts';
import type { ClientResponse } from '../../../gateway/request/respond/client-response.ts';
import { type ErrorCode, errorBody, errors } from '../../../gateway/shared/errors.ts';
import { createEventLoopBatch } from '../../../gateway/shared/event-loop-batch.ts';
import type { Certificate, Upstream } from '../../../gateway/shared/model.ts';
import { type Bounds, defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { backendTls } from '../../support/backend-tls.ts';
import { patientForwarding } from '../../support/tuning.ts';

/** The client that opens the WebSockets. */
export const opener: TunnelOpener = {
  requestId: '1',
  keyId: 'acme',
  address: '127.0.0.1',
  authorization: undefined,
  operation: { id: 'feed', method: 'GET', template: '/feed', upstream: 'default' },
};

export interface FrontOptions {
  readonly url: string;
  /** The settings of the upstream, without its URL. */
  readonly upstream?: Partial<Upstream>;
  readonly resolve?: (hostname: string) => Promise<readonly string[]>;
  /** Bounds that override the default bounds and the long timeouts of tests. */
  readonly bounds?: Partial<Bounds>;
  readonly bodyBytesMax?: number;
  readonly requestFields?: readonly string[];
  readonly responseFields?: readonly string[];
  readonly keepForwarded?: boolean;
  /** Called before a request is forwarded, in place of the check of the limits. */
  readonly before?: (res: ClientResponse) => Promise<unknown>;
  /** The health checks that the front shares with other fronts. */
  readonly sharedChecks?: SharedChecks;
  /** With a certificate, the listener accepts only TLS. */
  readonly certificate?: Certificate;
}

export interface Front {
  readonly port: number;
  readonly forwarder: Forwarder;
  readonly outcomes: ForwardOutcome[];
  /** The attempts that have ended. */
  readonly attempts: Attempt[];
  /** The errors with which the promise of `forward` was rejected. Each error destroyed the client's connection. */
  readonly bugs: unknown[];
  /** Resolves when `count` requests have ended. */
  ended(count: number): Promise<void>;
  /** The targets of the single upstream. */
  targets(): readonly TargetSeen[];
  /** Replaces the single upstream, as a reload does. */
  setUrl(url: string): void;
  close(): Promise<void>;
}

/** A real listener with the forwarder behind it, connected as in the gateway. */
export async function startFront({
  url,
  upstream,
  resolve,
  bounds: overrides,
  bodyBytesMax = 1_048_576,
  requestFields = [],
  responseFields = [],
  keepForwarded = false,
  before = async () => {},
  sharedChecks,
  certificate,
}: FrontOptions): Promise<Front> {
  const bounds = { ...defaultBounds, ...patientForwarding, ...overrides };
  const forwarder = createForwarder({
    upstreams: [upstreamAt(url, upstream)],
    log: pino({ level: 'silent' }),
    atTurnEnd: createEventLoopBatch(),
    nowMs: Date.now,
    bounds,
    ...(resolve && { resolve }),
    sharedChecks,
  });
  const outcomes: ForwardOutcome[] = [];
  const bugs: unknown[] = [];
  const attempts: Attempt[] = [];
  const common = {
    requestFields,
    responseFields,
    keepForwarded,
    upstream: 'default',
    onAttemptEnd: (attempt: Attempt) => void attempts.push(attempt),
  };
  /** The key of a request: `X-Holder`, or a default. */
  const holderOf = ({ headers }: IncomingMessage) => String(headers['x-holder'] ?? 'acme');

  const listener = createListener({
    handlers: {
      onArrival(arrival) {
        const { res } = arrival;
        switch (arrival.kind) {
          case 'request':
            serve(res.req, res);
            break;
          case 'rejection':
            res.answer(errorResponse(res.rejection?.code ?? 'internal'));
            break;
          case 'upgrade': {
            const { socket, head } = arrival;
            void forwarder
              .forwardUpgrade({
                ...common,
                holder: holderOf(res.req),
                req: res.req,
                res,
                ...addressOf(res.req),
                socket,
                head,
                opener,
              })
              .then((outcome) => end(outcome, res))
              .catch(cut(res));
          }
        }
      },
      wantsUpgrade: ({ headers }) => headers.upgrade !== undefined,
      reportBug: (bug) => {
        throw bug;
      },
      onFailedHandshake: (reason) => {
        throw new Error(reason);
      },
    },
    ...(certificate && { certificate }),
    bounds,
  });

  function serve(req: IncomingMessage, res: ClientResponse): void {
    void before(res)
      .then(() =>
        forwarder.forward({ ...common, holder: holderOf(req), req, res, ...addressOf(req), bodyBytesMax }),
      )
      .then((outcome) => end(outcome, res))
      .catch(cut(res));
  }

  function cut(res: ClientResponse) {
    return (bug: unknown) => {
      bugs.push(bug);
      res.destroy();
    };
  }

  function end(outcome: ForwardOutcome, res: ClientResponse): void {
    outcomes.push(outcome);
    if (outcome.kind !== 'failed' || outcome.headersSent) return;
    res.shouldKeepAlive = false;
    res.answer(errorResponse(outcome.code));
  }

  const { port } = await listener.listen({ host: '127.0.0.1', port: 0 });
  return {
    port,
    forwarder,
    outcomes,
    attempts,
    bugs,
    targets: () => forwarder.state().default?.targets ?? [],
    setUrl: (next) => forwarder.setUpstreams([upstreamAt(next, upstream)]),
    async ended(count) {
      while (outcomes.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    async close() {
      await listener.drain({ deadlineMs: 0 });
      await forwarder.close();
    },
  };
}

/** The target and the host of a request in origin form. */
export function addressOf({ url = '', headers }: IncomingMessage) {
  return { target: url, host: headers.host ?? '' };
}

/** An upstream with the same form as the loaded setting `upstream`. */
export function upstreamAt(url: string, overrides: Partial<Upstream> = {}): Upstream {
  const client = url.startsWith('https:') ? backendTls()?.client : undefined;
  const upstream = { name: 'default', url, health: '/healthz', host: 'keep' } as const;
  return {
    ...upstream,
    encodedSlashes: 'refuse',
    timeouts: {},
    ...(client && { tls: client }),
    ...overrides,
  };
}

function errorResponse(code: ErrorCode) {
  const body = errorBody(code);
  const { status } = errors[code];
  return { status, fields: ['Content-Length', String(Buffer.byteLength(body))], body };
}

/**
 * Sends raw bytes and reads until the connection closes, so the request needs `Connection: close`. `onReceived` gets
 * everything received so far.
 */
export async function sendRaw(
  port: number,
  text: string,
  onReceived: (received: string) => void = () => {},
): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  let received = '';
  socket.on('data', (chunk: string) => {
    received += chunk;
    onReceived(received);
  });
  socket.on('error', () => {});
  socket.write(text, 'latin1');
  await once(socket, 'close');
  return received;
}

/** A GET request without a body. The gateway closes the connection after the response. */
export function get(target: string, ...fields: string[]): string {
  return [`GET ${target} HTTP/1.1`, 'Host: api.test', ...fields, 'Connection: close', '', ''].join('\r\n');
}

export function statusOf(answer: string): number {
  return Number(answer.split(' ', 2)[1]);
}
