import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { AtTurnEnd } from '../../event-loop-batch.ts';
import type { Upstream } from '../../model.ts';
import type { bounds } from '../../timeouts-and-sizes.ts';
import { ConnectionPool } from '../../transport/connection-pool.ts';
import { checkHealth, type Finding, type Health } from './check-health.ts';
import { chooseTarget } from './choose-target.ts';
import { hostAndPort, type ResolveTargets } from './resolve-targets.ts';

export type Bounds = { readonly [Name in keyof typeof bounds]: number };

/** One address of the upstream, and what is known of it. */
export interface Target {
  /** Address and port; IPv6 in brackets. */
  readonly address: string;
  readonly url: URL;
  readonly pool: ConnectionPool;
  /** Well before the first check, so that start-up serves at once. */
  health: Health;
  /** Why it is not well. */
  reason: string | undefined;
  /** Requests sent or waiting for a connection. */
  inFlight: number;
  /** WebSockets, their handshakes included. */
  tunnels: number;
}

export interface TargetState {
  readonly address: string;
  /** Whether it is well. */
  readonly healthy: boolean;
  readonly inFlight: number;
  /** Whether every connection that there may be is taken, so that requests wait. */
  readonly full: boolean;
  readonly tunnels: number;
  /** Why it is not healthy. */
  readonly reason?: string;
}

export interface Targets {
  /** Settles when the first lookup is over; undefined from then on. */
  readonly pending: Promise<void> | undefined;
  /**
   * The target for the next attempt of this holder's request, not `avoid` if there is another; undefined when none that
   * is not gone has room for it.
   */
  choose(holder: string, avoid: Target | undefined): Target | undefined;
  /** The same for a tunnel. Each has room of its own: tunnels take none from requests. */
  chooseForTunnel(): Target | undefined;
  /** Takes a target that could not be connected to out of the choice until a health check passes. */
  eject(target: Target, reason: string): void;
  state(): readonly TargetState[];
  /** Stops looking; requests in flight finish, then connections are closed. */
  retire(): Promise<void>;
  /** Cuts what is left. */
  destroy(): Promise<void>;
}

interface TargetsOptions {
  readonly upstream: Upstream;
  readonly bounds: Bounds;
  readonly resolve: ResolveTargets;
  readonly random: () => number;
  readonly log: Logger;
  readonly atTurnEnd: AtTurnEnd;
}

interface Watched extends Target {
  readonly stop: AbortController;
  /** Of its own: a target whose pool is full of slow requests can still say that it is well. */
  readonly healthPool: ConnectionPool;
}

