import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { withinDeadline } from '../../redis/within-deadline.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';

/** The breaker before Redis. While it is open nobody waits for Redis; a probe that writes finds out when it is back. */
export interface StoreWatch {
  available(): boolean;
  /** Settles at the first contact with Redis, or when there is none within `bounds.storeStartTimeoutMs`. */
  readonly started: Promise<void>;
  succeeded(): void;
  failed(reason: string): void;
  /** `since` is when it became available or went away, ISO 8601. */
  state(): { readonly available: boolean; readonly since: string; readonly reason?: string };
  close(): void;
}

/**
 * Redis counts as away at once when the connection is lost, and after `bounds.storeFailuresMax` failed calls in a row. It
 * counts as back when a probe was written within the deadline; the first probe is sent as soon as ioredis is ready. A
 * Redis that fails again soon after it came back must pass twice as many probes each time: one that is too slow only
 * under load passes a single probe while it is idle, and would come and go several times a second. Each change is logged
 * once.
 */
export function watchStore(deps: {
  client: Redis;
  probeKey: string;
  log: Logger;
  nowMs: () => number;
  /** Called when Redis went away, and when it is back or there for the first time. */
  onAway: (reason: string) => void;
  onReturn: (outage: { readonly awayMs: number } | undefined) => void;
  /** Figures for the log line that says that Redis is back. */
  describeOutage: () => Record<string, number>;
  bounds: Pick<
    Bounds,
    | 'storeDeadlineMs'
    | 'storeStartTimeoutMs'
    | 'storeProbeIntervalMs'
    | 'storeHeartbeatIntervalMs'
    | 'storeFailuresMax'
    | 'storeRelapseMs'
    | 'storeProbesMax'
  >;
}): StoreWatch {
  const { client, probeKey, log, nowMs, bounds } = deps;
  let phase: 'starting' | 'available' | 'away' = 'starting';
  let sinceMs = nowMs();
  let reason: string | undefined = 'not connected yet';
  let failuresInARow = 0;
  let probesPassed = 0;
  let probesNeeded = 1;
  let returnedMs = Number.NEGATIVE_INFINITY;
  let connectionError = 'connection lost';
  let isShakingHands = false;
  let probing = false;

  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const startTimer = setTimeout(() => leave('no answer from Redis'), bounds.storeStartTimeoutMs).unref();
  let probeTimer = setTimeout(probe, bounds.storeProbeIntervalMs).unref();

  client.on('error', (error: Error) => {
    connectionError = error.message;
  });
  client.on('connect', shakeHands);
  client.on('ready', probe);
  client.on('close', loseConnection);

  return {
    available: () => phase === 'available',
    started,
    succeeded() {
      failuresInARow = 0;
    },
    failed,
    state: () => ({
      available: phase === 'available',
      since: new Date(sinceMs).toISOString(),
      ...(reason !== undefined && { reason }),
    }),
    close() {
      clearTimeout(startTimer);
      clearTimeout(probeTimer);
      client.off('connect', shakeHands);
      client.off('ready', probe);
      client.off('close', loseConnection);
    },
  };

  function shakeHands(): void {
    isShakingHands = true;
  }

  function loseConnection(): void {
    // A server that accepted the first connection but was slow in its handshake may manage the next one: while this process
    // starts, that is not an outage until `startTimer` fires.
    if (phase !== 'starting' || !isShakingHands) leave(connectionError);
    isShakingHands = false;
    connectionError = 'connection lost';
  }

  function failed(why: string): void {
    failuresInARow += 1;
    if (failuresInARow >= bounds.storeFailuresMax) leave(why);
  }

  function leave(why: string): void {
    probesPassed = 0;
    if (phase === 'away') {
      reason = why;
      return;
    }
    const isRelapse = nowMs() - returnedMs < bounds.storeRelapseMs;
    probesNeeded = isRelapse ? Math.min(2 * probesNeeded, bounds.storeProbesMax) : 1;
    enter('away', why);
    log.warn({ reason: why }, 'Redis is away');
    deps.onAway(why);
  }

  function passProbe(): void {
    failuresInARow = 0;
    if (phase === 'available') return;
    probesPassed += 1;
    if (probesPassed >= probesNeeded) comeBack();
  }

  function comeBack(): void {
    const awayMs = nowMs() - sinceMs;
    const wasAway = phase === 'away';
    enter('available', undefined);
    if (wasAway) {
      returnedMs = sinceMs;
      log.info({ awayMs, ...deps.describeOutage() }, 'Redis is back');
    }
    deps.onReturn(wasAway ? { awayMs } : undefined);
  }

  function enter(next: 'available' | 'away', why: string | undefined): void {
    phase = next;
    sinceMs = nowMs();
    reason = why;
    clearTimeout(startTimer);
    start();
    probeLater();
  }

  /** Writes, since a Redis that is full or read-only still answers a PING. */
  function probe(): void {
    probeLater();
    if (probing || client.status !== 'ready') return;
    probing = true;
    const written = client.set(probeKey, nowMs(), 'PX', bounds.storeHeartbeatIntervalMs).then(
      () => undefined,
      (error: Error) => error.message,
    );
    void withinDeadline(written, bounds.storeDeadlineMs, () => 'no reply within the deadline').then(
      (failure) => {
        probing = false;
        if (failure === undefined) passProbe();
        else if (phase === 'available') failed(failure);
        else leave(failure);
      },
    );
  }

  function probeLater(): void {
    clearTimeout(probeTimer);
    const pauseMs = phase === 'available' ? bounds.storeHeartbeatIntervalMs : bounds.storeProbeIntervalMs;
    probeTimer = setTimeout(probe, pauseMs).unref();
  }
}
