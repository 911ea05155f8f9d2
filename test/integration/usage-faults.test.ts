import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type Fleet, startFleet, startFleetHere } from '../support/fleet.ts';
import { makeKey, type RunningGateway, startGateway } from '../support/gateway-process.ts';
import { monitorRedis } from '../support/monitor-redis.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The tests cover row 31 of the list of faults with whole processes. The tests in `usage/` cover lost replies and a frozen Redis. */
const token = makeToken('read');
const admin = { host: '127.0.0.1', port: 0, tokens: [token.entry] };
const flushMs = 1_000;

function tuningOf(usageFlushIntervalMs: number) {
  return { bounds: { ...patientStore, usageFlushIntervalMs, usageSlicesPerFlush: 10 } };
}

async function start(
  startGateways: typeof startFleetHere,
  keys: readonly ReturnType<typeof makeKey>[],
  gateways: number,
  usageFlushIntervalMs = flushMs,
): Promise<Fleet<RunningGateway>> {
  const tuning = tuningOf(usageFlushIntervalMs);
  const starts = Array.from({ length: gateways }, () => ({ tuning }));
  const fleet = await startGateways({ starts, config: { keys: keys.map(({ entry }) => entry), admin } });
  onTestFinished(() => fleet.stop());
  return fleet;
}

async function send({ baseUrl }: RunningGateway, secret: string, times: number): Promise<void> {
  for (let request = 0; request < times; request++) {
    const response = await fetch(`${baseUrl}/pets`, { headers: { authorization: `Bearer ${secret}` } });
    await response.arrayBuffer();
    expect(response.status).toBe(200);
  }
}

async function offered(gateway: RunningGateway, keyId: string): Promise<number> {
  const path = `/api/v1/keys/${keyId}/usage?step=day`;
  const { body } = await askAdmin(Number(new URL(gateway.adminUrl).port), path, { token: token.token });
  const rows = body.rows as readonly { readonly offered: number }[];
  return rows.reduce((sum, row) => sum + row.offered, 0);
}

it('a killed process loses at most its counts since the last flush', {
  tags: 'full',
}, async () => {
  const key = makeKey({ plan: 'business' });
  const fleet = await start(startFleet, [key], 2);
  const [victim, witness] = fleet.gateways;
  if (victim === undefined || witness === undefined) throw new Error('two gateways were started');
  await send(victim, key.secret, 30);
  await until('it is in the store', async () => (await offered(witness, key.entry.id)) === 30);
  await send(victim, key.secret, 5);
  await victim.stop('SIGKILL');
  const heir = await startGateway(
    { ...fleet.config, redis: { url: fleet.redis.url, prefix: fleet.prefix } },
    { tuning: tuningOf(flushMs) },
  );
  onTestFinished(async () => void (await heir.stop('SIGKILL')));
  for (const gateway of [witness, heir]) {
    await until('it has what is in the store', async () => (await offered(gateway, key.entry.id)) >= 30);
  }
  await sleep(2 * flushMs);
  for (const gateway of [witness, heir]) {
    expect(await offered(gateway, key.entry.id)).toBeLessThanOrEqual(35);
  }
  await send(heir, key.secret, 4);
  expect(await offered(heir, key.entry.id)).toBeGreaterThanOrEqual(34);
});

it('a drained process loses no counts, although it has not flushed before', async () => {
  const key = makeKey({ plan: 'business' });
  const { gateways } = await start(startFleetHere, [key], 2, 3_600_000);
  const [drained, other] = gateways;
  if (drained === undefined || other === undefined) throw new Error('two gateways were started');
  await send(drained, key.secret, 30);
  expect(await drained.stop()).toBe(0);
  expect(await offered(other, key.entry.id)).toBe(30);
});

it('a flush makes one call for each key with requests, and none for other keys', async () => {
  const [busy, idle] = [makeKey({ plan: 'business' }), makeKey({ plan: 'business' })];
  const fleet = await start(startFleetHere, [busy, idle], 1);
  const [gateway] = fleet.gateways;
  if (gateway === undefined) throw new Error('one gateway was started');
  const calls: string[] = [];
  const monitor = await monitorRedis(fleet.redis.port, ([command = '', , , name = '']) => {
    if (/^eval/i.test(command) && name.includes(':usage')) calls.push(name);
  });
  onTestFinished(() => monitor.stop());
  const startedMs = performance.now();
  await send(gateway, busy.secret, 200);
  await until('it is in the store', async () => calls.some((name) => name.includes(busy.entry.id)));
  await sleep(flushMs);
  const flushes = Math.ceil((performance.now() - startedMs) / flushMs) + 1;
  const ofKey = calls.filter((name) => name.includes(busy.entry.id));
  expect(ofKey.length).toBeLessThanOrEqual(flushes);
  expect(calls.filter((name) => name.includes('operations')).length).toBeLessThanOrEqual(flushes);
  expect(calls.filter((name) => name.includes(idle.entry.id))).toEqual([]);
});
