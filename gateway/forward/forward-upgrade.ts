import { type ClientRequest, type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { ProxyServer, ServerOptions } from 'http-proxy-3';
import type { ErrorCode } from '../errors.ts';
import { fieldValue } from '../field-value.ts';
import type { ForwardOutcome, UpgradeRequest } from './forward-outcome.ts';
import { requestHead } from './request-head.ts';
import { responseFields } from './response-fields.ts';
import type { Bounds, Target, Targets } from './targets.ts';
import { createTunnels } from './tunnels.ts';

export interface Upgrades {
  forward(request: UpgradeRequest): Promise<ForwardOutcome>;
  /** Ends open tunnels gently; handshakes that come later, or are under way, are refused. */
  drain(): void;
  /** Cuts all tunnels and handshakes. */
  close(): void;
}

interface UpgradesOptions {
  readonly proxy: ProxyServer;
  readonly bounds: Bounds;
  readonly targets: () => Targets;
}

/** How http-proxy-3 shows us its handshake before it is sent. */
interface HandshakeOptions extends ServerOptions {
  readonly onHandshake?: (handshake: ClientRequest) => void;
}

type HandshakeEnd =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'client_gone' }
  | HandshakeFailure;

interface HandshakeFailure {
  readonly kind: 'failed';
  readonly code: ErrorCode;
  readonly cause: string;
  readonly retryAfterSeconds?: number;
}

/**
 * WebSocket through http-proxy-3, which makes the handshake and joins the two sockets after the 101. Its listeners for
 * any other answer and for errors are replaced, since they write the backend's head to the client unseen. A handshake
 * is tried once: the client's connection cannot be handed to a second one.
 */
export function createUpgrades({ proxy, bounds, targets }: UpgradesOptions): Upgrades {
  const tunnels = createTunnels(bounds);

  proxy.on('proxyReqWs', (handshake, _req, _socket, options: HandshakeOptions) => {
    options.onHandshake?.(handshake);
  });

  async function forward(request: UpgradeRequest): Promise<ForwardOutcome> {
    const startedMs = performance.now();
    await targets().pending;
    if (request.socket.destroyed) {
      return { kind: 'client_gone', upstreamMs: performance.now() - startedMs, attempts: 0 };
    }
    const { holder } = request;
    const refusal = refuseTunnel(holder);
    const target = refusal === undefined ? targets().chooseForTunnel() : undefined;
    if (target === undefined) {
      const failure = refusal ?? unavailable('no target has room for another tunnel');
      const upstreamMs = performance.now() - startedMs;
      return { ...failure, headersSent: false, upstreamMs, attempts: 0 };
    }
    tunnels.hold(request.req.socket, { target, holder });
    const end = await shakeHands(request, target);
    const use = { target: target.address, upstreamMs: performance.now() - startedMs, attempts: 1 };
    if (end.kind !== 'failed') return { ...end, ...use };
    return { ...end, ...use, headersSent: false };
  }

  function refuseTunnel(holder: string): HandshakeFailure | undefined {
    if (tunnels.isDraining()) return draining;
    return tunnels.hasRoom(holder) ? undefined : keyIsFull;
  }

  function shakeHands(request: UpgradeRequest, target: Target): Promise<HandshakeEnd> {
    const { req, socket, head } = request;
    return new Promise((resolve) => {
      let handshake: ClientRequest | undefined;
      const options: HandshakeOptions = {
        target: target.url,
        connectTimeout: bounds.connectTimeoutMs,
        onHandshake: (made) => {
          handshake = made;
          writeHead(made, request);
        },
      };
      const { timeout = 0 } = req.socket;
      try {
        proxy.ws(req, socket, head, options);
      } catch (bug) {
        // A handshake that was not finished has the client's fields still, and nobody else hears of its errors yet.
        handshake?.on('error', () => {}).destroy();
        throw bug;
      } finally {
        // It has switched the listener's write timeout off, which any other answer than 101 still needs.
        req.socket.setTimeout(timeout);
      }
      // It makes none of what is not GET with `Upgrade: websocket`, and has cut the connection.
      if (handshake === undefined) resolve({ kind: 'client_gone' });
      else answerWith(handshake, { request, target, resolve });
    });
  }

  function answerWith(handshake: ClientRequest, { request, target, resolve }: Answering): void {
    const { socket } = request;
    let connected = false;
    const [join] = handshake.listeners('upgrade');
    for (const event of ['upgrade', 'response', 'error']) handshake.removeAllListeners(event);

    handshake.setTimeout(bounds.upstreamHeadersTimeoutMs, () => handshake.destroy(new HandshakeTimeout()));
    handshake.once('socket', (targetSocket) => targetSocket.once('connect', () => (connected = true)));
    handshake.once('response', (answer) => resolve(passOn(answer, request)));
    handshake.once('upgrade', (answer: IncomingMessage, targetSocket: Socket, first: Buffer) => {
      const end = tunnels.isDraining() ? draining : acceptSwitch(answer, request);
      resolve(end);
      if (end.kind === 'failed') {
        targetSocket.destroy();
        return;
      }
      handshake.setTimeout(0);
      tunnels.open(request.req.socket, targetSocket);
      join?.(answer, targetSocket, first);
    });
    handshake.on('error', (error) => {
      const end = handshakeFailure(error, connected);
      if (end.code === 'upstream_unavailable') targets().eject(target, end.cause);
      resolve(end);
    });
    socket.once('close', () => {
      resolve({ kind: 'client_gone' });
      handshake.destroy();
    });
  }

  return {
    forward,
    drain: tunnels.drain,
    close: tunnels.close,
  };
}

