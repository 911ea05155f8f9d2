import { readFileSync } from 'node:fs';
import type { Redis, Result } from 'ioredis';

/** How a process takes units of a key from Redis. */
export interface Scheme {
  /** The number of units that one call takes. 0 means that a call takes exactly the units of the waiting requests. */
  readonly size: number;
  /** A call reserves units only if more units than this remain afterwards. */
  readonly guard: number;
  /** How long a process may keep unused units. A lease always ends with its window. */
  readonly kept: number | 'window' | 'turn';
  /** How long after the end of a lease other processes wait for its return; 0 if they do not wait. */
  readonly graceMs: number;
  /** How long the first waiting request waits for more requests; 0 means until the end of the turn. */
  readonly heldMs: number;
}

export interface KeyOfPhase {
  readonly id: string;
  readonly limit: number;
  readonly windowMs: number;
}

export interface Decided {
  readonly kind: 'admitted' | 'refused' | 'banned';
  /** The value that `X-RateLimit-Remaining` would show. */
  readonly remaining: number;
  /** The number of the window that was charged. */
  readonly window: number;
}

interface Lease {
  units: number;
  readonly window: number;
  /** The remaining units of the key in the reply, without the units of any lease. */
  readonly remaining: number;
  /** On the clock `performance.now()`. */
  readonly endsMs: number;
}

const script = readFileSync(new URL('take-units.lua', import.meta.url), 'utf8');

/** Decides the requests of one key in one process with the prototype of leases. Each request costs 1 unit. */
export function createLeaseClient(redis: Redis, scheme: Scheme, key: KeyOfPhase, process: string) {
  redis.defineCommand('takeUnits', { numberOfKeys: 2, lua: script });
  let waiting: ((decided: Decided) => void)[] = [];
  let lease: Lease | undefined;
  let isScheduled = false;
  let calls = 0;
  let expiry: NodeJS.Timeout | undefined;

  return {
    decide(): Promise<Decided> {
      const decided = waiting.length === 0 ? useLease() : undefined;
      if (decided !== undefined) return Promise.resolve(decided);
      const { promise, resolve } = Promise.withResolvers<Decided>();
      waiting.push(resolve);
      schedule(scheme.heldMs);
      return promise;
    },
    /** The unused units of this process that Redis has charged. */
    unused: () => lease?.units ?? 0,
    close: () => clearTimeout(expiry),
  };

  function useLease(): Decided | undefined {
    if (lease === undefined || lease.units === 0 || performance.now() >= lease.endsMs) return undefined;
    lease.units -= 1;
    return { kind: 'admitted', remaining: lease.remaining + lease.units, window: lease.window };
  }

  /** Sends one call for all requests that wait until then. With leases, a process has at most one call under way. */
  function schedule(afterMs: number): void {
    if (isScheduled || (scheme.size > 0 && calls > 0)) return;
    isScheduled = true;
    if (afterMs === 0) setImmediate(send);
    else setTimeout(send, afterMs);
  }

  function send(): void {
    isScheduled = false;
    void call();
  }

  async function call(): Promise<void> {
    const asked = waiting;
    waiting = [];
    const returned = lease;
    lease = undefined;
    clearTimeout(expiry);
    calls += 1;
    const sentMs = performance.now();
    const [nowMs, window, admitted, reserved, remaining, untilMs, waitMs, isBanned] = await redis.takeUnits(
      `leases:{${key.id}}`,
      `leases:{${key.id}}:leases`,
      process,
      asked.length,
      scheme.size,
      scheme.guard,
      returned?.units ?? 0,
      returned?.window ?? 0,
      key.limit,
      key.windowMs,
      typeof scheme.kept === 'number' ? scheme.kept : key.windowMs,
      scheme.graceMs,
    );
    calls -= 1;
    // The script ran after `sentMs`, so the clock of Redis is at most `nowMs + 1` plus the time since then. Used this way, a lease never
    // outlives its window.
    if (reserved > 0) keep({ units: reserved, window, remaining, endsMs: sentMs + untilMs - nowMs - 1 });
    for (const [index, resolve] of asked.slice(0, admitted).entries()) {
      resolve({ kind: 'admitted', remaining: remaining + reserved + admitted - 1 - index, window });
    }
    const others = asked.slice(admitted);
    if (waitMs === 0) {
      const kind = isBanned === 1 ? 'banned' : 'refused';
      for (const resolve of others) resolve({ kind, remaining, window });
    } else waiting = [...others, ...waiting];
    while (waiting.length > 0) {
      const decided = useLease();
      if (decided === undefined) break;
      waiting.shift()?.(decided);
    }
    if (waiting.length > 0) schedule(waitMs || scheme.heldMs);
  }

  function keep(next: Lease): void {
    lease = next;
    if (scheme.kept === 'turn') setImmediate(giveBack);
    else if (scheme.kept !== 'window')
      expiry = setTimeout(giveBack, Math.max(0, next.endsMs - performance.now()));
  }

  function giveBack(): void {
    if (lease !== undefined && lease.units > 0) schedule(0);
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    takeUnits(
      counts: string,
      leases: string,
      process: string,
      ...args: number[]
    ): Result<[number, number, number, number, number, number, number, number], Context>;
  }
}
