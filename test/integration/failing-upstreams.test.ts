import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startWebhookReceiver, type WebhookReceiver } from '../capabilities/webhooks/webhook-receiver.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type Fleet, startFleetHere } from '../support/fleet.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeCustomKey, type RunningGateway } from '../support/gateway-process.ts';
import {
  okResponse,
  type Reaction,
  type RecordingBackend,
  reset,
  startRecordingBackend,
} from '../support/recording-backend.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const { token, entry } = makeToken();
const key = makeCustomKey(1_000_000, 1_000_000);
const hookSecret = `whsec_${randomBytes(32).toString('base64')}`;
const tuning = {
  bounds: {
    ...patientGateway,
    // A "minute" of three seconds.
    failuresShownMs: 3_000,
    failingHoldMaxMs: 3_000,
    failingElsewhereReadMs: 500,
    presenceIntervalMs: 250,
  },
};

const ordersOnly = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: { '/orders': { get: { operationId: 'listOrders', 'x-upstream': 'orders' } } },
};

const well: Reaction = (_request, socket) => socket.write(okResponse('{}'));
const failing: Reaction = (_request, socket) => socket.write(okResponse('{}', 500));
const resetting: Reaction = (_request, socket) => reset(socket);

let fleet: Fleet<RunningGateway>;
let store: RecordingBackend;
let orders: RecordingBackend;
let receiver: WebhookReceiver;
let config: Record<string, unknown>;
/** The paths to which the test sends requests all the time, to both gateways. */
let paths: readonly string[] = ['/pets', '/orders'];
let isOver = false;
let traffic: Promise<unknown>;

beforeAll(async () => {
  [store, orders, receiver] = await Promise.all([
    startRecordingBackend(),
    startRecordingBackend(),
    startWebhookReceiver(hookSecret),
  ]);
  const operation = (operationId: string, upstream: string) => ({
    get: { operationId, 'x-upstream': upstream },
  });
  config = {
    upstream: undefined,
    upstreams: { store: { url: store.url }, orders: { url: orders.url, failing: { share: '20 %' } } },
    api: 'openapi.yaml',
    keys: [key.entry],
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
    notify: [{ url: receiver.url, secretFile: 'hook', events: ['upstream.failing', 'upstream.well'] }],
  };
  const paths = { '/pets': operation('listPets', 'store'), '/orders': operation('listOrders', 'orders') };
  fleet = await startFleetHere({
    starts: [{ tuning }, { tuning }],
    files: {
      hook: hookSecret,
      'openapi.yaml': { openapi: '3.1.0', info: { title: 'Test', version: '1.0.0' }, paths },
    },
    config,
  });
  traffic = Promise.all(fleet.gateways.map(keepSending));
});
afterAll(async () => {
  isOver = true;
  await traffic;
  await fleet.stop();
  await Promise.all([store.close(), orders.close(), receiver.close()]);
});

async function keepSending({ baseUrl }: RunningGateway): Promise<void> {
  const headers = { authorization: `Bearer ${key.secret}` };
  while (!isOver) {
    for (const path of paths) await fetch(`${baseUrl}${path}`, { headers }).then((one) => one.arrayBuffer());
    await sleep(20);
  }
}

function ask(path: string, gateway = fleet.gateways[0]) {
  if (gateway === undefined) throw new Error('two gateways were started');
  return askAdmin(Number(new URL(gateway.adminUrl).port), `/api/v1${path}`, { token });
}

interface Event {
  readonly kind: string;
  readonly upstream: string;
  readonly text: string;
  readonly at: string;
  readonly beganAt?: string;
}

async function events(): Promise<readonly Event[]> {
  return (await ask('/events?kind=upstream_failing')).body.events;
}

const hooks = () =>
  receiver.received.map(({ type, data }) => `${type} ${data.upstream} ${data.ended ?? ''}`.trim());

async function faults(): Promise<readonly string[]> {
  return (await ask('/state')).body.verdict.faults.map((fault: { text: string }) => fault.text);
}

it('a burst of 500 is one event with beginning and end, two webhooks, and a fault in the meantime, over two gateways', async () => {
  store.react = failing;
  await until('the store fails', async () => (await events()).length > 0);
  expect((await events()).map(({ kind, upstream }) => [kind, upstream])).toEqual([
    ['upstream_failing', 'store'],
  ]);
  await until('the state names it', async () => (await faults()).length > 0);
  expect((await faults()).join()).toMatch(
    /^\d+ % of the requests to the upstream store failed in the last minute \(\d+ × 5xx or cut off\)\.$/,
  );
  const { upstreams } = (await ask('/upstreams')).body;
  expect(upstreams).toMatchObject([
    { name: 'store', failing: { share: '1 %', failures: 5 }, failingSinceAt: expect.any(String) },
    { name: 'orders', failing: { share: '20 %', failures: 5 }, lastMinute: { failed: 0 } },
  ]);
  expect(upstreams[1]).not.toHaveProperty('failingSinceAt');
  await sleep(1_000);
  store.react = well;
  await until('the store is well', async () => (await events())[0]?.kind === 'upstream_well');
  const [over, ...others] = await events();
  expect(others).toEqual([]);
  expect(over?.text).toMatch(
    /^Upstream store is well again\. It had failed for [\d.]+ s, at worst \d+ % of its requests in a minute\.$/,
  );
  expect(String(over?.beganAt) < String(over?.at)).toBe(true);
  await until('both webhooks arrive', () => hooks().length >= 2);
  await until('no fault is left', async () => (await faults()).length === 0);
  await sleep(1_000);
  expect(hooks()).toEqual(['upstream.failing store', 'upstream.well store recovered']);
});

