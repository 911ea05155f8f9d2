import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { createLimiter, type Limiter, type LimiterDeps } from '../../gateway/limit/limiter.ts';
import type { BanPolicy, Decision, Key } from '../../gateway/model.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { freshPrefix } from '../support/redis.ts';

/** A limiter that is closed when the test ends, and the lines it logged. */
export function openLimiter(
  options: { url?: string; prefix?: string; onFailure?: 'local' | 'refuse' } & Partial<LimiterDeps>,
): Limiter & { readonly logged: readonly LogLine[] } {
  const { url, prefix = freshPrefix(), onFailure = 'local', ...deps } = options;
  const logged: LogLine[] = [];
  const log = pino({ base: null }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const redis = url === undefined ? {} : { redis: { url, prefix, onFailure } };
  const limiter = createLimiter({
    log,
    nowMs: Date.now,
    windowLengths: freshWindows(Date.now()),
    ...redis,
    ...deps,
  });
  onTestFinished(() => limiter.close());
  return { ...limiter, logged };
}

export interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

export function keyOf(perMinute: number, perDay: number, id: string = freshPrefix()): Key {
  return { id, plan: 'free', limits: { perMinute, perDay }, disabled: false };
}

export const noBans: BanPolicy = { after: 1_000_000, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };

/** `requests` requests in one turn of the event loop. */
export function decideTogether(limiter: Limiter, key: Key, requests: number, bans = noBans) {
  return Promise.all(Array.from({ length: requests }, () => limiter.decide(key, bans)));
}

/** Requests that wait for one another. */
export async function decideInTurn(limiter: Limiter, key: Key, requests: number, bans = noBans) {
  const decisions: Decision[] = [];
  for (let index = 0; index < requests; index++) decisions.push(await limiter.decide(key, bans));
  return decisions;
}

export function count(decisions: readonly Decision[], kind: Decision['kind']): number {
  return decisions.filter((decision) => decision.kind === kind).length;
}

/** Whether Redis is thought to be there, or away. */
export function isStore(limiter: Limiter, available: boolean): boolean {
  const state = limiter.state();
  return state.kind === 'redis' && state.available === available;
}

export function messages({ logged }: { readonly logged: readonly LogLine[] }): string[] {
  return logged.map(({ msg }) => msg);
}

/** Asks until `condition` holds. @throws after five seconds */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`never came true: ${condition}`);
}
