import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import type { TargetEvent, Upstream } from '../../../shared/model.ts';
import { Shares } from '../../../shared/structures/shares.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { ConnectionPool } from '../../transport/connection-pool.ts';
import { createTargetTls, type TargetTls } from '../../transport/target-tls.ts';
import { checkHealth, type Finding, type Health } from './check-health.ts';
import { chooseTarget } from './choose-target.ts';
import { hostAndPort, type ResolveTargets } from './resolve-targets.ts';

/** One address of an upstream, and what is known of it. */
export interface Target {
  /** Address and port; IPv6 in brackets. */
  readonly address: string;
  readonly url: URL;
  /** Undefined: cleartext. */
  readonly tls: TargetTls | undefined;
  readonly pool: ConnectionPool;
  /** Healthy before the first check, so that requests are served from the start. */
  health: Health;
  /** Why it is not healthy. */
  reason: string | undefined;
  /** Since when it is healthy, or is not. */
  since: Instant;
  /** Requests sent or waiting for a connection. */
  inFlight: number;
  /** Places for WebSockets, their handshakes included. */
  readonly tunnelPlaces: Shares;
}

/** The same instant on both clocks: epoch ms, which people read, and `performance.now()`, which never leaps. */
interface Instant {
  readonly epochMs: number;
  readonly monotonicMs: number;
}

export interface TargetState {
  readonly address: string;
  readonly healthy: boolean;
  /** Since when it is healthy, or is not; ISO 8601, in UTC. */
  readonly sinceAt: string;
  readonly inFlight: number;
  /** Every connection is in use, so that further requests wait. */
  readonly full: boolean;
  readonly tunnels: number;
  /** Why it is not healthy. */
  readonly reason?: string;
}

export interface LookupFailure {
  readonly reason: string;
  /** ISO 8601, in UTC. */
  readonly sinceAt: string;
}

export interface Targets {
  /** Resolves when the host name was looked up for the first time; undefined from then on, and where addresses are known. */
  readonly pending: Promise<void> | undefined;
  /** Resolves when there is a target for the first time. */
  readonly found: Promise<void>;
  /** The host of the upstream's URL, and the addresses that it was last found to have. */
  readonly hostname: string;
  addresses(): readonly string[];
  /** Why the last lookup of the host name failed, and since when lookups fail; undefined when the last one did not. */
  lookupFailure(): LookupFailure | undefined;
  /**
   * The target for the next attempt at this holder's request, other than `avoid` if possible; undefined when no target
   * that is not down has room.
   */
  choose(holder: string, avoid: Target | undefined): Target | undefined;
  /** The same for a WebSocket, which takes no connection from requests: there is a separate limit. */
  chooseForTunnel(holder: string): Target | undefined;
  /** Marks a target to which no connection could be made as down, until a health check passes. */
  eject(target: Target, reason: string): void;
  state(): readonly TargetState[];
  /** Stops lookups and health checks, lets requests in flight finish, then closes the connections. */
  retire(): Promise<void>;
  /** Closes all connections at once. */
  destroy(): Promise<void>;
}

interface TargetsOptions {
  readonly upstream: Upstream;
  /** The value of `Host` in health checks; undefined: the target's address. */
  readonly host: string | undefined;
  /** Addresses that the host name had a moment ago: used until it is looked up. */
  readonly knownAddresses: readonly string[];
  readonly bounds: Bounds;
  readonly resolve: ResolveTargets;
  readonly random: () => number;
  /** Epoch ms. */
  readonly nowMs: () => number;
  readonly log: Logger;
  /** Hears what is logged of the health of targets. */
  readonly onEvent?: ((event: TargetEvent) => void) | undefined;
  readonly atTurnEnd: AtTurnEnd;
}

interface WatchedTarget extends Target {
  readonly stop: AbortController;
  /** Apart from `pool`: health checks get through although every connection there is in use. */
  readonly healthPool: ConnectionPool;
}

