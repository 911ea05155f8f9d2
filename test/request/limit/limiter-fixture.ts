import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import type { QuotaThreshold } from '../../../gateway/fleet/kinds/key-notices.ts';
import { createLimiter, type Limiter, type LimiterDeps } from '../../../gateway/request/limit/limiter.ts';
import { decideUnits } from '../../../gateway/request/path/decide-units.ts';
import type { WindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import type { BanPolicy, Decision, Key, Limits } from '../../../gateway/shared/model.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { freshPrefix } from '../../support/redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

/**
 * A limiter, its log lines and its events. `decide` is for keys that are never stale; `decideFresh` is for all other keys. By default a
 * request costs 1 unit.
 */
export interface LoggedLimiter extends Omit<Limiter, 'decide'> {
  decide(key: Key, bans: BanPolicy, units?: number): Promise<Decision>;
  decideFresh(key: Key, bans: BanPolicy): ReturnType<Limiter['decide']>;
  /** The limiter itself, without changes. */
  readonly own: Limiter;
  readonly logged: readonly LogLine[];
  /** The thresholds that this limiter has reported. */
  readonly reported: readonly QuotaThreshold[];
}

interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

type Options = {
  url?: string;
  prefix?: string;
  onFailure?: 'local' | 'refuse';
  /** The default is `patientStore`, so that a busy machine does not count as an outage. */
  tuning?: Partial<Bounds>;
  windowsMs?: Partial<WindowsMs>;
  thresholds?: readonly number[];
} & Partial<Pick<LimiterDeps, 'nowMs'>>;

/** A limiter that is closed when the test ends. */
export function openLimiter(options: Options): LoggedLimiter {
  const { url, prefix = freshPrefix(), onFailure = 'local', nowMs = Date.now } = options;
  const { tuning = patientStore, windowsMs = freshWindows(Date.now()), thresholds } = options;
  const logged: LogLine[] = [];
  const reported: QuotaThreshold[] = [];
  const log = pino({ base: null }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const redis = url === undefined ? {} : { redis: { url, prefix, onFailure } };
  const limiter = createLimiter({
    log,
    nowMs,
    planOf: () => 'free',
    onEvent(event) {
      if (event.kind === 'quota_threshold') reported.push(event);
    },
    bounds: tunedBounds({ ...tuning, windowsMs }),
    ...redis,
  });
  onTestFinished(() => limiter.close());
  return {
    ...limiter,
    own: limiter,
    logged,
    reported,
    decideFresh: (key, bans) => limiter.decide(key, { bans, thresholds }, { units: 1 }),
    async decide(key, bans, units = 1) {
      const decision = await limiter.decide(key, { bans, thresholds }, { units });
      if (decision.kind === 'stale') throw new Error('a key without a generation is stale');
      return decision;
    },
  };
}

/** Limiters that share their counts in Redis, like the processes of one gateway. */
export function openLimiters(count: number, url: string, tuning?: Partial<Bounds>) {
  const prefix = freshPrefix();
  const shared = { url, prefix, windowsMs: freshWindows(Date.now()), ...(tuning && { tuning }) };
  return { prefix, limiters: Array.from({ length: count }, () => openLimiter(shared)) };
}

export function keyOf(perMinute: number, perDay: number, id: string = freshPrefix()): Key {
  return { id, plan: 'free', limits: limitsOf({ perMinute, perDay }), disabled: false };
}

/** @param trial the limits of the trial of the key's plan */
export function keyWith(limits: Limits, trial?: Limits, id: string = freshPrefix()): Key {
  return { id, plan: 'free', limits, trial, disabled: false };
}

export const noBans: BanPolicy = { after: 1_000_000, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };

/** Decides the given number of requests in one turn of the event loop. */
export function decideTogether(limiter: LoggedLimiter, key: Key, requests: number, bans = noBans) {
  return Promise.all(Array.from({ length: requests }, () => limiter.decide(key, bans)));
}

/** Decides requests of any costs in one turn of the event loop, as the gateway decides them. Leaves out stale decisions. */
export async function decideCosts(
  limiter: Parameters<typeof decideUnits>[3],
  key: Key,
  costs: readonly number[],
  bans: BanPolicy,
): Promise<readonly Decision[]> {
  const decisions = await Promise.all(costs.map((units) => decideUnits(key, { units }, { bans }, limiter)));
  return decisions.flatMap((decision) => (decision.kind === 'stale' ? [] : [decision]));
}

/** Decides requests one after the other. */
export async function decideInTurn(limiter: LoggedLimiter, key: Key, requests: number, bans = noBans) {
  const decisions: Decision[] = [];
  for (let index = 0; index < requests; index++) decisions.push(await limiter.decide(key, bans));
  return decisions;
}

export function count(decisions: readonly Decision[], kind: Decision['kind']): number {
  return decisions.filter((decision) => decision.kind === kind).length;
}

/** The outcome of a request, as the response names it. @param cost the cost of the request in units */
export function outcomeIn(decision: Decision, cost: number): string {
  const { kind, rateLimit, units } = decision;
  if (kind === 'refused') return rateLimit.inForce.name;
  // The gateway refuses a request with 403 that costs more than a limit. The message names the smallest limit.
  if (kind === 'admitted' && units < cost)
    return rateLimit.windows.reduce((one, other) => (other.limit < one.limit ? other : one)).name;
  return kind;
}

/**
 * Waits until the limiters have detected that Redis is unavailable. The function sends requests, so that the limiters detect the outage
 * immediately.
 */
export async function untilAway(...limiters: readonly LoggedLimiter[]): Promise<void> {
  await until('Redis is away', () => {
    for (const limiter of limiters) void limiter.decide(keyOf(1, 1), noBans);
    return limiters.every((limiter) => !isAvailable(limiter));
  });
}

export async function untilBack(...limiters: readonly LoggedLimiter[]): Promise<void> {
  await until('Redis is back', () => limiters.every(isAvailable));
}

export function expectOneOutage(limiters: readonly LoggedLimiter[]): void {
  const messages = limiters.map(({ logged }) =>
    logged.map(({ msg }) => msg).filter((msg) => msg !== 'Redis is still away, now for another reason'),
  );
  expect(messages).toEqual(limiters.map(() => ['Redis is away', 'Redis is back']));
}

/** The number of requests that Redis has counted for a key on this day. */
export async function dayUsed(redis: Redis, prefix: string, key: Key): Promise<number> {
  return Number(await redis.hget(`${prefix}:{${key.id}}`, 'dayUsed'));
}

function isAvailable(limiter: LoggedLimiter): boolean {
  const state = limiter.state();
  return state.kind === 'redis' && state.available;
}
