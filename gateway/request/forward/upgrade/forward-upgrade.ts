import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ProxyServer, ServerOptions } from 'http-proxy-3';
import type { ErrorCode } from '../../../shared/errors.ts';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import { startDeadline } from '../../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { offeredProtocols, protocolField, tollgateProtocol } from '../../../shared/web-socket-protocols.ts';
import type { InterimHead } from '../../transport/response-head.ts';
import { connectionErrorText } from '../../transport/target-tls.ts';
import type { ForwardOutcome, OpenTunnel, UpgradeRequest } from '../forward-types.ts';
import { requestHead } from '../request-head.ts';
import { interimFields, responseFields } from '../response-fields.ts';
import type { Target } from '../upstream/targets.ts';
import type { LiveUpstream, Upstreams } from '../upstream/upstreams.ts';
import { type HandshakeHead, HandshakeReader } from './handshake-reader.ts';
import { createTunnels } from './tunnels.ts';

export interface Upgrades {
  forward(request: UpgradeRequest): Promise<ForwardOutcome>;
  /** The tunnels that are open now. */
  open(): readonly OpenTunnel[];
  /** Closes open tunnels gently; later handshakes, and those not answered yet, are refused. */
  drain(): void;
  /** Closes the connections of all tunnels and handshakes at once. */
  close(): void;
}

interface UpgradesOptions {
  readonly proxy: ProxyServer;
  readonly bounds: Bounds;
  readonly upstreams: Upstreams;
  readonly atTurnEnd: AtTurnEnd;
}

/** Gives us http-proxy-3's request to the target before it is sent. */
interface HandshakeOptions extends ServerOptions {
  readonly onHandshake?: (handshake: ClientRequest) => void;
}

type HandshakeEnd =
  | { readonly kind: 'forwarded'; readonly status: number }
  | { readonly kind: 'client_gone' }
  | HandshakeFailure;

interface HandshakeFailure {
  readonly kind: 'failed';
  readonly code: ErrorCode;
  readonly cause: string;
  readonly retryAfterSeconds?: number;
}

/**
 * WebSockets through http-proxy-3. It sends the handshake with Node's client and joins the two sockets after the 101. Its
 * listeners for other responses and for errors are replaced: they write the target's head to the client unchecked. As
 * Node's client parses leniently, the target's octets are also read by a strict reader of ours, and the two must agree.
 * A handshake is not retried: http-proxy-3 binds the client's socket to the first attempt.
 */
