import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import type { ProxyServer, ServerOptions } from 'http-proxy-3';
import type { ErrorCode } from '../../errors.ts';
import type { InterimHead } from '../../transport/response-head.ts';
import type { ForwardOutcome, UpgradeRequest } from '../forward-outcome.ts';
import { requestHead } from '../request-head.ts';
import { interimFields, responseFields } from '../response-fields.ts';
import type { Bounds, Target, Targets } from '../upstream/targets.ts';
import { type HandshakeHead, HandshakeReader } from './handshake-reader.ts';
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
 * any other answer and for errors are replaced, since they write the backend's head to the client unseen. The head is
 * held to the strict form of any other answer, which Node's client, through which the handshake goes, does not do. A
 * handshake is tried once: the client's connection cannot be handed to a second one.
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
    return new Promise((resolve, reject) => {
      let handshake: ClientRequest | undefined;
      const options: HandshakeOptions = {
        target: target.url,
        connectTimeout: bounds.connectTimeoutMs,
        onHandshake: (made) => {
          handshake = made;
          fillIn(made, request);
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
      // http-proxy-3 refuses anything but GET with `Upgrade: websocket` by destroying the client's socket.
      if (handshake === undefined) resolve({ kind: 'client_gone' });
      else answerWith(handshake, { request, target, resolve, reject });
    });
  }

  function answerWith(handshake: ClientRequest, { request, target, resolve, reject }: Answering): void {
    const { socket } = request;
    const reader = new HandshakeReader(bounds);
    let connected = false;
    const [join] = handshake.listeners('upgrade');
    for (const event of ['upgrade', 'response', 'error']) handshake.removeAllListeners(event);

    // Not the socket's own timeout, which each octet of a head that drips would begin anew.
    const timer = setTimeout(
      () => handshake.destroy(new HandshakeTimeout()),
      bounds.upstreamHeadersTimeoutMs,
    );
    handshake.once('close', () => clearTimeout(timer));
    handshake.once('socket', (targetSocket) => {
      targetSocket.once('connect', () => (connected = true));
      // Before Node's own listener, which is there already: the octets are judged before Node makes an answer of them.
      targetSocket.prependListener('data', function read(piece: Buffer) {
        const interims = reader.read(piece);
        const { head } = reader;
        if (head.kind !== 'open') targetSocket.off('data', read);
        if (head.kind !== 'malformed') {
          guard(targetSocket, () => sendInterims(interims, request));
          return;
        }
        resolve(failed(head.cause));
        // Without an error, which could end the process: a switch in the same piece makes Node take its error listener off.
        targetSocket.destroy();
      });
    });
    handshake.once('response', (answer) =>
      guard(answer.socket, () => resolve(passOn(answer, reader.head, request))),
    );
    handshake.once('upgrade', (answer: IncomingMessage, targetSocket: Socket, first: Buffer) =>
      guard(targetSocket, () => {
        const end = tunnels.isDraining() ? draining : acceptSwitch(answer, reader.head, request);
        resolve(end);
        if (end.kind === 'failed') {
          targetSocket.destroy();
          return;
        }
        clearTimeout(timer);
        tunnels.open(request.req.socket, targetSocket);
        withoutWriting(socket, () => join?.(answer, targetSocket, first));
      }),
    );

    /** A bug in a step that no caller waits for ends this handshake and no other exchange. */
    function guard(targetSocket: Socket, step: () => void): void {
      try {
        step();
      } catch (bug) {
        targetSocket.destroy();
        reject(bug);
      }
    }

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
  /** A bug, for whoever asked. */
  readonly reject: (bug: unknown) => void;
}

class HandshakeTimeout extends Error {}

/** http-proxy-3 copied the client's fields and rewrote its path; what goes out is what any request gets. */
function fillIn(handshake: ClientRequest, { req, requestFields, keepForwarded }: UpgradeRequest): void {
  const { fields } = requestHead({ rawHeaders: req.rawHeaders, requestFields, keepForwarded });
  for (const name of handshake.getHeaderNames()) handshake.removeHeader(name);
  for (let i = 0; i < fields.length; i += 2) handshake.appendHeader(fields[i] ?? '', fields[i + 1] ?? '');
  handshake.setHeader('Connection', 'Upgrade');
  handshake.setHeader('Upgrade', 'websocket');
  handshake.path = req.url ?? '/';
}

function sendInterims(interims: readonly InterimHead[], { res }: UpgradeRequest): void {
  for (const { status, fields } of interims) {
    if (status !== 100) res.sendInterim(status, interimFields(fields));
  }
}

/** Looks at the backend's 101 and answers the client with one of our own. */
function acceptSwitch(
  answer: IncomingMessage,
  head: HandshakeHead,
  { res, responseFields: ownFields }: UpgradeRequest,
): SwitchEnd {
  if (head.kind !== 'switch') return misread(head);
  if (answer.headers.upgrade?.toLowerCase() !== 'websocket') {
    return failed('the backend switched to another protocol');
  }
  res.switchProtocols('websocket', responseFields({ status: 101, fields: answer.rawHeaders, ownFields }));
  return { kind: 'answered', status: 101 };
}

/** http-proxy-3 writes a 101 to the client before it joins the two sockets; the client has got one by then. */
function withoutWriting(socket: Duplex, join: () => void): void {
  const { write } = socket;
  socket.write = () => true;
  try {
    join();
  } finally {
    socket.write = write;
  }
}

type SwitchEnd = Exclude<HandshakeEnd, { kind: 'client_gone' }>;

/** The backend did not switch: its answer goes to the client as that of any request; the end of `res` closes the connection. */
function passOn(
  answer: IncomingMessage,
  head: HandshakeHead,
  { res, socket, responseFields: ownFields }: UpgradeRequest,
): HandshakeEnd {
  if (head.kind !== 'answer') {
    answer.destroy();
    return misread(head);
  }
  const { status } = head;
  const fields = responseFields({ status, fields: head.fields, ownFields });
  res.begin(status, fields);
  pipeline(answer, res, (error) => {
    if (error) socket.destroy();
  });
  return { kind: 'answered', status };
}

/** Node's client told of an answer where the reader found none, or another one. */
function misread(head: HandshakeHead): HandshakeFailure {
  return failed(head.kind === 'malformed' ? head.cause : 'an answer that can be read in two ways');
}

function failed(cause: string): HandshakeFailure {
  return { kind: 'failed', code: 'upstream_failed', cause };
}

function handshakeFailure(error: Error, connected: boolean): HandshakeFailure {
  if (!connected) return unavailable(error.message);
  if (error instanceof HandshakeTimeout) {
    return { kind: 'failed', code: 'upstream_timeout', cause: 'the handshake was not answered' };
  }
  return failed(error.message);
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
