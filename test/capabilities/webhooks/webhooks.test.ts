import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { capabilityWebhookTypes } from '../../../gateway/capabilities/lists/words.js';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { webhookEventTypes } from '../../../gateway/shared/words/event-names.js';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { capabilityCases } from '../../support/capability-cases.ts';
import { type Fleet, readiness, startFleetHere } from '../../support/fleet.ts';
import { makeKey, plans as plansOfTests, type RunningGateway } from '../../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { patientGateway } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { type ReceivedEvent, startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts';

const dayMs = 86_400_000;
const soon = (days: number) => new Date(Date.now() + days * dayMs).toISOString();
const hookSecret = `whsec_${randomBytes(32).toString('base64')}`;
const { token, entry } = makeToken('write', 'alice');
const banned = makeKey({ id: 'banned', plan: 'enterprise', limits: { perMinute: 1 } });
const counted = makeKey({ id: 'counted', plan: 'enterprise', limits: { perMonth: 10 } });
const made = makeKey({ id: 'expiring' });
const ofCapabilities = (await capabilityCases()).flatMap(({ webhookEvents = [] }) => webhookEvents);
const plans = Object.assign({}, plansOfTests, ...ofCapabilities.map((one) => one.plans));
/** The filter of each further receiver, and its events. */
const filters = {
  ofKey: { keys: ['counted'], events: ['quota.threshold', 'key.banned', 'key.created'], at: [50, 80, 100] },
  ofPlan: {
    plans: ['free'],
    events: ['key.created', 'key.rotated', 'key.revoked', 'key.banned', 'plan.changed'],
  },
  ofBoth: { keys: ['banned', 'made'], plans: ['enterprise'], events: ['key.banned', 'key.revoked'] },
  ofOperation: { operations: ['listPets'], events: ['operation.sunset'] },
};
const expiring = {
  ...made,
  entry: { ...made.entry, secrets: made.entry.secrets.map((one) => ({ ...one, expires: soon(10) })) },
};
const keys = [banned, counted, expiring, ...ofCapabilities.map(({ key }) => key)];
/** Everything that no body may contain. */
const secrets = [hookSecret, token, ...keys.map((one) => one.secret)];

const bounds = {
  ...patientGateway,
  eventsMergedWithinMs: 600_000,
  changesMergedWithinMs: 600_000,
  noticeScanIntervalMs: 200,
  failuresShownMs: 3_000,
  ...Object.assign({}, ...ofCapabilities.map((one) => one.bounds)),
};
const api = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: {
    '/pets': {
      get: {
        operationId: 'listPets',
        deprecated: true,
        'x-deprecated-since': soon(-20),
        'x-deprecated-sunset': soon(5),
      },
    },
  },
};

let fleet: Fleet<RunningGateway>;
let backend: RecordingBackend;
let receiver: WebhookReceiver;
let filtered: Record<keyof typeof filters, WebhookReceiver>;
beforeAll(async () => {
  [backend, receiver] = await Promise.all([startRecordingBackend(), startWebhookReceiver(hookSecret)]);
  const start = () => startWebhookReceiver(hookSecret);
  filtered = {
    ofKey: await start(),
    ofPlan: await start(),
    ofBoth: await start(),
    ofOperation: await start(),
  };
  fleet = await startFleetHere({
    relayed: true,
    starts: [{ tuning: { bounds } }, { tuning: { bounds } }],
    files: {
      hook: hookSecret,
      'openapi.yaml': api,
      'keys.yaml': keys.map((one) => one.entry),
    },
    config: {
      upstream: { url: backend.url, health: '/healthz' },
      api: 'openapi.yaml',
      plans,
      keys: { file: 'keys.yaml', directory: true },
      bans: { after: 3, for: '5s' },
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
      notify: [
        { url: receiver.url, secretFile: 'hook', events: [...webhookEventTypes], at: [50, 80, 100] },
        ...Object.entries(filtered).map(([name, { url }]) => ({
          url,
          secretFile: 'hook',
          ...filters[name as keyof typeof filters],
        })),
      ],
    },
  });
  for (const gateway of fleet.gateways) {
    await until('Redis is connected', async () => (await readiness(gateway)).body.status === 'ok');
  }
});
afterAll(async () => {
  await fleet.stop();
  await Promise.all([backend, receiver, ...Object.values(filtered)].map((one) => one.close()));
});

