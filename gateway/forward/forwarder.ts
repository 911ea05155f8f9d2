import { ProxyServer, type ServerOptions } from 'http-proxy-3';
import type { Logger } from 'pino';
import type { AtTurnEnd } from '../event-loop-batch.ts';
import type { Upstream } from '../model.ts';
import { Shares } from '../shares.ts';
import { bounds as defaultBounds } from '../timeouts-and-sizes.ts';
import type { ForwardOutcome, ForwardRequest, UpgradeRequest } from './forward-outcome.ts';
import { Relay, type RelayContext } from './relay.ts';
import { createUpgrades } from './upgrade/forward-upgrade.ts';
import { createInFlight } from './upstream/in-flight.ts';
import { type ResolveTargets, resolveTargets } from './upstream/resolve-targets.ts';
import { createRetryBudget } from './upstream/retry-budget.ts';
import { type Bounds, createTargets, type TargetState, type Targets } from './upstream/targets.ts';

export type { ForwardOutcome, ForwardRequest, UpgradeRequest } from './forward-outcome.ts';

export interface Forwarder {
  /** Has the backend answer the request. Always resolves; what is not answered is the caller's to answer. */
  forward(request: ForwardRequest): Promise<ForwardOutcome>;
  /** Passes a WebSocket handshake on; resolves when the backend switched (`answered`, 101) or answered otherwise. */
  forwardUpgrade(request: UpgradeRequest): Promise<ForwardOutcome>;
  /** From now on requests go to this upstream; those in flight finish on the old one, which is then closed. */
  setUpstream(upstream: Upstream): void;
  /** Ends tunnels gently, the first step of a drain; requests go on. */
  drainTunnels(): void;
  state(): { readonly targets: readonly TargetState[] };
  /** Cuts tunnels, lets requests finish for `upstreamCloseTimeoutMs`, then cuts them too. */
  close(): Promise<void>;
}

interface ForwarderOptions {
  readonly upstream: Upstream;
  readonly log: Logger;
  readonly atTurnEnd: AtTurnEnd;
  /** Epoch ms. */
  readonly nowMs: () => number;
  readonly random?: () => number;
  readonly resolve?: ResolveTargets;
  /** For tests. */
  readonly bounds?: Partial<Bounds>;
}

/** How http-proxy-3 hands a request of ours to our pass. */
interface RelayOptions extends ServerOptions {
  readonly relay?: Relay;
}

/**
 * http-proxy-3 as the proxy, with connections of our own as its transport: a pass of ours stands before its first one
 * and ends the chain. Its own passes go through node:http's client, which costs twice as much, and `deleteLength` turns
 * a chunked DELETE into a smuggled second request.
 */
export function createForwarder({
  upstream: firstUpstream,
  log,
  atTurnEnd,
  nowMs,
  random = Math.random,
  resolve = resolveTargets,
  bounds: overrides,
}: ForwarderOptions): Forwarder {
  const bounds: Bounds = { ...defaultBounds, ...overrides };
  let upstream = firstUpstream;
  let targets = openTargets();
  const retired = new Set<Targets>();

  const context: RelayContext = {
    bounds,
    nowMs,
    random,
    budget: createRetryBudget({
      ratio: bounds.retryBudgetRatio,
      floor: bounds.retryBudgetFloor,
      windowMs: bounds.retryBudgetWindowMs,
    }),
    targets: () => targets,
    inFlight: createInFlight(),
    collected: new Shares(bounds.collectedBodiesBytesMax),
    atTurnEnd,
  };

  // The target is chosen per attempt; http-proxy-3 only wants to see one. `toProxy` keeps the raw path.
  const proxy = new ProxyServer({ target: new URL('http://upstream.invalid'), toProxy: true });
  proxy.before('web', 'deleteLength', (_req, _res, options: RelayOptions) => {
    options.relay?.start();
    return true;
  });
  // http-proxy-3 throws an error that nobody listens for. Each exchange hears of its own errors elsewhere.
  proxy.on('error', (error) => log.debug({ err: error }, 'http-proxy-3'));

  const upgrades = createUpgrades({ proxy, bounds, targets: () => targets });
  // After SIGSTOP or a long pause the timer fires before pending data was read, so the look is one turn later.
  const sweep = setInterval(() => setImmediate(lookAtAll), bounds.sweepIntervalMs);
  sweep.unref();

  function openTargets(): Targets {
    return createTargets({ upstream, bounds, resolve, random, log, atTurnEnd });
  }

  /** One look at all relays now and then instead of timers for each. */
  function lookAtAll(): void {
    const nowMs = performance.now();
    for (const relay of context.inFlight.list()) relay.look(nowMs);
  }

  async function retire(old: Targets): Promise<void> {
    retired.add(old);
    await old.retire();
    retired.delete(old);
  }

  return {
    forward: (request) =>
      new Promise((resolve, reject) => {
        const options: RelayOptions = { relay: new Relay(context, request, { resolve, reject }) };
        proxy.web(request.req, request.res, options);
      }),
    forwardUpgrade: upgrades.forward,
    drainTunnels: upgrades.drain,
    setUpstream(next) {
      if (next.url === upstream.url && next.health === upstream.health) return;
      upstream = next;
      const old = targets;
      targets = openTargets();
      void retire(old);
    },
    state: () => ({ targets: targets.state() }),
    async close() {
      clearInterval(sweep);
      upgrades.close();
      const cut = setTimeout(() => {
        for (const each of [targets, ...retired]) void each.destroy();
      }, bounds.upstreamCloseTimeoutMs);
      await Promise.all([targets, ...retired].map((each) => each.retire()));
      clearTimeout(cut);
    },
  };
}
