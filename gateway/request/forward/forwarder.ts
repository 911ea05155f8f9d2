import { ProxyServer, type ServerOptions } from 'http-proxy-3';
import type { Upstream } from '../../shared/model.ts';
import { Shares } from '../../shared/structures/shares.ts';
import type { ForwardOutcome, ForwardRequest } from './forward-types.ts';
import { type RelayContext, RequestRelay } from './request-relay.ts';
import { UnorderedList } from './unordered-list.ts';
import { createUpgrades } from './upgrade/forward-upgrade.ts';
import { resolveTargets } from './upstream/resolve-targets.ts';
import type { UpstreamDeps } from './upstream/targets.ts';
import { createUpstreams } from './upstream/upstreams.ts';

export type { ForwardOutcome, ForwardRequest, OpenTunnel, UpgradeRequest } from './forward-types.ts';

export type Forwarder = ReturnType<typeof createForwarder>;

type ForwarderOptions = Omit<UpstreamDeps, 'random' | 'resolve'> &
  Partial<Pick<UpstreamDeps, 'random' | 'resolve'>> & { readonly upstreams: readonly Upstream[] };

/** Carries a relay through http-proxy-3 to the gateway's pass. */
interface RelayOptions extends ServerOptions {
  readonly relay?: RequestRelay;
}

/**
 * http-proxy-3 as the proxy, on top of `transport/`. A pass of the gateway runs first and ends the pipeline of http-proxy-3. The
 * library's own passes use node:http's client, which takes twice the CPU, and `deleteLength` turns a chunked DELETE into a smuggled
 * second request.
 */
export function createForwarder({ upstreams: firstUpstreams, ...options }: ForwarderOptions) {
  const deps: UpstreamDeps = { random: Math.random, resolve: resolveTargets, ...options };
  const { bounds, log, atTurnEnd, nowMs, random } = deps;
  const upstreams = createUpstreams(firstUpstreams, deps);

  const context: RelayContext = {
    nowMs,
    random,
    upstreams,
    inFlight: new UnorderedList(),
    collected: new Shares(bounds.collectedBodiesBytesMax),
    atTurnEnd,
  };

  // http-proxy-3 requires a target. The real target is chosen for each attempt. `toProxy` keeps the raw path.
  const proxy = new ProxyServer({ target: new URL('http://upstream.invalid'), toProxy: true });
  proxy.before('web', 'deleteLength', (_req, _res, options: RelayOptions) => {
    options.relay?.start();
    return true;
  });
  // Without a listener http-proxy-3 throws its errors. Each exchange handles its own errors.
  proxy.on('error', (error) => log.debug({ err: error }, 'http-proxy-3'));

  const upgrades = createUpgrades({ proxy, bounds, upstreams, atTurnEnd });
  let sweep = startSweep();

  function startSweep(): NodeJS.Timeout {
    // Waits one more turn, as in `connection-pool.ts`.
    const check = () => setImmediate(checkDeadlines, performance.now());
    return setInterval(check, upstreams.sweepIntervalMs()).unref();
  }

  /** One timer for all requests is cheaper than a timer for each. */
  function checkDeadlines(nowMs: number): void {
    for (const relay of context.inFlight.items()) relay.checkDeadlines(nowMs);
  }

  return {
    /** Sends a request to a target and the response to the client. Rejects only with a bug. A failure is an outcome. */
    forward: (request: ForwardRequest) =>
      new Promise<ForwardOutcome>((resolve, reject) => {
        const options: RelayOptions = { relay: new RequestRelay(context, request, { resolve, reject }) };
        proxy.web(request.req, request.res, options);
      }),
    /** The same for a WebSocket handshake. Resolves when the target has answered it with 101 or with another status. */
    forwardUpgrade: upgrades.forward,
    /** The first step of a drain: closes WebSockets gently and refuses new ones. Requests are forwarded as before. */
    drainTunnels: () => upgrades.tunnels.drain(),
    /** The open WebSockets. */
    openTunnels: () => upgrades.tunnels.opened(),
    /** Sends later requests to these upstreams. Requests in flight finish on the old upstreams, which are then closed. */
    setUpstreams(next: readonly Upstream[]) {
      upstreams.replace(next);
      clearInterval(sweep);
      sweep = startSweep();
    },
    /** By the name of the upstream. */
    state: upstreams.state,
    /** Closes WebSockets at once, and requests in flight after `upstreamCloseTimeoutMs`. */
    async close() {
      clearInterval(sweep);
      upgrades.tunnels.close();
      await upstreams.close();
    },
  };
}
