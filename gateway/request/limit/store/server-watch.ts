import type { Redis } from 'ioredis';
import { plainReason } from '../../../redis/fault-place.ts';
import type { RedisNode } from '../../../redis/redis-connection.ts';
import { withinDeadline } from '../../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

export type ServerWatch = ReturnType<typeof watchServer>;

type Phase = 'starting' | 'available' | 'away';

/**
 * Creates the circuit breaker of one Redis server. No request waits for the server while the breaker is open. A server counts as
 * unavailable when its connection is lost, or after `bounds.storeFailuresMax` failed calls in a row. A server counts as back when it
 * accepts a probe (a small write) within the deadline. The first probe is sent as soon as ioredis is ready.
 *
 * Each time a server fails again soon after its return, it must pass twice as many probes as before. A server that is slow only under load
 * passes a single probe while it is idle. With a single probe, the state of a slow server would change several times a second. Each change
 * of the state is logged once.
 */
export function watchServer(deps: {
  node: RedisNode;
  /** The Redis key that probes write. `RedisNode.keyHere` derives a key that this server stores. */
  probeKey: string;
  /**
   * The initial state: `starting` while the process waits for its first connection. The initial state is `available` for a Cluster server
   * that the process finds later, because another server has just redirected a command to it.
   */
  phase: 'starting' | 'available';
  nowMs: () => number;
  onAway: (reason: string) => void;
  /**
   * Called when the reason changes while the server is away. For example, a server with a new password first closes the connection, and
   * refuses the old password later. If several reasons alternate, each is reported again after `bounds.storeReasonRepeatMs`.
   */
  onReason: (reason: string) => void;
  /** Called when the server is back, and when it is reached for the first time. */
  onReturn: (outage: { readonly awayMs: number } | undefined) => void;
  /**
   * Reads the Cluster's slots again. Called while the server is unavailable, because another server may have taken over the keys of this
   * server.
   */
  refresh: () => void;
  bounds: Bounds;
}) {
  const { node, probeKey, nowMs, bounds } = deps;
  const { client } = node;
  let phase: Phase = deps.phase;
  let sinceMs = nowMs();
  let reason: string | undefined = phase === 'starting' ? 'not connected yet' : undefined;
  let failuresInARow = 0;
  let probesPassed = 0;
  let probesNeeded = 1;
  let returnedMs = Number.NEGATIVE_INFINITY;
  /** The last error of an attempt to connect. A connection that closes normally has no error. */
  let connectionError: string | undefined;
  let isShakingHands = false;
  /** The reasons that were reported in this outage, oldest first, with the time of the report. */
  const reported = new Map<string, number>();
  let probing = false;

  const startTimer =
    phase === 'starting'
      ? setTimeout(
          () => leave(node.unknownBecause() ?? connectionError ?? 'no answer from Redis'),
          bounds.storeStartTimeoutMs,
        ).unref()
      : undefined;
  let probeTimer = setTimeout(probe, client?.status === 'ready' ? 0 : bounds.storeProbeIntervalMs).unref();

  client?.on('error', noteError);
  client?.on('connect', shakeHands);
  client?.on('ready', shakenHands);
  client?.on('close', loseConnection);

  return {
    name: node.name,
    available: () => phase === 'available',
    succeeded() {
      failuresInARow = 0;
    },
    failed,
    /** The state of the server. `sinceMs` is the time of the last change, epoch ms. */
    state: () => ({ phase, sinceMs, reason: phase === 'away' ? reasonNow() : reason }),
    close() {
      clearTimeout(startTimer);
      clearTimeout(probeTimer);
      client?.off('error', noteError);
      client?.off('connect', shakeHands);
      client?.off('ready', shakenHands);
      client?.off('close', loseConnection);
    },
  };

  /** The newest reason why the server or its address is unknown, or why the server does not work. */
  function reasonNow(): string | undefined {
    return node.unknownBecause() ?? reason;
  }

  function reportReason(): void {
    const why = reasonNow();
    if (phase !== 'away' || why === undefined || why === [...reported.keys()].at(-1)) return;
    if (nowMs() - (reported.get(why) ?? Number.NEGATIVE_INFINITY) < bounds.storeReasonRepeatMs) return;
    noteReported(why);
    deps.onReason(why);
  }

  function noteReported(why: string): void {
    reported.delete(why);
    reported.set(why, nowMs());
    const [oldest = ''] = reported.keys();
    if (reported.size > bounds.storeReasonsMax) reported.delete(oldest);
  }

  function noteError(error: Error): void {
    connectionError = error.message;
  }

  function shakeHands(): void {
    isShakingHands = true;
  }

  function shakenHands(): void {
    connectionError = undefined;
    probe();
  }

  function loseConnection(): void {
    // With a slow Redis, the first handshake may fail and the next handshake may succeed. At the start of this process, a failed handshake
    // therefore counts as an outage only after `startTimer` fires.
    if (phase !== 'starting' || !isShakingHands) leave(connectionError ?? 'connection lost');
    isShakingHands = false;
  }

  function failed(why: string): void {
    failuresInARow += 1;
    if (failuresInARow >= bounds.storeFailuresMax) leave(why);
  }

  function leave(because: string): void {
    const why = plainReason(because);
    probesPassed = 0;
    if (phase === 'away') {
      reason = why;
      reportReason();
      return;
    }
    const isRelapse = nowMs() - returnedMs < bounds.storeRelapseMs;
    probesNeeded = isRelapse ? Math.min(2 * probesNeeded, bounds.storeProbesMax) : 1;
    enter('away', why);
    reported.clear();
    noteReported(why);
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
    if (wasAway) returnedMs = sinceMs;
    deps.onReturn(wasAway ? { awayMs } : undefined);
  }

  function enter(next: 'available' | 'away', why: string | undefined): void {
    phase = next;
    sinceMs = nowMs();
    reason = why;
    clearTimeout(startTimer);
    probeLater();
  }

  /** Sends a probe. The probe is a write, because a full or read-only Redis still replies to PING. */
  function probe(): void {
    probeLater();
    if (phase === 'away') deps.refresh();
    reportReason();
    if (probing || client?.status !== 'ready') return;
    probing = true;
    void withinDeadline(write(client), bounds.storeDeadlineMs, () => 'no reply within the deadline').then(
      (failure) => {
        probing = false;
        if (failure === undefined) passProbe();
        else if (phase === 'available') failed(failure);
        else leave(failure);
      },
    );
  }

  /** Writes the probe. @returns the reason of a failure, or undefined. A redirection to another server is not a failure */
  async function write(client: Redis): Promise<string | undefined> {
    try {
      await client.set(node.keyHere(probeKey), nowMs(), 'PX', bounds.storeHeartbeatIntervalMs);
      return undefined;
    } catch (error) {
      const { message } = error as Error;
      if (!/^(?:MOVED|ASK) /.test(message)) return message;
      deps.refresh();
      return undefined;
    }
  }

  function probeLater(): void {
    clearTimeout(probeTimer);
    const pauseMs = phase === 'available' ? bounds.storeHeartbeatIntervalMs : bounds.storeProbeIntervalMs;
    probeTimer = setTimeout(probe, pauseMs).unref();
  }
}