/** Waits until an event of this type arrives whose data pass the test. */
async function arrives(type: string, test: (data: ReceivedEvent['data']) => boolean = () => true) {
  const find = () => receiver.received.find((one) => one.type === type && test(one.data));
  await until(`the event ${type} arrives`, () => find() !== undefined);
  return find()?.data;
}

function member(index: 0 | 1): RunningGateway {
  const gateway = fleet.gateways[index];
  if (gateway === undefined) throw new Error('two gateways were started');
  return gateway;
}

async function change(method: string, path: string, json?: unknown): Promise<void> {
  const port = Number(new URL(member(1).adminUrl).port);
  const { status, text, body } = await askAdmin(port, `/api/v1${path}`, { token, method, json });
  expect(status, text).toBeLessThan(300);
  if (body?.secret !== undefined) secrets.push(body.secret);
}

async function send(gateway: RunningGateway, secret: string): Promise<void> {
  const response = await fetch(`${gateway.baseUrl}/pets`, { headers: { authorization: `Bearer ${secret}` } });
  await response.arrayBuffer();
}

it('a secret that expires in less than 14 days, and an operation with a sunset, are one event each at the first start', async () => {
  expect(await arrives('key.expiring')).toMatchObject({ key: 'expiring', days: 14, hasOther: false });
  expect(await arrives('operation.sunset')).toMatchObject({
    operation: 'listPets',
    days: 7,
    afterSunset: 'gone',
  });
});

it('a key that is created, rotated, revoked and deleted is one event each, in this order', async () => {
  await change('POST', '/keys', { id: 'made', plan: 'free' });
  await change('POST', '/keys/made/secrets', { overlap: '1h' });
  await change('PATCH', '/keys/made', { disabled: true });
  await change('DELETE', '/keys/made');
  await arrives('key.revoked', (data) => data.change === 'delete');
  const ofKey = receiver.received.filter(({ data }) => data.key === 'made');
  expect(ofKey.map(({ type, data }) => [type, data.change, data.by])).toEqual([
    ['key.created', 'create', 'alice'],
    ['key.rotated', 'rotate', 'alice'],
    ['key.revoked', 'revoke', 'alice'],
    ['key.revoked', 'delete', 'alice'],
  ]);
});

for (const { what, type, key, cause, data } of ofCapabilities) {
  it(`${what} is one event, although it happens on both processes or again`, async () => {
    await cause({ request: (index) => send(member(index), key.secret), change });
    expect(await arrives(type)).toMatchObject(data);
  });
}

it('a ban that both processes see is one event, and so is its end', async () => {
  for (let request = 0; request < 8; request++) await send(member(0), banned.secret);
  await send(member(1), banned.secret);
  expect(await arrives('key.banned')).toMatchObject({ key: 'banned', plan: 'enterprise', level: 1 });
  expect(await arrives('key.unbanned')).toMatchObject({ key: 'banned', ended: 'expired' });
});

it('each threshold is one event over both processes, in ascending order', async () => {
  for (let request = 0; request < 10; request++)
    await send(member(request % 2 === 0 ? 0 : 1), counted.secret);
  await arrives('quota.threshold', ({ key, percent }) => key === 'counted' && percent === 100);
  const reached = receiver.received
    .filter(({ type, data }) => type === 'quota.threshold' && data.key === 'counted')
    .map(({ data }) => data);
  expect(reached.map(({ percent }) => percent)).toEqual([50, 80, 100]);
  expect(reached[0]).toMatchObject({ key: 'counted', window: 'month', used: 5, limit: 10, source: 'shared' });
});

it('a target that fails its health check and recovers is one event each', async () => {
  backend.health = 503;
  expect(await arrives('target.down')).toMatchObject({
    upstream: 'default',
    target: `127.0.0.1:${backend.port}`,
  });
  backend.health = 200;
  expect(await arrives('target.up')).toMatchObject({ upstream: 'default' });
});

