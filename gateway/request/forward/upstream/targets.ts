import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { TargetSeen } from '../../../fleet/process-state.ts';
import { bareHostname } from '../../../shared/address-group.ts';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import type { TargetEvent, Upstream } from '../../../shared/model.ts';
import { Shares } from '../../../shared/structures/shares.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { ConnectionPool } from '../../transport/connection-pool.ts';
import { createTargetTls, type TargetTls } from '../../transport/target-tls.ts';
import { checkConnection, checkHealth, type Finding, type Health } from './check-health.ts';
import { chooseTarget } from './choose-target.ts';
import { hostAndPort, type ResolveTargets, targetOf } from './resolve-targets.ts';

/** An address of an upstream, with its state. */
export interface Target {
  /** Address and port; IPv6 in brackets. */
  readonly address: string;
  readonly url: URL;
  /** Undefined for cleartext. */
  readonly tls: TargetTls | undefined;
  readonly pool: ConnectionPool;
  /** `healthy` before the first check, so that requests are served from the start. */
  health: Health;
  /** Why it is not healthy. */
  reason: string | undefined;
  /** When it became healthy, or stopped being healthy. */
  since: Instant;
  /** Requests sent or waiting for a connection. */
  inFlight: number;
  /** Places for WebSockets, including their handshakes. */
  readonly tunnelPlaces: Shares;
}

/** One instant on two clocks: epoch ms for people, and `performance.now()`, which never leaps. */
interface Instant {
  readonly epochMs: number;
  readonly monotonicMs: number;
}

export interface LookupFailure {
  readonly reason: string;
  /** ISO 8601, in UTC. */
  readonly sinceAt: string;
}

export type Targets = ReturnType<typeof createTargets>;

/** What all upstreams of a forwarder share. */
export interface UpstreamDeps {
  readonly bounds: Bounds;
  readonly resolve: ResolveTargets;
  readonly random: () => number;
  /** Epoch ms. */
  readonly nowMs: () => number;
  readonly log: Logger;
  /** Called with the logged changes of the health of targets. */
  readonly onEvent?: ((event: TargetEvent) => void) | undefined;
  readonly atTurnEnd: AtTurnEnd;
}

interface TargetsOptions extends UpstreamDeps {
  readonly upstream: Upstream;
  /** The value of `Host` in health checks; undefined for the target's address. */
  readonly host: string | undefined;
  /** The previous addresses of the host name, in use until it is looked up. */
  readonly knownAddresses: readonly string[];
}

interface WatchedTarget extends Target {
  readonly stop: AbortController;
  /** Separate, so that health checks pass even when all connections of `pool` are in use. */
  readonly healthPool: ConnectionPool;
}

/** Keeps the list of an upstream's targets: periodically looks up its host name and checks the health of each address. */
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
}: TargetsOptions) {
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

  /** After a failed lookup the last known addresses stay in use. */
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
    const { stop } = target;
    do {
      let finding = await check(target);
      // A healthy target is checked again at once, because one check may fail while this process is busy.
      if (finding.health !== 'healthy' && target.health === 'healthy') finding = await check(target);
      if (stop.signal.aborted) return;
      // A target that was down and is now silent has not recovered, so it stays down.
      if (finding.health !== 'silent' || target.health !== 'down') setHealth(target, finding);
    } while (await pauseFor(bounds.healthPauseMs, stop.signal));
  }

  function check({ address, url, healthPool: pool }: WatchedTarget): Promise<Finding> {
    const { healthTimeoutMs: timeoutMs } = bounds;
    const { health: path } = upstream;
    return path === undefined
      ? checkConnection({ host: bareHostname(url), port: Number(port), tls, timeoutMs })
      : checkHealth({ pool, host: host ?? address, path, timeoutMs });
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
    /** The first lookup of the host name. Undefined after it, and when addresses are known. */
    get pending() {
      return pending;
    },
    /** Resolves when there is a target for the first time. */
    found: found.promise,
    /** The last known addresses of the host. */
    addresses: () => addresses,
    /** Why the last lookup of the host name failed, and since when lookups fail. Undefined when the last lookup succeeded. */
    lookupFailure: () => lookupFailure,
    /**
     * The target for the next attempt at a request of this holder, if possible another than `avoid`. Undefined when no usable
     * target has room.
     */
    choose: (holder: string, avoid: Target | undefined) =>
      chooseTarget<Target>({
        targets,
        loadOf: ({ inFlight }) => inFlight,
        hasRoom: ({ pool }) => pool.hasRoom(holder),
        avoid,
        random,
      }),
    /** The same for a WebSocket. WebSockets have a limit of their own, so they take no connections from requests. */
    chooseForTunnel: (holder: string) =>
      chooseTarget<Target>({
        targets,
        loadOf: ({ tunnelPlaces }) => tunnelPlaces.taken,
        hasRoom: ({ tunnelPlaces }) => tunnelPlaces.mayTake(holder, 1),
        avoid: undefined,
        random,
      }),
    /** Marks an unreachable target as down until a health check passes. */
    eject: (target: Target, reason: string) => setHealth(target, { health: 'down', reason }),
    state: (): readonly TargetSeen[] =>
      targets.map(({ address, health, since, pool, inFlight, tunnelPlaces, reason }) => ({
        address,
        healthy: health === 'healthy',
        sinceAt: new Date(since.epochMs).toISOString(),
        inFlight,
        full: pool.isFull(),
        tunnels: tunnelPlaces.taken,
        reason,
      })),
    /** Stops lookups and health checks, and closes the connections after the requests in flight. */
    async retire() {
      stop.abort();
      retiring ??= Promise.all(targets.map(retireTarget));
      await retiring;
    },
    /** Closes all connections at once. */
    async destroy() {
      await Promise.all([...pools].map((pool) => pool.destroy()));
    },
  };
}

const changes: Readonly<Record<Health, string>> = {
  healthy: 'target is healthy again',
  silent: 'target is silent and gets no requests while another target is healthy',
  down: 'target is down and gets no requests',
};

/** Waits without keeping the process alive. @returns false when the signal was aborted meanwhile */
function pauseFor(ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(ms, true, { ref: false, signal }).catch(() => false);
}
