import { afterEach, beforeEach, expect, it } from 'vitest';
import { bounds } from '../../gateway/bounds.ts';
import type { Decision, Key } from '../../gateway/model.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { inspect } from '../support/inspect.ts';
import { freshPrefix } from '../support/redis.ts';
import { type RedisServer, startRedis } from '../support/start-redis.ts';
import { startTcpRelay, type TcpRelay } from '../support/tcp-relay.ts';
import { patientStore } from '../support/tuning.ts';
import {
  count,
  decideInTurn,
  decideTogether,
  isStore,
  keyOf,
  messages,
  openLimiter,
  until,
} from './limiter-fixture.ts';

/** Five times what ships, and the delays with it: a busy machine must not pass for a slow Redis. */
Object.assign(bounds, { ...patientStore, storeDeadlineMs: 250 });
const inTime = { toServerMs: 50, toClientMs: 50 };
const late = { toServerMs: 500, toClientMs: 500 };
const atOnce = { toServerMs: 0, toClientMs: 0 };

let server: RedisServer;
let relay: TcpRelay;
let url: string;
beforeEach(async () => {
  server = await startRedis();
  relay = await startTcpRelay(server.port);
  url = `redis://127.0.0.1:${relay.port}`;
});
afterEach(async () => {
  await relay.stop();
  await server.stop();
});

it('a Redis that answers slowly but in time decides everything, exactly', async () => {
  const shared = { url, prefix: freshPrefix(), windowLengths: freshWindows(Date.now()) };
  const processes = [openLimiter(shared), openLimiter(shared)];
  relay.delay(inTime);
  const key = keyOf(40, 1_000);
  const turns = processes.flatMap((limiter) =>
    Array.from({ length: 5 }, async (_, turn) => {
      await new Promise((resolve) => setTimeout(resolve, 20 * turn));
      return decideTogether(limiter, key, 10);
    }),
  );
  const decisions = (await Promise.all(turns)).flat();
  expect(new Set(decisions.map(({ source }) => source))).toEqual(new Set(['shared']));
  expect([count(decisions, 'admitted'), count(decisions, 'refused')]).toEqual([40, 60]);
  expect(processes.flatMap(messages)).toEqual([]);
});

it('while Redis answers too late every request is decided alone; the state is entered and left once, and nothing is charged twice', async () => {
  const shared = { url, prefix: freshPrefix(), windowLengths: freshWindows(Date.now()) };
  const processes = [openLimiter(shared), openLimiter(shared)];
  const roomy = keyOf(1_000_000, 1_000_000);
  const tight = keyOf(1_000_000, 40);
  const admitted = { roomy: 0, tight: 0 };
  const ask = async (requests: number): Promise<Decision[]> => {
    const both = processes.map(async (limiter) => {
      const [free, scarce] = await Promise.all([
        decideTogether(limiter, roomy, requests),
        decideTogether(limiter, tight, requests),
      ]);
      admitted.roomy += count(free, 'admitted');
      admitted.tight += count(scarce, 'admitted');
      return [...free, ...scarce];
    });
    return (await Promise.all(both)).flat();
  };
  await ask(5);
  relay.delay(late);
  // Ten probes long.
  for (let turn = 0; turn < 20; turn++) {
    const decisions = await ask(3);
    expect(new Set(decisions.map(({ source }) => source))).toEqual(new Set(['local']));
    await new Promise((resolve) => setTimeout(resolve, bounds.storeProbeIntervalMs / 2));
  }
  expect(processes.map(messages)).toEqual([['Redis is away'], ['Redis is away']]);
  expect(processes.map(({ logged }) => logged[0]?.reason)).toEqual(
    Array(2).fill('no reply within the deadline'),
  );
  relay.delay(atOnce);
  await until(() => processes.every((limiter) => isStore(limiter, true)));
  await until(async () => (await ask(1)).every(({ source }) => source === 'shared'));
  expect(processes.map(messages)).toEqual(Array(2).fill(['Redis is away', 'Redis is back']));

  // Every call that was late did run, so what Redis counts is what was admitted, to the last request.
  await until(async () => {
    await ask(1);
    const counted = await Promise.all([used(shared.prefix, roomy), used(shared.prefix, tight)]);
    return counted[0] === admitted.roomy && counted[1] === admitted.tight;
  });
  expect(admitted.tight).toBeGreaterThanOrEqual(40);
  expect(admitted.tight).toBeLessThanOrEqual(40 + 2 * 40);
});

it('under `refuse` a Redis that answers too late is a store that is unavailable', async () => {
  const limiter = openLimiter({ url, onFailure: 'refuse' });
  const key = keyOf(100, 100);
  await decideInTurn(limiter, key, 1);
  relay.delay(late);
  const decisions = await decideInTurn(limiter, key, 20);
  expect(count(decisions, 'unavailable')).toBe(20);
  relay.delay(atOnce);
  await until(() => isStore(limiter, true));
  expect((await decideInTurn(limiter, key, 1))[0]).toMatchObject({ kind: 'admitted', source: 'shared' });
});

it('a Redis that is quick alone and too slow under load is tried more rarely with every relapse', async () => {
  const limiter = openLimiter({ url });
  const keys = Array.from({ length: 50 }, () => keyOf(1_000_000, 1_000_000));
  const ask = () => Promise.all(keys.map((key) => decideTogether(limiter, key, 1)));
  const returns = () => limiter.logged.filter(({ msg }) => msg === 'Redis is back');
  await ask();
  // A probe passes at once; what 50 keys ask takes longer than the deadline.
  relay.throttle(50);
  await until(async () => {
    await ask();
    return returns().length === 3;
  });
  const [first = Number.NaN, second, third] = returns().map(({ awayMs }) => Number(awayMs));
  expect(second).toBeGreaterThan(first);
  expect(third).toBeGreaterThan(second ?? Number.NaN);
});

/** Requests that Redis counts of a key. */
async function used(prefix: string, key: Key): Promise<number> {
  const inspector = inspect(server.url);
  try {
    return Number(await inspector.hget(`${prefix}:{${key.id}}`, 'dayUsed'));
  } finally {
    inspector.disconnect();
  }
}
