import { ProxyServer, type ServerOptions } from 'http-proxy-3';
import type { Logger } from 'pino';
import type { AtTurnEnd } from '../../shared/event-loop-batch.ts';
import type { TargetEvent, Upstream } from '../../shared/model.ts';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { ForwardOutcome, ForwardRequest, OpenTunnel, UpgradeRequest } from './forward-types.ts';
import { type RelayContext, RequestRelay } from './request-relay.ts';
import { createUnorderedList } from './unordered-list.ts';
import { createUpgrades } from './upgrade/forward-upgrade.ts';
import { type ResolveTargets, resolveTargets } from './upstream/resolve-targets.ts';
import { createUpstreams, type UpstreamState } from './upstream/upstreams.ts';

export type { ForwardOutcome, ForwardRequest, OpenTunnel, UpgradeRequest } from './forward-types.ts';

export interface Forwarder {
  /** Sends a request to a target and the response to the client. Rejects only with a bug; the outcome tells a failure. */
  forward(request: ForwardRequest): Promise<ForwardOutcome>;
  /** The same for a WebSocket handshake. Resolves when the target answered it: with 101 or, refusing, with another status. */
  forwardUpgrade(request: UpgradeRequest): Promise<ForwardOutcome>;
  /** From now on requests go to these upstreams. Those in flight finish on the old ones, which are then closed. */
  setUpstreams(upstreams: readonly Upstream[]): void;
  /** The first step of a drain: closes WebSockets gently and opens no more. Requests are forwarded as before. */
  drainTunnels(): void;
  /** The WebSockets that are open now. */
  openTunnels(): readonly OpenTunnel[];
  /** By the upstream's name. */
  state(): Readonly<Record<string, UpstreamState>>;
  /** Closes WebSockets at once, requests in flight after `upstreamCloseTimeoutMs`. */
  close(): Promise<void>;
}

interface ForwarderOptions {
  readonly upstreams: readonly Upstream[];
  readonly bounds: Bounds;
  readonly log: Logger;
  /** Hears what is logged of the health of targets. */
  readonly onEvent?: ((event: TargetEvent) => void) | undefined;
  readonly atTurnEnd: AtTurnEnd;
  /** Epoch ms. */
  readonly nowMs: () => number;
  readonly random?: () => number;
  readonly resolve?: ResolveTargets;
}

/** Carries a relay through http-proxy-3 to our pass. */
interface RelayOptions extends ServerOptions {
  readonly relay?: RequestRelay;
}

/**
 * http-proxy-3 as the proxy, with `transport/` under it: a pass of ours runs before http-proxy-3's first one and ends its
 * pipeline. Its own passes use node:http's client, which takes twice the CPU, and its `deleteLength` turns a chunked
 * DELETE into a smuggled second request.
 */
export function createForwarder({
  upstreams: firstUpstreams,
  bounds,
  log,
  onEvent,
  atTurnEnd,
  nowMs,
  random = Math.random,
  resolve = resolveTargets,
}: ForwarderOptions): Forwarder {
  const upstreams = createUpstreams({
    upstreams: firstUpstreams,
    bounds,
    resolve,
    random,
    nowMs,
    log,
    onEvent,
    atTurnEnd,
  });

  const context: RelayContext = {
    nowMs,
    random,
    upstreams,
    inFlight: createUnorderedList(),
    collected: new Shares(bounds.collectedBodiesBytesMax),
    atTurnEnd,
  };

  // http-proxy-3 requires a target here; ours is chosen for each attempt. With `toProxy` it leaves the raw path alone.
  const proxy = new ProxyServer({ target: new URL('http://upstream.invalid'), toProxy: true });
  proxy.before('web', 'deleteLength', (_req, _res, options: RelayOptions) => {
    options.relay?.start();
    return true;
  });
  // Without a listener http-proxy-3 throws its errors. Each exchange learns of its own errors in another way.
  proxy.on('error', (error) => log.debug({ err: error }, 'http-proxy-3'));

  const upgrades = createUpgrades({ proxy, bounds, upstreams, atTurnEnd });
  let sweep = startSweep();

  function startSweep(): NodeJS.Timeout {
    // One turn later, as in `connection-pool.ts`.
    const check = () => setImmediate(checkDeadlines, performance.now());
    return setInterval(check, upstreams.sweepIntervalMs()).unref();
  }

  /** One timer for all requests is cheaper than timers for each. */
  function checkDeadlines(nowMs: number): void {
    for (const relay of context.inFlight.items()) relay.checkDeadlines(nowMs);
  }

  return {
    forward: (request) =>
      new Promise((resolve, reject) => {
        const options: RelayOptions = { relay: new RequestRelay(context, request, { resolve, reject }) };
        proxy.web(request.req, request.res, options);
      }),
    forwardUpgrade: upgrades.forward,
    drainTunnels: upgrades.drain,
    openTunnels: upgrades.open,
    setUpstreams(next) {
      upstreams.replace(next);
      clearInterval(sweep);
      sweep = startSweep();
    },
    state: upstreams.state,
    async close() {
      clearInterval(sweep);
      upgrades.close();
      await upstreams.close();
    },
  };
}
