import { expect, it } from 'vitest';
import { type Fault, measureOutage } from '../faults/outage.ts';
import { readiness, startFleetHere } from '../support/fleet.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey, testConfig } from '../support/gateway-process.ts';
import { startRedis } from '../support/start-redis.ts';
import { startStoreHere } from '../support/store-process.ts';
import { patientStore, steadyStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const faults: readonly Fault[] = [
  ...(['killed', 'failed over', 'failed over by Sentinel'] as const),
  ...(['frozen', 'slow', 'full', 'read-only'] as const),
];

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

for (const fault of faults)
  it(`while Redis is ${fault} no request waits or gets a 5xx, the outage is reported, and afterwards the limit is shared with local counts written back`, {
    tags: fault === 'killed' ? [] : ['full'],
  }, async () => {
    // The gateway needs no timeout to detect a fault if connections or commands fail immediately.
    const bounds = fault === 'frozen' || fault === 'slow' ? steadyStore : patientStore;
    const found = await measureOutage(fault, {
      holdMs: 0,
      bounds: { ...bounds, healthTimeoutMs: 20_000 },
      start: startFleetHere,
    });
    expect(found.failures).toEqual([]);
    expect(Object.keys(found.local)).toEqual(['200']);
    expect(Object.keys(found.refusing)).toEqual(['200', '503']);
    expect(found.badRefusals).toBe(0);
    expect(found.decidedLocally).toBeGreaterThan(0);

    expect(found.readyWhileAway).toMatchObject({ local: 200, refusing: 503 });
    expect(found.readyWhileAway.reasons.join()).toContain('Redis is away');
    expect(found.entered).toEqual([1, 1, 1]);
    expect(found.left).toEqual([1, 1, 1]);

    const survived = fault === 'killed' ? 0 : found.admittedBefore;
    expect(found.admittedAway).toBeLessThanOrEqual(2 * found.limit);
    expect(found.dayUsedAfter).toBe(survived + found.admittedAway);
    expect(found.admittedAfter).toBe(found.restAfter);
    expect(found.keysWithoutExpiry).toEqual([]);
  });

it('a gateway that starts while Redis is away serves at once, reports it, and shares its limits as soon as Redis is back', async () => {
  const [redis, store] = await Promise.all([startRedis(), startStoreHere()]);
  await redis.kill();
  const key = makeKey();
  const gateway = await startGatewayHere(
    testConfig({
      redis: { url: redis.url, prefix: 'test' },
      upstream: { url: store.url, health: '/healthz' },
      keys: [key.entry],
    }),
  );
  const get = () => fetch(`${gateway.baseUrl}/pets`, { headers: { Authorization: `Bearer ${key.secret}` } });
  const sourceOf = async (response: Response) => {
    const id = response.headers.get('x-request-id');
    return (await gateway.line(({ requestId }) => requestId === id)).source;
  };
  try {
    const alone = await get();
    expect(alone.status).toBe(200);
    expect(await sourceOf(alone)).toBe('local');
    const { body, text } = await readiness(gateway);
    expect(body).toMatchObject({
      status: 'degraded',
      config: { loadedAt: expect.stringMatching(instant) },
      store: { available: false, since: expect.stringMatching(instant) },
    });
    expect(text).not.toMatch(/"\w*Ms":|\d{13}/);

    await redis.restart();
    await gateway.line(({ msg }) => msg === 'Redis is back');
    await until('a decision is shared', async () => {
      const shared = await get();
      expect(shared.status).toBe(200);
      return (await sourceOf(shared)) === 'shared';
    });
    await expect.poll(async () => (await readiness(gateway)).body.status).toBe('ok');
  } finally {
    await gateway.stop('SIGKILL');
    await Promise.all([redis.stop(), store.stop()]);
  }
});
