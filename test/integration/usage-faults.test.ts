import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { offeredOf } from '../../gateway/usage/tally.ts';
import { createUsage } from '../../gateway/usage/usage.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { type Fleet, startFleet, startFleetHere } from '../support/fleet.ts';
import { makeKey, type RunningGateway, startGateway } from '../support/gateway-process.ts';
import { monitorRedis } from '../support/monitor-redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The tests cover row 31 of the list of faults with whole processes. The tests in `usage/` cover lost replies and a frozen Redis. */
const token = makeToken('read');
const admin = { host: '127.0.0.1', port: 0, tokens: [token.entry] };
const flushMs = 1_000;

function tuningOf(usageFlushIntervalMs: number) {
  return {
    bounds: { ...patientStore, usageFlushIntervalMs, usageSlicesPerFlush: 10, fleetFlushReusedMs: 0 },
  };
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

/** Returns the recorded requests of a key that are in Redis. This read makes no process send its counts. */
async function stored({ redis, prefix }: Fleet<RunningGateway>, keyId: string): Promise<number> {
  const bounds = tunedBounds({ ...patientStore, usageFlushIntervalMs: 3_600_000 });
  const place = { url: redis.url };
  const connection = await connectRedis({ prefix, place, bounds });
  const usage = createUsage({ redis: connection, keepDays: 8, minuteMs: 60_000, nowMs: Date.now, bounds });
  const nowMs = Date.now();
  const minutes = await usage.reader.minutes(keyId, { fromMs: nowMs - 600_000, toMs: nowMs });
  await usage.close();
  connection.close();
  return (minutes ?? []).reduce((sum, { tally }) => sum + offeredOf(tally), 0);
}

it('a killed process loses at most the counts of a busy key since the last flush, and fewer than 20 requests of a quiet key', {
  tags: 'full',
}, async () => {
  const [busy, quiet] = [makeKey({ plan: 'business' }), makeKey({ plan: 'business' })];
  const fleet = await start(startFleet, [busy, quiet], 2);
  const [victim, witness] = fleet.gateways;
  if (victim === undefined || witness === undefined) throw new Error('two gateways were started');
  await send(victim, busy.secret, 60);
  await send(victim, quiet.secret, 15);
  await until('the busy key was flushed', async () => (await stored(fleet, busy.entry.id)) > 40);
  await send(victim, busy.secret, 5);
  await victim.stop('SIGKILL');
  const heir = await startGateway(
    { ...fleet.config, redis: { url: fleet.redis.url, prefix: fleet.prefix } },
    { tuning: tuningOf(flushMs) },
  );
  onTestFinished(async () => void (await heir.stop('SIGKILL')));
  // If a batch were sent again, its counts would be doubled within this time.
  await sleep(2 * flushMs);
  for (const gateway of [witness, heir]) {
    expect(await offered(gateway, busy.entry.id)).toBeGreaterThan(40);
    expect(await offered(gateway, busy.entry.id)).toBeLessThanOrEqual(65);
    expect(await offered(gateway, quiet.entry.id)).toBeLessThanOrEqual(15);
  }
  const before = await offered(heir, busy.entry.id);
  await send(heir, busy.secret, 4);
  expect(await offered(heir, busy.entry.id)).toBe(before + 4);
});

it('a flush before a read adds the counts of a quiet key in other processes, and a repeated read does so without waiting', async () => {
  const [first, second] = [makeKey({ plan: 'business' }), makeKey({ plan: 'business' })];
  const fleet = await start(startFleetHere, [first, second], 2, 3_600_000);
  const [one, other] = fleet.gateways;
  if (one === undefined || other === undefined) throw new Error('two gateways were started');
  const adminPort = Number(new URL(other.adminUrl).port);
  const flush = () => askAdmin(adminPort, '/api/v1/flush', { token: token.token, method: 'POST' });
  const ids = () =>
    askAdmin(adminPort, '/api/v1/state', { token: token.token }).then(({ body }) => body.processes.length);
  await until('both processes are listed', async () => (await ids()) === 2);
  await send(one, first.secret, 3);
  expect((await flush()).body).toEqual({ isComplete: true, behind: [] });
  expect(await offered(other, first.entry.id)).toBe(3);
  // The read of a page makes all processes send their counts, and does not wait.
  await send(one, second.secret, 3);
  await until('a repeated read has the counts', async () => (await offered(other, second.entry.id)) === 3);
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

it('a flush makes one call for several keys with requests, and none for other keys', async () => {
  const keys = [1, 2, 3].map(() => makeKey({ plan: 'business' }));
  const idle = makeKey({ plan: 'business' });
  const fleet = await start(startFleetHere, [...keys, idle], 1);
  const [gateway] = fleet.gateways;
  if (gateway === undefined) throw new Error('one gateway was started');
  const calls: string[][] = [];
  const monitor = await monitorRedis(fleet.redis.port, ([command = '', , count = '', ...names]) => {
    if (/^eval/i.test(command) && names[0]?.includes(':usage')) calls.push(names.slice(0, Number(count)));
  });
  onTestFinished(() => monitor.stop());
  for (const { secret } of keys) await send(gateway, secret, 30);
  const isSent = ({ entry }: (typeof keys)[number]) =>
    calls.some((names) => names.some((name) => name.includes(entry.id)));
  await until('each key is sent', () => keys.every(isSent));
  expect(calls.flat().filter((name) => name.includes(idle.entry.id))).toEqual([]);
  await gateway.stop();
});