interface Answering {
  readonly request: UpgradeRequest;
  readonly target: Target;
  readonly resolve: (end: HandshakeEnd) => void;
}

class HandshakeTimeout extends Error {}

/** http-proxy-3 copied the client's fields and rewrote its path; what goes out is what any request gets. */
function writeHead(handshake: ClientRequest, { req, requestFields, keepForwarded }: UpgradeRequest): void {
  const { fields } = requestHead({ rawHeaders: req.rawHeaders, requestFields, keepForwarded });
  for (const name of handshake.getHeaderNames()) handshake.removeHeader(name);
  for (let i = 0; i < fields.length; i += 2) handshake.appendHeader(fields[i] ?? '', fields[i + 1] ?? '');
  handshake.setHeader('Connection', 'Upgrade');
  handshake.setHeader('Upgrade', 'websocket');
  handshake.path = req.url ?? '/';
}

/** Looks at the backend's 101 and puts our fields into it, before http-proxy-3 writes it. */
function acceptSwitch(
  answer: IncomingMessage,
  { req, res, responseFields: ownFields }: UpgradeRequest,
): SwitchEnd {
  if (answer.headers.upgrade?.toLowerCase() !== 'websocket') {
    return { kind: 'failed', code: 'upstream_failed', cause: 'the backend switched to another protocol' };
  }
  const flaw = flawOf(answer);
  if (flaw !== undefined) return { kind: 'failed', code: 'upstream_failed', cause: flaw };
  const fields = responseFields({ status: 101, fields: answer.rawHeaders, ownFields });
  const headers: NodeJS.Dict<string | string[]> = { connection: 'Upgrade', upgrade: 'websocket' };
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const value = fields[i + 1] ?? '';
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : [earlier, value].flat();
  }
  answer.headers = headers;
  res.detachSocket(req.socket);
  return { kind: 'answered', status: 101 };
}

type SwitchEnd = Exclude<HandshakeEnd, { kind: 'client_gone' }>;

/** The backend did not switch: its answer goes to the client as that of any request; the end of `res` closes the connection. */
function passOn(
  answer: IncomingMessage,
  { res, socket, responseFields: ownFields }: UpgradeRequest,
): HandshakeEnd {
  const status = answer.statusCode ?? 0;
  const flaw = status >= 200 && status <= 599 ? flawOf(answer) : `status ${status}`;
  if (flaw !== undefined) {
    answer.destroy();
    return { kind: 'failed', code: 'upstream_failed', cause: flaw };
  }
  const fields = responseFields({ status, fields: answer.rawHeaders, ownFields });
  res.writeHead(status, STATUS_CODES[status] ?? 'Unknown', [...fields, 'Connection', 'close']);
  pipeline(answer, res, (error) => {
    if (error) socket.destroy();
  });
  return { kind: 'answered', status };
}

/** What a well-formed answer cannot have; Node's client, which makes the handshake, lets it through. */
function flawOf({ rawHeaders, headers }: IncomingMessage): string | undefined {
  if (!rawHeaders.every((part) => fieldValue.test(part))) return 'control character in a header field';
  const coding = headers['transfer-encoding'] ?? 'chunked';
  // Another coding would be taken off with the field and its content passed on as if it were plain.
  return coding.toLowerCase() === 'chunked' ? undefined : 'a transfer coding other than chunked';
}

function handshakeFailure(error: Error, connected: boolean): HandshakeFailure {
  if (!connected) return unavailable(error.message);
  if (error instanceof HandshakeTimeout) {
    return { kind: 'failed', code: 'upstream_timeout', cause: 'the handshake was not answered' };
  }
  return { kind: 'failed', code: 'upstream_failed', cause: error.message };
}

function unavailable(cause: string): HandshakeFailure {
  return { kind: 'failed', code: 'upstream_unavailable', cause, retryAfterSeconds: 1 };
}

const draining = unavailable('the gateway drains');

/** No fault of the backend: the key must close one of its own. */
const keyIsFull: HandshakeFailure = {
  kind: 'failed',
  code: 'too_many_websockets',
  cause: 'the key has as many WebSockets open as it may',
  retryAfterSeconds: 1,
};
