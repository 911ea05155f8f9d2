import { randomBytes } from 'node:crypto';
import keySlot from 'cluster-key-slot';
import { expect, it, onTestFinished } from 'vitest';
import { webhooksKeys } from '../../../gateway/capabilities/webhooks/redis-keys.ts';
import { redisKeys } from '../../../gateway/redis/redis-keys.ts';
import type { RedisPlace } from '../../support/connect-redis.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { type GatewayProcess, makeKey, startGateway, testConfig } from '../../support/gateway-process.ts';
import { inspect } from '../../support/inspect.ts';
import { startCluster } from '../../support/start-cluster.ts';
import { startRedis } from '../../support/start-redis.ts';
import { patientGateway } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { type ReceivedEvent, startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts';

/** `GET /report` costs 7 units. A key that has used its hour has reached three thresholds. */
const limits = { perHour: 50, perDay: 55 };
const thresholds = ['day 80', 'hour 80', 'hour 100'];
const api = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: {
    '/pets': { get: { operationId: 'listPets' } },
    '/report': { get: { operationId: 'report', 'x-cost': 7 } },
  },
};
/** Another process soon sends the events that a killed process was about to send. A repeated delivery has the same id. */
const soonTakenOver = {
  webhookSenderMs: 3_000,
  webhookSenderCheckMs: 1_000,
  // A claim lasts longer than a call to the store and an attempt.
  storePatientDeadlineMs: 5_000,
  webhookTimeoutMs: 4_000,
  webhookClaimMs: 10_000,
};
type TestKey = ReturnType<typeof makeKey>;

it('three processes send each threshold of each key once and in order, although one of them is killed', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const inspector = inspect(redis.url);
  onTestFinished(() => inspector.disconnect());
  const keys = Array.from({ length: 8 }, keyOf);
  const { gateways, receiver, marker } = await startAll({ url: redis.url }, keys);
  const [killed, ...others] = gateways;
  const bursts = keys.map((key) => sendBurst(key, gateways));
  await Promise.race(bursts);
  await killed?.stop('SIGKILL');
  await Promise.all(bursts);
  await expectEachOnce({
    receiver,
    marker,
    keys,
    gateways: others,
    readTold: (name) => inspector.hget(name, 'told'),
  });
});

it('three processes send each threshold of a group once, beside the threshold of the plan in the same window', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const inspector = inspect(redis.url);
  onTestFinished(() => inspector.disconnect());
  const groups = { reports: { operations: ['listPets'], perDay: 10 } };
  const keys = [1, 2, 3].map(() => makeKey({ plan: 'enterprise', limits: { perDay: 12 }, groups }));
  const { gateways, receiver, marker } = await startAll({ url: redis.url }, keys);
  const sendFromAll = async (key: TestKey) => {
    await Promise.all(gateways.map((gateway) => send(gateway, key, '/pets')));
  };
  for (let round = 0; round < 6; round++) await Promise.all(keys.map(sendFromAll));
  await until('the thresholds of each key are confirmed', async () => {
    await Promise.all(keys.map(sendFromAll));
    const marks = await Promise.all(keys.map((key) => inspector.hget(countsOf(key), 'told')));
    return marks.every(
      (mark) => /\breports:day \d+ 100\b/.test(mark ?? '') && /(^| )day \d+ 80\b/.test(mark ?? ''),
    );
  });
  for (let round = 0; round < 3; round++) await Promise.all(keys.map(sendFromAll));
  await send(gateways[0], marker, '/pets');
  const each = ['day 80', 'reports-day 100', 'reports-day 80'];
  await until('the last event arrives', () => idsOf(receiver).size >= keys.length * each.length + 2);
  expect(idsOf(receiver).size).toBe(keys.length * each.length + 2);
  for (const key of keys) expect(reachedBy(receiver, key).toSorted()).toEqual(each);
  const [first] = receiver.received.filter(({ data }) => data.group === 'reports' && data.percent === 100);
  expect(first?.data).toMatchObject({ window: 'day', used: 10, limit: 10 });
});

it('on a Cluster whose queue of webhooks is unreachable, a process that is killed loses no threshold', {
  tags: 'full',
}, async () => {
  const cluster = await startCluster({ hasReplicas: false });
  onTestFinished(() => cluster.stop());
  const ownerOf = (name: string) => cluster.ownerOf(keySlot(name));
  const ofQueue = ownerOf(webhooksKeys.deliveries.name('test'));
  const keys = Array.from({ length: 30 }, keyOf).filter((key) => ownerOf(countsOf(key)) !== ofQueue);
  const { gateways, receiver, marker } = await startAll({ cluster: cluster.urls }, keys);
  const [killed, ...others] = gateways;
  if (killed === undefined) throw new Error('three gateways were started');
  ofQueue.server.freeze();
  try {
    await Promise.all(keys.map((key) => sendBurst(key, [killed])));
    await killed.stop('SIGKILL');
  } finally {
    ofQueue.server.thaw();
  }
  expect(receiver.received).toEqual([]);
  const readTold = (name: string) => ownerOf(name).inspector.hget(name, 'told');
  await expectEachOnce({ receiver, marker, keys, gateways: others, readTold });
});