/** Keeps the targets of one upstream: looks its name up again and again and asks each address for its health. */
export function createTargets({
  upstream,
  bounds,
  resolve,
  random,
  log,
  atTurnEnd,
}: TargetsOptions): Targets {
  const { hostname, port } = targetOf(upstream.url);
  const stop = new AbortController();
  const pools = new Set<ConnectionPool>();
  let targets: readonly Watched[] = [];
  let pending: Promise<void> | undefined;
  let isLost = false;
  let retiring: Promise<unknown> | undefined;

  if (isIP(hostname) !== 0) adopt([hostname]);
  else void keepLookingUp();

  async function keepLookingUp(): Promise<void> {
    pending = lookUp();
    await pending;
    pending = undefined;
    while (await paused(bounds.resolveIntervalMs, stop.signal)) await lookUp();
  }

  /** A lookup that fails keeps the addresses that were good last. */
  async function lookUp(): Promise<void> {
    try {
      const addresses = await resolve(hostname);
      if (addresses.length > 0 && !stop.signal.aborted) adopt(addresses);
      if (isLost) log.info({ hostname }, 'the upstream can be looked up again');
      isLost = false;
    } catch (error) {
      if (!isLost) log.warn({ hostname, reason: String(error) }, 'the upstream cannot be looked up');
      isLost = true;
    }
  }

  function adopt(addresses: readonly string[]): void {
    const wanted = new Set(addresses.map((address) => hostAndPort(address, port)));
    const kept = targets.filter(({ address }) => wanted.has(address));
    const known = new Set(kept.map(({ address }) => address));
    const gone = targets.filter((target) => !kept.includes(target));
    const added = [...wanted].filter((address) => !known.has(address)).map(open);
    if (added.length === 0 && gone.length === 0) return;
    targets = [...kept, ...added];
    for (const target of gone) void retireTarget(target);
    log.info({ targets: targets.map(({ address }) => address) }, 'targets of the upstream');
  }

  function open(address: string): Watched {
    const url = new URL(`http://${address}`);
    const place = { host: bareHostname(url), port: Number(port), atTurnEnd };
    const pool = new ConnectionPool({ ...place, bounds });
    pools.add(pool);
    const target: Watched = {
      address,
      url,
      pool,
      health: 'well',
      reason: undefined,
      inFlight: 0,
      tunnels: 0,
      stop: new AbortController(),
      healthPool: new ConnectionPool({ ...place, bounds: { ...bounds, connectionsPerTargetMax: 1 } }),
    };
    void watch(target);
    return target;
  }

  async function watch(target: Watched): Promise<void> {
    const { address, healthPool: pool, stop } = target;
    const check = { pool, host: address, path: upstream.health, timeoutMs: bounds.healthTimeoutMs };
    do {
      let finding = await checkHealth(check);
      // One late answer is no illness, and may be late because this process was: who was well is asked once more, at once.
      if (finding.health !== 'well' && target.health === 'well') finding = await checkHealth(check);
      if (stop.signal.aborted) return;
      // Silence is no sign that one that was gone is back.
      if (finding.health !== 'silent' || target.health !== 'gone') note(target, finding);
    } while (await paused(bounds.healthPauseMs, stop.signal));
  }

  function note(target: Target, { health, reason }: Finding): void {
    const level = health === 'well' ? 'info' : 'warn';
    if (health !== target.health) log[level]({ target: target.address, reason }, changes[health]);
    target.health = health;
    target.reason = reason;
  }

  async function retireTarget(target: Watched): Promise<void> {
    target.stop.abort();
    await Promise.all([target.healthPool.destroy(), target.pool.close()]);
    pools.delete(target.pool);
  }

  return {
    get pending() {
      return pending;
    },
    choose: (holder, avoid) =>
      chooseTarget<Target>({
        targets,
        load: 'inFlight',
        hasRoom: ({ pool }) => pool.hasRoom(holder),
        avoid,
        random,
      }),
    chooseForTunnel: () =>
      chooseTarget<Target>({
        targets,
        load: 'tunnels',
        hasRoom: ({ tunnels }) => tunnels < bounds.tunnelsPerTargetMax,
        avoid: undefined,
        random,
      }),
    eject: (target, reason) => note(target, { health: 'gone', reason }),
    state: () =>
      targets.map(({ address, health, pool, inFlight, tunnels, reason }) => ({
        address,
        healthy: health === 'well',
        inFlight,
        full: pool.isFull(),
        tunnels,
        ...(reason !== undefined && { reason }),
      })),
    async retire() {
      stop.abort();
      retiring ??= Promise.all(targets.map(retireTarget));
      await retiring;
    },
    async destroy() {
      await Promise.all([...pools].map((pool) => pool.destroy()));
    },
  };
}

const changes: Readonly<Record<Health, string>> = {
  well: 'target is healthy again',
  silent: 'target is silent and passed over while another is healthy',
  gone: 'target is ejected',
};

function targetOf(url: string): { hostname: string; port: string } {
  const parsed = new URL(url);
  return { hostname: bareHostname(parsed), port: parsed.port || '80' };
}

/** Without the brackets of an IPv6 address. */
function bareHostname({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Waits without keeping the process alive; false when it was stopped meanwhile. */
function paused(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { ref: false, signal }).catch(() => false);
}
