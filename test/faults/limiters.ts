import { pino } from 'pino';
import { createLimiter, type Limiter } from '../../gateway/request/limit/limiter.ts';
import type { Decision, Key } from '../../gateway/shared/model.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import type { RedisPlace } from '../support/connect-redis.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { limitsOf } from '../support/limits-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { until } from '../support/until.ts';

export const bans = { after: 1_000_000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };

/** A limiter without a gateway, and its log. */
export interface BareLimiter {
  readonly limiter: Limiter;
  readonly logged: readonly string[];
}

/** Limiters on one Redis, one for each simulated process. */
export async function openBareLimiters(
  count: number,
  { place, prefix, bounds }: { place: RedisPlace; prefix: string; bounds: Partial<Bounds> },
): Promise<readonly BareLimiter[]> {
  const windowsMs = freshWindows(Date.now());
  const all = Array.from({ length: count }, () => {
    const logged: string[] = [];
    const limiter = createLimiter({
      redis: { ...place, prefix, onFailure: 'local' },
      log: pino({ base: null }, { write: (line: string) => void logged.push(JSON.parse(line).msg) }),
      nowMs: Date.now,
      planOf: () => 'free',
      bounds: tunedBounds({ ...bounds, windowsMs }),
    });
    return { limiter, logged };
  });
  await until('every limiter is connected to Redis', () => all.every(({ limiter }) => isWhole(limiter)));
  return all;
}

export function isWhole(limiter: Limiter): boolean {
  const state = limiter.state();
  return state.kind === 'redis' && state.available;
}

export function keyNamed(id: string, perDay: number): Key {
  return { id, plan: 'free', limits: limitsOf({ perMinute: 1_000_000, perDay }), disabled: false };
}

/** Decides several requests in one turn of the event loop. */
export async function decideAtOnce(
  limiter: Limiter,
  key: Key,
  requests: number,
): Promise<readonly Decision[]> {
  const decisions = await Promise.all(
    Array.from({ length: requests }, () => limiter.decide(key, { bans }, { units: 1 })),
  );
  return decisions.flatMap((decision) => (decision.kind === 'stale' ? [] : [decision]));
}

export function admittedOf(decisions: readonly Decision[]): number {
  return decisions.filter(({ kind }) => kind === 'admitted').length;
}