it('an upstream that answers 500 to both processes is one event, and so is the end of its failures', async () => {
  const { react } = backend;
  backend.react = (_request, socket) => socket.write(okResponse('{}', 500));
  for (let request = 0; request < 12; request++) await send(member(request % 2 === 0 ? 0 : 1), made.secret);
  expect(await arrives('upstream.failing')).toMatchObject({ upstream: 'default' });
  backend.react = react;
  expect(await arrives('upstream.well')).toMatchObject({ upstream: 'default', ended: 'quiet' });
});

it('a reload is one event and names the changed plan, a changed plan is another event, and so is an invalid edit', async () => {
  await fleet.editConfig({ plans: { ...plans, free: { perMinute: 61, perDay: 1_000 } } });
  const reloaded = await arrives('config.reloaded');
  expect(reloaded.edits).toEqual([expect.stringMatching(/^free \d+ → 61 a minute$/)]);
  for (const gateway of fleet.gateways) {
    const versionOf = async () => (await readiness(gateway)).body.config.version;
    await until('the gateway has reloaded', async () => (await versionOf()) === reloaded.after);
  }
  expect(await arrives('plan.changed')).toMatchObject({ plan: 'free', cause: 'reload' });
  await fleet.editConfig({ plans: { ...plans, free: { perMinute: -1 } } });
  expect((await arrives('config.rejected')).problems).toEqual([expect.stringContaining('perMinute')]);
});

it('an outage of Redis is two events, which arrive after the outage', async () => {
  fleet.relay?.switchTo(1);
  fleet.relay?.cut();
  for (const gateway of fleet.gateways) {
    const reasonsOf = async () => (await readiness(gateway)).body.reasons.join();
    await until('Redis is away', async () => (await reasonsOf()).includes('Redis is away'));
  }
  fleet.relay?.switchTo(fleet.redis.port);
  await arrives('store.away');
  await arrives('store.back');
});

it('a receiver with filters gets only the events that match each filter', async () => {
  const wanted: Record<keyof typeof filters, readonly string[]> = {
    ofKey: ['quota.threshold counted', 'quota.threshold counted', 'quota.threshold counted'],
    ofPlan: [
      'key.created made',
      'key.rotated made',
      'key.revoked made',
      'key.revoked made',
      'plan.changed free',
    ],
    ofBoth: ['key.banned banned'],
    ofOperation: ['operation.sunset listPets'],
  };
  const shown = ({ received }: WebhookReceiver) =>
    received.map(({ type, data }) => `${type} ${data.key ?? data.operation ?? data.plan}`).toSorted();
  for (const [name, events] of Object.entries(wanted)) {
    const { [name as keyof typeof filters]: one } = filtered;
    await until('all events arrive', () => one.received.length >= events.length);
    expect(shown(one)).toEqual(events.toSorted());
  }
});

it('each event arrived once, with a right signature, and no body has a secret or the path of the URL', () => {
  expect(receiver.refused).toEqual([]);
  const counts = Map.groupBy(receiver.received, ({ id }) => id);
  expect([...counts.values()].map((same) => same.length).filter((times) => times > 1)).toEqual([]);
  const times = (type: string) => receiver.received.filter((one) => one.type === type).length;
  const others = new Set<string>([
    'key.revoked',
    'quota.threshold',
    'usage.paused',
    'secret.leaked',
    ...capabilityWebhookTypes,
  ]);
  const once = [
    ...webhookEventTypes.filter((type) => !others.has(type)),
    ...ofCapabilities.map(({ type }) => type),
  ];
  expect(Object.fromEntries(once.map((type) => [type, times(type)]))).toEqual(
    Object.fromEntries(once.map((type) => [type, 1])),
  );
  const all = receiver.bodies.join('\n');
  const hidden = [...secrets, ...secrets.map(digestSecret), new URL(receiver.url).pathname];
  expect(hidden.filter((text) => all.includes(text))).toEqual([]);
});
