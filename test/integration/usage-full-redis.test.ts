import { expect, it, onTestFinished } from 'vitest';
import { readiness, startFleetHere } from '../support/fleet.ts';
import { makeKey } from '../support/gateway-process.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** Row 32 of the list of faults. */
it('while Redis is almost full the usage record pauses, which is reported, and every quota is counted', async () => {
  const key = makeKey({ plan: 'enterprise', limits: { perMinute: 1_000_000 } });
  const bounds = {
    ...patientStore,
    metricsKeptMs: 0,
    usageMemoryCheckIntervalMs: 50,
    usageFlushIntervalMs: 100,
    usageSlicesPerFlush: 2,
    healthTimeoutMs: 20_000,
  };
  const fleet = await startFleetHere({ starts: [{ tuning: { bounds } }], config: { keys: [key.entry] } });
  onTestFinished(() => fleet.stop());
  const [gateway] = fleet.gateways;
  if (gateway === undefined) throw new Error('one gateway was started');
  const { inspector } = fleet;
  const send = async () => {
    const headers = { authorization: `Bearer ${key.secret}` };
    return (await fetch(`${gateway.baseUrl}/pets`, { headers })).status;
  };
  const recorded = async () => (await inspector.keys('*:usage:2*')).length;
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await inspector.info('memory'))?.[1]);

  // The test derives `maxmemory` from the used memory, which the key `ballast` raises. The free quarter of `maxmemory` is therefore enough
  // for the clients and scripts of Redis.
  await inspector.setrange('ballast', 20_000_000, 'x');
  await inspector.config('SET', 'maxmemory', String(Math.round((await used()) / 0.75)));
  await until('it pauses', async () => (await readiness(gateway)).body.status === 'degraded');
  const { body } = await readiness(gateway);
  expect(body.reasons).toEqual([
    expect.stringMatching(/the usage record pauses: Redis has used \d+ % of its maxmemory/),
  ]);
  expect(await (await fetch(`${gateway.adminUrl}/metrics`)).text()).toContain('tollgate_usage_recording 0');
  for (let request = 0; request < 200; request++) expect(await send()).toBe(200);
  expect(await inspector.hget(`${fleet.prefix}:{${key.entry.id}}`, 'minuteUsed')).toMatch(/\d+/);
  expect(await recorded()).toBe(0);

  await inspector.config('SET', 'maxmemory', '0');
  await until('it goes on', async () => (await recorded()) > 0);
  expect((await readiness(gateway)).body.status).toBe('ok');
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  expect(metrics).toContain('tollgate_usage_recording 1');
  expect(metrics).toContain('tollgate_usage_lost_requests_total 0');
});
