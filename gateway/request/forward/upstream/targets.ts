import { isIP } from 'node:net';
import type { Logger } from 'pino';
import type { TargetEvent } from '../../../fleet/kinds/targets.ts';
import type { TargetSeen } from '../../../fleet/process-state.ts';
import { bareHostname } from '../../../shared/addresses/address-group.ts';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import type { Upstream } from '../../../shared/model.ts';
import { Shares } from '../../../shared/structures/shares.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { ConnectionPool } from '../../transport/connection-pool.ts';
import { createTargetTls, type TargetTls } from '../../transport/target-tls.ts';
import { checkConnection, checkHealth, type Finding, type Health } from './check-health.ts';
import { chooseTarget } from './choose-target.ts';
import { hostAndPort, type ResolveTargets, targetOf } from './resolve-targets.ts';
import { pauseFor, type SharedChecks, watchHealth } from './watch-health.ts';

/** One address of an upstream, with its connections and its health. */
export interface Target {
  /** Address and port; IPv6 in brackets. */
  readonly address: string;
  readonly url: URL;
  /** The TLS options; undefined for an `http` upstream. */
  readonly tls: TargetTls | undefined;
  readonly pool: ConnectionPool;
  /** The health of the target: `healthy` before the first check, so that requests are served from the start. */
  health: Health;
  /** The reason why the target is not healthy. */
  reason: string | undefined;
  /** When the target last became healthy or stopped being healthy. */
  since: Instant;
  /** The number of unfinished requests to the target, including requests that wait for a connection. */
  inFlight: number;
  /** Set to true when the head of a response arrives. */
  hasResponded: boolean;
  /** Set when a request cannot connect, on the clock of `performance.now()`. */
  unreachableMs: number | undefined;
  /** The target's limit of WebSockets, shared among keys. Handshakes count as WebSockets. */
  readonly tunnelPlaces: Shares;
}

/** One point in time on two clocks: epoch ms for display, and `performance.now()` for durations, because it is monotonic. */
interface Instant {
  readonly epochMs: number;
  readonly monotonicMs: number;
}

interface LookupFailure {
  readonly reason: string;
  /** ISO 8601, in UTC. */
  readonly sinceAt: string;
}

export type Targets = ReturnType<typeof createTargets>;

/** The dependencies that all upstreams of a forwarder share. */
export interface UpstreamDeps {
  readonly bounds: Bounds;
  readonly resolve: ResolveTargets;
  readonly random: () => number;
  /** Epoch ms. */
  readonly nowMs: () => number;
  readonly log: Logger;
  /** Called when the health of a target changes. */
  readonly onEvent?: ((event: TargetEvent) => void) | undefined;
  readonly atTurnEnd: AtTurnEnd;
  /** Undefined without Redis. */
  readonly sharedChecks?: SharedChecks | undefined;
}

interface TargetsOptions extends UpstreamDeps {
  readonly upstream: Upstream;
  /** The value of `Host` in health checks; undefined to send the target's address. */
  readonly host: string | undefined;
  /** The previous addresses of the host name, which are used until the host name is resolved. */
  readonly knownAddresses: readonly string[];
}

interface WatchedTarget extends Target {
  readonly stop: AbortController;
  /** A separate pool. Health checks therefore work even when all connections of `pool` are in use. */
  readonly healthPool: ConnectionPool;
}

/** Maintains an upstream's targets: periodically resolves the host name and checks the health of each address. */
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
  sharedChecks: shared,
}: TargetsOptions) {
  const { protocol, hostname, port } = targetOf(upstream.url);
  const { ca, serverName = hostname, clientCertificate } = upstream.tls ?? {};
  const tls =
    protocol === 'https:' ? createTargetTls({ name: serverName, ca, ...clientCertificate }) : undefined;
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

  /** Resolves the host name once. If the look-up fails, the last known addresses stay in use. */
  async function lookUp(): Promise<void> {
    try {
      const resolved = await resolve(hostname);
      if (resolved.length === 0) throw new Error('the name has no address');
      if (!stop.signal.aborted) adopt(resolved);
      if (lookupFailure !== undefined)
        log.info({ hostname }, 'the host name of the upstream can be looked up again');
      lookupFailure = undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (lookupFailure === undefined)
        log.warn({ hostname, reason }, 'the host name of the upstream cannot be looked up');
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
      hasResponded: false,
      unreachableMs: undefined,
      tunnelPlaces: new Shares(bounds.tunnelsPerTargetMax),
      stop: new AbortController(),
      healthPool: new ConnectionPool({ ...options, bounds: { ...bounds, connectionsPerTargetMax: 1 } }),
    };
    void watchHealth({
      target,
      upstream,
      host,
      check: () => check(target),
      setHealth: (finding) => setHealth(target, finding),
      shared,
      bounds,
      random,
      stop: target.stop.signal,
    });
    return target;
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
    /** Resolves when the first lookup of the host name ends. Undefined after this lookup, or if addresses were already known. */
    get pending() {
      return pending;
    },
    /** Resolves as soon as the first target is known. */
    found: found.promise,
    /** The last known addresses of the host. */
    addresses: () => addresses,
    /** The error of the last lookup, and the time since which all lookups have failed; undefined when the last lookup succeeded. */
    lookupFailure: () => lookupFailure,
    /**
     * Chooses the target for the next attempt of a request of this key. Chooses `avoid` only if there is no other target. Returns
     * undefined when no usable target has room.
     */
    choose: (holder: string, avoid: Target | undefined) =>
      chooseTarget<Target>({
        targets,
        loadOf: ({ inFlight }) => inFlight,
        hasRoom: ({ pool }) => pool.hasRoom(holder),
        avoid,
        random,
      }),
    /** Chooses the target for a WebSocket. WebSockets have a separate limit, so they do not use up the connections for requests. */
    chooseForTunnel: (holder: string) =>
      chooseTarget<Target>({
        targets,
        loadOf: ({ tunnelPlaces }) => tunnelPlaces.taken,
        hasRoom: ({ tunnelPlaces }) => tunnelPlaces.mayTake(holder, 1),
        avoid: undefined,
        random,
      }),
    /** Marks an unreachable target as down until a health check passes. */
    eject(target: Target, reason: string): void {
      target.unreachableMs = performance.now();
      setHealth(target, { health: 'down', reason });
    },
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
    /** Stops lookups and health checks. Closes the connections when the requests in flight are finished. */
    async retire() {
      stop.abort();
      retiring ??= Promise.all(targets.map(retireTarget));
      await retiring;
    },
    /** Closes all connections immediately. */
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
