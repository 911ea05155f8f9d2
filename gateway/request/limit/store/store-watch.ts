import type { Logger } from 'pino';
import { type FaultPlace, reasonWithPlace } from '../../../redis/fault-place.ts';
import type { RedisConnection, RedisNode } from '../../../redis/redis-connection.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type ServerWatch, watchServer } from './server-watch.ts';
import type { StoreHealth } from './store-health.ts';

export interface WatchedState {
  /** Whether every Redis server is available. */
  readonly available: boolean;
  /** The time since which `available` has this value, ISO 8601. */
  readonly since: string;
  /** With the address, and with the setting to check. */
  readonly reason?: string | undefined;
  /** The servers of a Redis Cluster, sorted by name. */
  readonly servers?: readonly (Omit<WatchedState, 'servers'> & { readonly name: string })[];
}

/** The Redis server that an outage affects, for the log and the list of events. `server` is only present in a Redis Cluster. */
interface Change {
  readonly server?: string;
}

/** Creates one circuit breaker per Redis server, so a dead server affects only its own keys. Each change is logged once. */
export function watchStore(deps: {
  redis: RedisConnection;
  /** Returns the Redis key that stores the counts of an API key. */
  nameOf: (keyId: string) => string;
  probeKey: string;
  log: Logger;
  /** Returns the address and the setting that the log line about an outage names. */
  faultPlaceOf: (reason: string) => FaultPlace;
  nowMs: () => number;
  /** `onAway` is called when a server becomes unavailable. `onReturn` is called when a server is back or reached for the first time. */
  onAway: (reason: string, change: Change) => void;
  onReturn: (outage: { readonly awayMs: number } | undefined, change: Change) => void;
  /** Returns counts for the log line at the end of an outage. */
  describeOutage: () => Record<string, number>;
  bounds: Bounds;
}): StoreHealth & { of(key: string): ServerWatch; state(): WatchedState; close(): void } {
  const { redis, nameOf, probeKey, log, nowMs, bounds } = deps;
  const watches = new Map<RedisNode, ServerWatch>();
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  let isStarting = true;
  let reach: ReturnType<StoreHealth['reach']> = 'none';
  const stopListening = redis.on('nodes', follow);
  const [first] = redis.nodes();
  follow();
  // All keys have the same watch if there is only one server.
  const only = first?.name === undefined && first !== undefined ? watches.get(first) : undefined;

  return {
    started,
    reach: () => reach,
    of,
    partOf: (keyId) => only ?? of(nameOf(keyId)),
    divide<Call extends { readonly keyId: string }>(calls: readonly Call[]) {
      if (only !== undefined) return [{ part: only, calls }];
      const parts = Map.groupBy(calls, ({ keyId }) => of(nameOf(keyId)));
      return [...parts].map(([part, itsCalls]) => ({ part, calls: itsCalls }));
    },
    state,
    close() {
      stopListening();
      for (const watch of watches.values()) watch.close();
    },
  };

  function of(key: string): ServerWatch {
    return only ?? watchOf(redis.nodeOf(key));
  }

  function watchOf(node: RedisNode): ServerWatch {
    return watches.get(node) ?? add(node);
  }

  /** Updates the watches after a change of the Cluster. Ends the watches of servers that no longer have keys. */
  function follow(): void {
    const nodes = redis.nodes();
    for (const node of nodes) watchOf(node);
    for (const [node, watch] of watches) {
      if (nodes.includes(node)) continue;
      watch.close();
      watches.delete(node);
      const { phase, sinceMs } = watch.state();
      if (phase === 'away') back(watch, { awayMs: nowMs() - sinceMs });
    }
    update();
  }

  function add(node: RedisNode): ServerWatch {
    const watch = watchServer({
      node,
      probeKey,
      phase: isStarting ? 'starting' : 'available',
      nowMs,
      onAway(reason) {
        update();
        log.warn({ reason, ...deps.faultPlaceOf(reason) }, `${titleOf(watch)} is away`);
        deps.onAway(withPlace(reason, watch), changeOf(watch));
      },
      onReason(reason) {
        const place = deps.faultPlaceOf(reason);
        log.warn({ reason, ...place }, `${titleOf(watch)} is still away, now for another reason`);
      },
      onReturn(outage) {
        update();
        back(watch, outage);
      },
      refresh: redis.refresh,
      bounds,
    });
    watches.set(node, watch);
    return watch;
  }

  /** A server of a Cluster is its own place. */
  function withPlace(reason: string, { name }: Pick<ServerWatch, 'name'>): string {
    const { address, setting } = deps.faultPlaceOf(reason);
    return reasonWithPlace(reason, { address: name ?? address, setting });
  }

  function back(watch: ServerWatch, outage: { readonly awayMs: number } | undefined): void {
    if (outage !== undefined) {
      log.info({ ...outage, ...deps.describeOutage() }, `${titleOf(watch)} is back`);
    }
    deps.onReturn(outage, changeOf(watch));
  }

  function update(): void {
    const phases = [...watches.values()].map((watch) => watch.state().phase);
    const there = phases.filter((phase) => phase === 'available').length;
    reach = there === phases.length ? 'all' : there > 0 ? 'some' : 'none';
    if (!isStarting || phases.includes('starting')) return;
    isStarting = false;
    start();
  }

  function state(): WatchedState {
    const all = [...watches.values()].map((watch) => {
      const { reason, ...own } = watch.state();
      return { name: watch.name, ...own, reason: reason && withPlace(reason, watch) };
    });
    const away = all.filter(({ phase }) => phase !== 'available');
    const [faulty] = away;
    const sinceMs =
      faulty === undefined
        ? Math.max(...all.map((one) => one.sinceMs))
        : Math.min(...away.map((one) => one.sinceMs));
    const reason = faulty?.reason;
    const servers = all.flatMap(({ name, phase, sinceMs, reason }) =>
      name === undefined
        ? []
        : [
            {
              name,
              available: phase === 'available',
              since: new Date(sinceMs).toISOString(),
              reason,
            },
          ],
    );
    return {
      available: faulty === undefined,
      since: new Date(sinceMs).toISOString(),
      reason,
      ...(servers.length > 0 && { servers: servers.sort((a, b) => (a.name < b.name ? -1 : 1)) }),
    };
  }
}

function titleOf({ name }: ServerWatch): string {
  return name === undefined ? 'Redis' : `Redis server ${name}`;
}

function changeOf({ name }: ServerWatch): Change {
  return name === undefined ? {} : { server: name };
}
