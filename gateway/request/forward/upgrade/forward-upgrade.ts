import type { ClientRequest } from 'node:http';
import type { ProxyServer, ServerOptions } from 'http-proxy-3';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { ForwardOutcome, UpgradeRequest } from '../forward-types.ts';
import { requestHead } from '../request-head.ts';
import type { Upstreams } from '../upstream/upstreams.ts';
import {
  awaitAnswer,
  type Chosen,
  type HandshakeEnd,
  type HandshakeFailure,
  unavailable,
} from './handshake.ts';
import { Tunnels } from './tunnels.ts';

/** Options of http-proxy-3 with a callback. The callback receives the library's request to the target before it is sent. */
interface HandshakeOptions extends ServerOptions {
  readonly onHandshake?: (handshake: ClientRequest) => void;
}

/**
 * Forwards WebSockets. The library http-proxy-3 sends the handshake with Node's HTTP client. The gateway replaces the library's listeners
 * for the target's response, because they write the response head to the client unchecked. A handshake is not retried, because http-proxy-3
 * binds the client's socket to the first attempt.
 */
export function createUpgrades({
  proxy,
  bounds,
  upstreams,
  atTurnEnd,
}: {
  readonly proxy: ProxyServer;
  readonly bounds: Bounds;
  readonly upstreams: Upstreams;
  readonly atTurnEnd: AtTurnEnd;
}): { readonly tunnels: Tunnels; forward(request: UpgradeRequest): Promise<ForwardOutcome> } {
  const tunnels = new Tunnels(bounds, atTurnEnd);

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
    const attemptStartedMs = performance.now();
    const end = await shakeHands(request, choice);
    const endedMs = performance.now();
    request.onAttemptEnd?.({
      target: target.address,
      startedMs: attemptStartedMs,
      endedMs,
      status: end.kind === 'forwarded' ? end.status : 0,
      cause: end.kind === 'failed' ? end.cause : end.kind === 'client_gone' ? clientGone : undefined,
      error: end.kind === 'failed' ? end.code : undefined,
    });
    const use = { target: target.address, upstreamMs: endedMs - startedMs, attempts: 1 };
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
    const hasFreePlace = upstream.targets.chooseForTunnel(noHolder) !== undefined;
    return hasFreePlace ? keyIsFull : unavailable('no target has room for another WebSocket');
  }

  async function shakeHands(request: UpgradeRequest, chosen: Chosen): Promise<HandshakeEnd> {
    const { req, socket, head } = request;
    let handshake: ClientRequest | undefined;
    const options: HandshakeOptions = {
      target: chosen.target.url,
      // http-proxy-3 modifies these options, so it gets a copy.
      ssl: chosen.target.tls && { ...chosen.target.tls },
      onHandshake: (made) => {
        handshake = made;
        fillIn(made, request, chosen.upstream.host ?? request.host);
      },
    };
    const { timeout = 0 } = req.socket;
    try {
      proxy.ws(req, socket, head, options);
    } catch (bug) {
      // The handshake must not be sent, because it still has the client's own header fields. `destroy` may emit an error.
      handshake?.on('error', () => {}).destroy();
      throw bug;
    } finally {
      // http-proxy-3 disables the write timeout of the client's socket. Every response except 101 needs the write timeout.
      req.socket.setTimeout(timeout);
    }
    // http-proxy-3 destroys the client's socket unless the request is a GET with `Upgrade: websocket`.
    if (handshake === undefined) return { kind: 'client_gone' };
    return awaitAnswer(handshake, {
      request,
      chosen,
      isDraining: () => tunnels.isDraining(),
      onSwitch: (targetSocket) => tunnels.open(req.socket, targetSocket, request),
    });
  }

  return { forward, tunnels };
}

/** Gives a handshake the header fields and the path of a forwarded request, and removes the fields that http-proxy-3 has set. */
function fillIn(
  handshake: ClientRequest,
  { req, target, requestFields, keepForwarded, attemptFields }: UpgradeRequest,
  host: string,
): void {
  const { rawHeaders } = req;
  const replaced = attemptFields?.replaced;
  const { fields: common } = requestHead({ rawHeaders, requestFields, keepForwarded, host, replaced });
  const fields = [...common, ...(attemptFields?.fieldsOf(1) ?? [])];
  for (const name of handshake.getHeaderNames()) handshake.removeHeader(name);
  for (let i = 0; i < fields.length; i += 2) handshake.appendHeader(fields[i] ?? '', fields[i + 1] ?? '');
  handshake.setHeader('Connection', 'Upgrade');
  handshake.setHeader('Upgrade', 'websocket');
  handshake.path = target;
}

const clientGone = 'the client closed the connection';

const draining = unavailable('the gateway drains');

/** An id that belongs to no key. `choose` uses this id to check whether any target has room for a WebSocket of another key. */
const noHolder = '';

/** The failure when the key has too many open WebSockets. The client must close another WebSocket first. */
const keyIsFull: HandshakeFailure = {
  kind: 'failed',
  code: 'too_many_websockets',
  cause: 'the key has reached its limit of open WebSockets',
  retryAfterSeconds: 1,
};
