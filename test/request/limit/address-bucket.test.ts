import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Limiter } from '../../../gateway/request/limit/limiter.ts';
import { redisUrl } from '../../support/redis.ts';
import { type RedisServer, startRedis } from '../../support/start-redis.ts';
import { openLimiter, openLimiters, untilAway, untilBack } from './limiter-fixture.ts';

async function charge(
  limiter: Pick<Limiter, 'chargeAddress'>,
  address: string,
  times: number,
  perMinute = 3,
) {
  const decisions = [];
  for (let index = 0; index < times; index++) decisions.push(await limiter.chargeAddress(address, perMinute));
  return decisions;
}

describe.each(['redis', 'memory'])('the address bucket on %s', (store) => {
  const open = () => openLimiter(store === 'redis' ? { url: redisUrl() } : {});

  it('admits exactly the limit, and reports the remaining requests and the reset', async () => {
    const limiter = open();
    const decisions = await charge(limiter, '192.0.2.1', 5);
    expect(decisions.map(({ kind, rateLimit }) => [kind, rateLimit.inForce.remaining])).toEqual([
      ['counted', 2],
      ['counted', 1],
      ['counted', 0],
      ['refused', 0],
      ['refused', 0],
    ]);
    for (const { rateLimit, source } of decisions) {
      expect(source === 'memory').toBe(store === 'memory');
      expect(rateLimit.inForce).toMatchObject({ name: 'address', limit: 3, windowSeconds: 60 });
      expect(rateLimit.inForce.resetMs).toBeGreaterThan(rateLimit.nowMs);
      expect(rateLimit.inForce.resetMs).toBeLessThanOrEqual(rateLimit.nowMs + 60_000);
      expect(rateLimit.windows).toEqual([rateLimit.inForce]);
    }
  });

  it('counts each address separately, and the addresses of one IPv6 subscriber together', async () => {
    const limiter = open();
    await charge(limiter, '2001:db8::1', 3);
    expect((await charge(limiter, '2001:db8::2', 1))[0]?.kind).toBe('refused');
    expect((await charge(limiter, '2001:db8:0:1::1', 1))[0]?.kind).toBe('counted');
  });

  it('follows a limit that a reload changed', async () => {
    const limiter = open();
    await charge(limiter, '192.0.2.2', 4, 3);
    expect((await charge(limiter, '192.0.2.2', 1, 10))[0]?.kind).toBe('counted');
  });
});

it('the address bucket in memory drops only the oldest address when there are too many', async () => {
  const rememberedAddressesMax = 1_000;
  const limiter = openLimiter({ tuning: { rememberedAddressesMax } });
  const remaining = async (address: string) =>
    (await limiter.chargeAddress(address, 3)).rateLimit.inForce.remaining;
  const first = '2001:db8::1';
  expect(await remaining(first)).toBe(2);
  for (let index = 1; index < rememberedAddressesMax; index++) {
    await remaining(`2001:db9:${(index >> 8).toString(16)}:${(index & 0xff).toString(16)}::1`);
  }
  expect(await remaining(first)).toBe(1);
  expect(await remaining('192.0.2.5')).toBe(2);
  expect(await remaining(first)).toBe(2);
  expect(await remaining('2001:db9:0:2::1')).toBe(1);
});

it('the address bucket is shared by all processes', async () => {
  const [first, second] = openLimiters(2, redisUrl()).limiters;
  if (first === undefined || second === undefined) throw new Error('two limiters were opened');
  await untilBack(first, second);
  await charge(first, '192.0.2.3', 2);
  const decisions = await charge(second, '192.0.2.3', 2);
  expect(decisions.map(({ kind, source }) => [kind, source])).toEqual([
    ['counted', 'shared'],
    ['refused', 'shared'],
  ]);
});

describe('while Redis is away', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  it('each process counts addresses by itself', async () => {
    const limiter = openLimiter({ url: server.url });
    await untilBack(limiter);
    await charge(limiter, '192.0.2.4', 1);
    await server.kill();
    const decisions = await charge(limiter, '192.0.2.4', 4);
    expect(decisions.map(({ kind }) => kind)).toEqual(['counted', 'counted', 'counted', 'refused']);
    await untilAway(limiter);
    expect((await charge(limiter, '192.0.2.4', 1))[0]).toMatchObject({ kind: 'refused', source: 'local' });
  });
});