it('an upstream that flaps stays failing, also if it cuts connections in between', async () => {
  const before = hooks().length;
  for (let time = 0; time < 8; time++) {
    orders.react = time % 2 === 0 ? failing : resetting;
    await sleep(600);
    orders.react = well;
    await sleep(600);
  }
  await until('orders is well', () => hooks().at(-1) === 'upstream.well orders recovered');
  expect(hooks().slice(before)).toEqual(['upstream.failing orders', 'upstream.well orders recovered']);
});

it('an upstream that gets no more requests is not said to have recovered', async () => {
  const before = hooks().length;
  store.react = failing;
  await until('the store fails', () => hooks().length > before);
  paths = ['/orders'];
  await until('the outage ends', () => hooks().length > before + 1);
  expect(hooks().slice(before)).toEqual(['upstream.failing store', 'upstream.well store quiet']);
  expect((await events())[0]?.text).toMatch(
    /^Upstream store has had no request for a minute, so nothing shows/,
  );
  store.react = well;
  paths = ['/pets', '/orders'];
});

it('a gateway that starts during an outage reports no second one', async () => {
  const before = hooks().length;
  orders.react = failing;
  await until('orders fails', () => hooks().length > before);
  const redis = { url: fleet.redis.url, prefix: fleet.prefix };
  const files = { hook: hookSecret, 'openapi.yaml': ordersOnly };
  const late = await startGatewayHere({ ...fleet.config, redis }, { tuning, files });
  const lateTraffic = keepSending(late);
  const isSeen = async () => (await ask('/upstreams', late)).body.upstreams[1].failingSinceAt !== undefined;
  await until('the new gateway knows it', isSeen);
  await sleep(1_000);
  expect(hooks().slice(before)).toEqual(['upstream.failing orders']);
  orders.react = well;
  await until('the outage ends', () => hooks().length > before + 1);
  await sleep(1_000);
  expect(hooks().slice(before)).toEqual(['upstream.failing orders', 'upstream.well orders recovered']);
  isOver = true;
  await Promise.all([traffic, lateTraffic]);
  await late.stop();
  isOver = false;
  traffic = Promise.all(fleet.gateways.map(keepSending));
});

it('an upstream that a reload removes while it fails is said to be removed, and an edit of the bounds applies at once', async () => {
  const before = hooks().length;
  orders.react = failing;
  await until('orders fails', () => hooks().length > before);
  paths = ['/pets'];
  await fleet.editConfig({
    upstreams: { store: { url: store.url, failing: { share: '100 %', failures: 1_000_000 } } },
    api: undefined,
  });
  await until('the outage ends', () => hooks().length > before + 1);
  expect(hooks().slice(before)).toEqual(['upstream.failing orders', 'upstream.well orders removed']);
  const found = (await ask('/upstreams')).body.upstreams;
  expect(found).toMatchObject([{ name: 'store', failing: { share: '100 %', failures: 1_000_000 } }]);
  store.react = failing;
  await sleep(2_000);
  expect(hooks()).toHaveLength(before + 2);
});

it('an outage of the only gateway ends after a restart of this gateway', async () => {
  const before = hooks().length;
  const redis = { url: fleet.redis.url, prefix: 'alone' };
  const alone = { ...fleet.config, redis };
  const files = { hook: hookSecret, 'openapi.yaml': ordersOnly };
  orders.react = failing;
  paths = ['/orders'];
  const first = await startGatewayHere(alone, { tuning, files });
  isOver = true;
  await traffic;
  isOver = false;
  traffic = keepSending(first);
  await until('orders fails', () => hooks().length > before);
  isOver = true;
  await traffic;
  await first.stop();
  orders.react = well;
  const second = await startGatewayHere(alone, { tuning, files });
  isOver = false;
  traffic = keepSending(second);
  await until('the outage ends', () => hooks().length > before + 1);
  isOver = true;
  await traffic;
  await second.stop();
  expect(hooks().slice(before)).toEqual(['upstream.failing orders', 'upstream.well orders recovered']);
  expect(receiver.received.at(-1)?.data).not.toHaveProperty('failingSeconds');
  expect(receiver.received.at(-1)?.data.text).toMatch(/ is well again\. It had failed since [\d:]+ UTC/);
});