/** Keeps the list of an upstream's targets: looks up its host name and checks the health of each address, repeatedly. */
export function createTargets({
  upstream,
  host,
  knownAddresses,
  bounds,
  resolve,
  random,
  nowMs,
  log,
  onEvent,
  atTurnEnd,
}: TargetsOptions): Targets {
  const { protocol, hostname, port } = targetOf(upstream.url);
  const { ca, serverName = hostname, own } = upstream.tls ?? {};
  const tls = protocol === 'https:' ? createTargetTls({ name: serverName, ca, ...own }) : undefined;
  const stop = new AbortController();
  const pools = new Set<ConnectionPool>();
  let targets: readonly WatchedTarget[] = [];
  const found = Promise.withResolvers<void>();
  let addresses: readonly string[] = [];
  let pending: Promise<void> | undefined;
  let lookupFailure: LookupFailure | undefined;
  let retiring: Promise<unknown> | undefined;

  adopt(isIP(hostname) === 0 ? knownAddresses : [hostname]);
  if (isIP(hostname) === 0) void keepLookingUp();

  async function keepLookingUp(): Promise<void> {
    const first = lookUp();
    if (targets.length === 0) pending = first;
    await first;
    pending = undefined;
    while (await pauseFor(bounds.resolveIntervalMs, stop.signal)) await lookUp();
  }

  /** When a lookup fails, the addresses of the last good one are kept. */
  async function lookUp(): Promise<void> {
    try {
      const resolved = await resolve(hostname);
      if (resolved.length === 0) throw new Error('the name has no address');
      if (!stop.signal.aborted) adopt(resolved);
      if (lookupFailure !== undefined) log.info({ hostname }, 'the upstream can be looked up again');
      lookupFailure = undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (lookupFailure === undefined) log.warn({ hostname, reason }, 'the upstream cannot be looked up');
      lookupFailure = { sinceAt: new Date(nowMs()).toISOString(), ...lookupFailure, reason };
    }
  }

  function adopt(next: readonly string[]): void {
    addresses = next;
    const wanted = new Set(next.map((address) => hostAndPort(address, port)));
    const kept = targets.filter(({ address }) => wanted.has(address));
    const known = new Set(kept.map(({ address }) => address));
    const removed = targets.filter((target) => !kept.includes(target));
    const added = [...wanted].filter((address) => !known.has(address)).map(open);
    if (added.length === 0 && removed.length === 0) return;
    targets = [...kept, ...added];
    for (const target of removed) void retireTarget(target);
    log.info({ targets: targets.map(({ address }) => address) }, 'targets of the upstream');
    found.resolve();
  }

  function open(address: string): WatchedTarget {
    const url = new URL(`${protocol}//${address}`);
    const options = { host: bareHostname(url), port: Number(port), tls, atTurnEnd };
    const pool = new ConnectionPool({ ...options, bounds });
    pools.add(pool);
    const target: WatchedTarget = {
      address,
      url,
      tls,
      pool,
      health: 'healthy',
      reason: undefined,
      since: instantNow(),
      inFlight: 0,
      tunnelPlaces: new Shares(bounds.tunnelsPerTargetMax),
      stop: new AbortController(),
      healthPool: new ConnectionPool({ ...options, bounds: { ...bounds, connectionsPerTargetMax: 1 } }),
    };
    void watch(target);
    return target;
  }

  async function watch(target: WatchedTarget): Promise<void> {
    const { address, healthPool: pool, stop } = target;
    const { healthTimeoutMs: timeoutMs } = bounds;
    const check = { pool, host: host ?? address, path: upstream.health, timeoutMs };
    do {
      let finding = await checkHealth(check);
      // A healthy target is checked once more at once: one check may fail because this process was busy.
      if (finding.health !== 'healthy' && target.health === 'healthy') finding = await checkHealth(check);
      if (stop.signal.aborted) return;
      // A target that was down and is silent now has not recovered: it stays down.
      if (finding.health !== 'silent' || target.health !== 'down') setHealth(target, finding);
    } while (await pauseFor(bounds.healthPauseMs, stop.signal));
  }

  function setHealth(target: Target, { health, reason }: Finding): void {
    const before = target.health;
    target.health = health;
    target.reason = reason;
    if (health === before) return;
    const level = health === 'healthy' ? 'info' : 'warn';
    log[level]({ target: target.address, reason }, changes[health]);
    const members = { upstream: upstream.name, target: target.address };
    const now = instantNow();
    const lastedMs = now.monotonicMs - target.since.monotonicMs;
    if (health === 'healthy' || before === 'healthy') target.since = now;
    if (health === 'healthy') onEvent?.({ kind: 'target_healthy', ...members, unhealthyMs: lastedMs });
    else onEvent?.({ kind: 'target_unhealthy', ...members, health, reason });
  }

  function instantNow(): Instant {
    return { epochMs: nowMs(), monotonicMs: performance.now() };
  }

  async function retireTarget(target: WatchedTarget): Promise<void> {
    target.stop.abort();
    await Promise.all([target.healthPool.destroy(), target.pool.close()]);
    pools.delete(target.pool);
  }

  return {
    get pending() {
      return pending;
    },
    found: found.promise,
    hostname,
    addresses: () => addresses,
    lookupFailure: () => lookupFailure,
    choose: (holder, avoid) =>
      chooseTarget<Target>({
        targets,
        loadOf: ({ inFlight }) => inFlight,
        hasRoom: ({ pool }) => pool.hasRoom(holder),
        avoid,
        random,
      }),
    chooseForTunnel: (holder) =>
      chooseTarget<Target>({
        targets,
        loadOf: ({ tunnelPlaces }) => tunnelPlaces.taken,
        hasRoom: ({ tunnelPlaces }) => tunnelPlaces.mayTake(holder, 1),
        avoid: undefined,
        random,
      }),
    eject: (target, reason) => setHealth(target, { health: 'down', reason }),
    state: () =>
      targets.map(({ address, health, since, pool, inFlight, tunnelPlaces, reason }) => ({
        address,
        healthy: health === 'healthy',
        sinceAt: new Date(since.epochMs).toISOString(),
        inFlight,
        full: pool.isFull(),
        tunnels: tunnelPlaces.taken,
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
  healthy: 'target is healthy again',
  silent: 'target is silent and passed over while another is healthy',
  down: 'target is down and gets no requests',
};

function targetOf(url: string): { protocol: string; hostname: string; port: string } {
  const parsed = new URL(url);
  const { protocol } = parsed;
  return {
    protocol,
    hostname: bareHostname(parsed),
    port: parsed.port || (protocol === 'https:' ? '443' : '80'),
  };
}

/** Without the brackets of an IPv6 address. */
function bareHostname({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Waits without keeping the process alive. @returns false when the signal was aborted meanwhile */
function pauseFor(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { ref: false, signal }).catch(() => false);
}