export function createUpgrades({ proxy, bounds, upstreams, atTurnEnd }: UpgradesOptions): Upgrades {
  const tunnels = createTunnels(bounds, atTurnEnd);

  proxy.on('proxyReqWs', (handshake, _req, _socket, options: HandshakeOptions) => {
    options.onHandshake?.(handshake);
  });

  async function forward(request: UpgradeRequest): Promise<ForwardOutcome> {
    const startedMs = performance.now();
    await upstreams.find(request.upstream)?.targets.pending;
    if (request.socket.destroyed) {
      return { kind: 'client_gone', upstreamMs: performance.now() - startedMs, attempts: 0 };
    }
    const choice = choose(request);
    if (choice.kind === 'failed') {
      const upstreamMs = performance.now() - startedMs;
      return { ...choice, headersSent: false, upstreamMs, attempts: 0 };
    }
    const { target } = choice;
    tunnels.count(request.req.socket, { target, holder: request.holder });
    const end = await shakeHands(request, choice);
    const use = { target: target.address, upstreamMs: performance.now() - startedMs, attempts: 1 };
    if (end.kind !== 'failed') return { ...end, ...use };
    return { ...end, ...use, headersSent: request.res.headersSent };
  }

  function choose({ upstream: name, holder }: UpgradeRequest): Chosen | HandshakeFailure {
    if (tunnels.isDraining()) return draining;
    if (!tunnels.hasRoom(holder)) return keyIsFull;
    const upstream = upstreams.find(name);
    if (upstream === undefined) return unavailable('a reload removed the upstream');
    const target = upstream.targets.chooseForTunnel(holder);
    if (target !== undefined) return { kind: 'chosen', upstream, target };
    const hasFreePlace = upstream.targets.chooseForTunnel(nobody) !== undefined;
    return hasFreePlace ? keyIsFull : unavailable('no target has room for another tunnel');
  }

  function shakeHands(request: UpgradeRequest, chosen: Chosen): Promise<HandshakeEnd> {
    const { req, socket, head } = request;
    const { upstream, target } = chosen;
    return new Promise((resolve, reject) => {
      let handshake: ClientRequest | undefined;
      const options: HandshakeOptions = {
        target: target.url,
        // http-proxy-3 adds to these options.
        ...(target.tls && { ssl: { ...target.tls } }),
        onHandshake: (made) => {
          handshake = made;
          fillIn(made, request, upstream.host);
        },
      };
      const { timeout = 0 } = req.socket;
      try {
        proxy.ws(req, socket, head, options);
      } catch (bug) {
        // The unfinished handshake still has the client's fields, so it must not be sent; nobody handles its errors yet.
        handshake?.on('error', () => {}).destroy();
        throw bug;
      } finally {
        // http-proxy-3 switches the listener's write timeout off, which any response but 101 needs.
        req.socket.setTimeout(timeout);
      }
      // http-proxy-3 refuses anything but GET with `Upgrade: websocket` by destroying the client's socket.
      if (handshake === undefined) resolve({ kind: 'client_gone' });
      else answerWith(handshake, { request, chosen, resolve, reject });
    });
  }

  function answerWith(handshake: ClientRequest, { request, chosen, resolve, reject }: Answering): void {
    const { socket } = request;
    const { bounds, targets } = chosen.upstream;
    const reader = new HandshakeReader(bounds);
    let connected = false;
    const [joinSockets] = handshake.listeners('upgrade');
    for (const event of ['upgrade', 'response', 'error']) handshake.removeAllListeners(event);

    // A timer, as the socket's own timeout would start anew with each octet of a head that arrives slowly.
    const stopHeadersTimeout = startDeadline(bounds.upstreamHeadersTimeoutMs, () =>
      handshake.destroy(new HandshakeTimeout()),
    );
    // That of http-proxy-3 does not cover the handshake of TLS.
    const stopConnectTimeout = startDeadline(bounds.connectTimeoutMs, () => {
      handshake.destroy(new Error(`no connection within ${bounds.connectTimeoutMs} ms`));
    });
    handshake.once('close', () => {
      stopHeadersTimeout();
      stopConnectTimeout();
    });
    handshake.once('socket', (targetSocket) => {
      targetSocket.once(chosen.target.tls === undefined ? 'connect' : 'secureConnect', () => {
        connected = true;
        stopConnectTimeout();
      });
      // Before Node's own listener, so that a malformed head is found before Node emits a response.
      targetSocket.prependListener('data', function read(piece: Buffer) {
        const interims = reader.read(piece);
        const { head } = reader;
        if (head.kind !== 'open') targetSocket.off('data', read);
        if (head.kind !== 'malformed') {
          guard(targetSocket, () => sendInterims(interims, request));
          return;
        }
        resolve(failed(head.cause));
        // Without an error: if the same piece holds a 101, Node has removed its error listener and an error would end the
        // process.
        targetSocket.destroy();
      });
    });
    handshake.once('response', (response) => {
      // First of all: the client's connection, which is closed then, must not count as closed by the client.
      response.once('error', () => resolve(bodyIsCut));
      passOn(response, reader.head, request).then(resolve, (bug) => {
        response.destroy();
        reject(bug);
      });
    });
    handshake.once('upgrade', (response: IncomingMessage, targetSocket: Socket, first: Buffer) =>
      guard(targetSocket, () => {
        const end = tunnels.isDraining() ? draining : acceptSwitch(response, reader.head, request);
        resolve(end);
        if (end.kind === 'failed') {
          targetSocket.destroy();
          return;
        }
        stopHeadersTimeout();
        withoutWriting(socket, () => joinSockets?.(response, targetSocket, first));
        tunnels.open(request.req.socket, targetSocket, request);
      }),
    );

    /** Runs a step that is called from an event: a bug in it ends this handshake and no other exchange. */
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
      if (end.code === 'upstream_unavailable') targets.eject(chosen.target, end.cause);
      resolve(end);
    });
    socket.once('close', () => {
      resolve({ kind: 'client_gone' });
      handshake.destroy();
    });
  }

  return {
    forward,
    open: tunnels.opened,
    drain: tunnels.drain,
    close: tunnels.close,
  };
}

