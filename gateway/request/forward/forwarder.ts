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

export type Forwarder = ReturnType<typeof createForwarder>;

type ForwarderOptions = Omit<UpstreamDeps, 'random' | 'resolve'> &
  Partial<Pick<UpstreamDeps, 'random' | 'resolve'>> & { readonly upstreams: readonly Upstream[] };

/** The options of http-proxy-3, and the gateway's own handler of the request. */
interface RelayOptions extends ServerOptions {
  readonly relay?: RequestRelay;
}

/**
 * Creates the proxy from http-proxy-3 and the HTTP client in `transport/`. The library http-proxy-3 runs a pipeline of steps ("passes").
 * The gateway's pass runs first and ends the pipeline. The library's own passes use node:http's client, which needs twice the CPU time. The
 * library's pass `deleteLength` also permits request smuggling with a chunked DELETE.
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

  // http-proxy-3 requires a target, so it gets a placeholder. The real target is chosen at each attempt to forward the request. The option
  // `toProxy` keeps the raw path.
  const proxy = new ProxyServer({ target: new URL('http://upstream.invalid'), toProxy: true });
  proxy.before('web', 'deleteLength', (_req, _res, options: RelayOptions) => {
    options.relay?.start();
    return true;
  });
  // http-proxy-3 throws its errors unless there is a listener. Each exchange handles its own errors.
  proxy.on('error', (error) => log.debug({ err: error }, 'http-proxy-3'));

  const upgrades = createUpgrades({ proxy, bounds, upstreams, atTurnEnd });
  let sweep = startSweep();

  function startSweep(): NodeJS.Timeout {
    // If the process was paused for long, the timer fires before Node reads pending data. `setImmediate` lets Node read the pending data
    // first.
    const check = () => setImmediate(checkDeadlines, performance.now());
    return setInterval(check, upstreams.sweepIntervalMs()).unref();
  }

  /** Ends requests that exceed their timeouts. One timer for all requests is cheaper than a timer for each request. */
  function checkDeadlines(nowMs: number): void {
    for (const relay of context.inFlight.items()) relay.checkDeadlines(nowMs);
  }

  return {
    /** Forwards a request and its response. Failures are outcomes. The promise rejects only when the gateway has a bug. */
    forward: (request: ForwardRequest) =>
      new Promise<ForwardOutcome>((resolve, reject) => {
        const options: RelayOptions = { relay: new RequestRelay(context, request, { resolve, reject }) };
        proxy.web(request.req, request.res, options);
      }),
    /** Forwards a WebSocket handshake. Resolves when the handshake has succeeded or failed. */
    forwardUpgrade: upgrades.forward,
    /**
     * The first step of a graceful stop: closes WebSockets gently and refuses new WebSockets. Requests that are not WebSocket handshakes
     * are still forwarded.
     */
    drainTunnels: () => upgrades.tunnels.drain(),
    /** The open WebSockets. */
    openTunnels: () => upgrades.tunnels.opened(),
    /** Replaces the upstreams for later requests. Requests in flight finish on the old upstreams. */
    setUpstreams(next: readonly Upstream[]) {
      upstreams.replace(next);
      clearInterval(sweep);
      sweep = startSweep();
    },
    /** Returns the state of each upstream, with the upstream's name as the member's name. */
    state: upstreams.state,
    /** Closes WebSockets immediately. Waits for requests in flight, but ends them after `upstreamCloseTimeoutMs`. */
    async close() {
      clearInterval(sweep);
      upgrades.tunnels.close();
      await upstreams.close();
    },
  };
}