/** A key whose limits per hour and day have thresholds. */
function keyOf(): TestKey {
  return makeKey({ plan: 'enterprise', limits });
}

async function startAll(place: RedisPlace, keys: readonly TestKey[]) {
  const marker = makeKey({ plan: 'enterprise', limits: { perHour: 1 } });
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const receiver = await startWebhookReceiver(secret);
  onTestFinished(() => receiver.close());
  const config = testConfig({
    upstream: { url: 'http://127.0.0.1:1' },
    api: 'openapi.yaml',
    keys: [...keys, marker].map(({ entry }) => entry),
    redis: { ...place, prefix: 'test', onFailure: 'local' },
    notify: [{ url: receiver.url, secretFile: 'hook', events: ['quota.threshold'] }],
  });
  const tuning = { windowsMs: freshWindows(Date.now()), bounds: { ...patientGateway, ...soonTakenOver } };
  const start = { tuning, files: { hook: secret, 'openapi.yaml': api } };
  const gateways = await Promise.all([1, 2, 3].map(() => startGateway(config, start)));
  onTestFinished(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
  });
  return { gateways, receiver, marker };
}

/** Sends more requests than the limits of a key allow, of both costs, to all gateways at the same time. */
async function sendBurst(key: TestKey, gateways: readonly GatewayProcess[]): Promise<void> {
  const paths = Array.from({ length: 24 }, (_, at) => (at % 4 === 0 ? '/report' : '/pets'));
  await Promise.all(paths.map((path, at) => send(gateways[at % gateways.length], key, path)));
}

/** A killed gateway does not respond. */
async function send(gateway: GatewayProcess | undefined, { secret }: TestKey, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`${gateway?.baseUrl}${path}`, { headers }).catch(() => undefined);
  await response?.arrayBuffer().catch(() => undefined);
}

/**
 * Checks that the receiver gets each threshold of each key once. The next requests of a key report what a killed process could not report.
 */
async function expectEachOnce({
  receiver,
  marker,
  keys,
  gateways,
  readTold,
}: {
  receiver: WebhookReceiver;
  marker: TestKey;
  keys: readonly TestKey[];
  gateways: readonly GatewayProcess[];
  readTold: (name: string) => Promise<string | null>;
}): Promise<void> {
  await until('the thresholds of each key are confirmed', async () => {
    for (const key of keys) await Promise.all(gateways.map((gateway) => send(gateway, key, '/pets')));
    const told = await Promise.all(keys.map((key) => readTold(countsOf(key))));
    return told.every((marks) => /\bhour \d+ 100\b/.test(marks ?? '') && /\bday \d+ 80\b/.test(marks ?? ''));
  });
  await send(gateways[0], marker, '/pets');
  const all = [...keys.flatMap(() => thresholds), ...['hour 80', 'hour 100']];
  await until('the last event arrives', () => idsOf(receiver).size >= all.length);
  expect(idsOf(receiver).size).toBe(all.length);
  // The percentages of a window are in their order. Two windows may reach a percentage with the same request.
  const inOrder = (key: TestKey) =>
    reachedBy(receiver, key).toSorted((one, other) => one.slice(0, 3).localeCompare(other.slice(0, 3)));
  for (const key of keys) expect(inOrder(key)).toEqual(thresholds);
  expect(receiver.refused).toEqual([]);
}

/** The Redis key with the counts of a key. */
function countsOf({ entry }: TestKey): string {
  return redisKeys.quota.name('test', entry.id);
}

function idsOf({ received }: WebhookReceiver): ReadonlySet<string> {
  return new Set(received.map(({ id }) => id));
}

/** The thresholds of a key in the order of their first delivery. A repeated delivery has the id of the first delivery. */
function reachedBy({ received }: WebhookReceiver, { entry }: TestKey): string[] {
  const ofKey = received.filter(({ data }) => data.key === entry.id);
  const events = new Map<string, ReceivedEvent>();
  for (const event of ofKey) if (!events.has(event.id)) events.set(event.id, event);
  return [...events.values()].map(
    ({ data }) => `${data.group === undefined ? '' : `${data.group}-`}${data.window} ${data.percent}`,
  );
}