interface Chosen {
  readonly kind: 'chosen';
  readonly upstream: LiveUpstream;
  readonly target: Target;
}

interface Answering {
  readonly request: UpgradeRequest;
  readonly chosen: Chosen;
  readonly resolve: (end: HandshakeEnd) => void;
  readonly reject: (bug: unknown) => void;
}

class HandshakeTimeout extends Error {}

/** Replaces the fields and the path that http-proxy-3 set by those of any forwarded request. */
function fillIn(
  handshake: ClientRequest,
  { req, requestFields, keepForwarded }: UpgradeRequest,
  host: string | undefined,
): void {
  const { fields } = requestHead({ rawHeaders: req.rawHeaders, requestFields, keepForwarded, host });
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

/** Checks the target's 101 and sends the client one of our own. */
function acceptSwitch(
  response: IncomingMessage,
  head: HandshakeHead,
  { req, res, responseFields: ownFields }: UpgradeRequest,
): SwitchEnd {
  if (head.kind !== 'switch') return misread(head);
  if (response.headers.upgrade?.toLowerCase() !== 'websocket') {
    return failed('the target switched to another protocol');
  }
  const fields = responseFields({ status: 101, fields: response.rawHeaders, ownFields });
  // A browser closes a WebSocket for which it has offered subprotocols and none was selected.
  if (response.headers[protocolField] === undefined) fields.push(...selectedProtocol(req.rawHeaders));
  res.switchProtocols('websocket', fields);
  return { kind: 'forwarded', status: 101 };
}

/** @param offers flat name, value, … of the handshake */
function selectedProtocol(offers: readonly string[]): string[] {
  return offeredProtocols(offers).includes(tollgateProtocol)
    ? ['Sec-WebSocket-Protocol', tollgateProtocol]
    : [];
}

/** Drops the 101 that http-proxy-3 writes to the client before it joins the two sockets: ours was sent already. */
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

/** Sends a response other than 101 to the client, as for any request. The client's connection is closed after it. */
async function passOn(
  response: IncomingMessage,
  head: HandshakeHead,
  { res, responseFields: ownFields }: UpgradeRequest,
): Promise<HandshakeEnd> {
  if (head.kind !== 'final') {
    response.destroy();
    return misread(head);
  }
  const { status } = head;
  // A body that is malformed from its beginning arrives with the head: then the head is no response either.
  await nextTurn();
  if (response.socket.destroyed && !response.complete) return bodyIsCut;
  res.begin(status, responseFields({ status, fields: head.fields, ownFields }));
  res.flushHeaders();
  try {
    await pipeline(response, res);
  } catch {
    return bodyIsCut;
  }
  return { kind: 'forwarded', status };
}

/** Node's client emitted a response where our reader found none, or another one. */
function misread(head: HandshakeHead): HandshakeFailure {
  return failed(head.kind === 'malformed' ? head.cause : 'a response that can be read in two ways');
}

function failed(cause: string): HandshakeFailure {
  return { kind: 'failed', code: 'upstream_failed', cause };
}

const bodyIsCut = failed('the target closed the connection before its response was complete');

function handshakeFailure(error: Error, connected: boolean): HandshakeFailure {
  if (!connected) return unavailable(connectionErrorText(error));
  if (error instanceof HandshakeTimeout) {
    return { kind: 'failed', code: 'upstream_timeout', cause: 'the handshake was not answered' };
  }
  return failed(connectionErrorText(error));
}

function unavailable(cause: string): HandshakeFailure {
  return { kind: 'failed', code: 'upstream_unavailable', cause, retryAfterSeconds: 1 };
}

const draining = unavailable('the gateway drains');

/** Holds no place, so it may take the last one. No key has this id. */
const nobody = '';

/** The client's fault: the key must close one of its WebSockets. */
const keyIsFull: HandshakeFailure = {
  kind: 'failed',
  code: 'too_many_websockets',
  cause: 'the key has as many WebSockets open as it may',
  retryAfterSeconds: 1,
};
