import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
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
const tuning = {
  bounds: {
    ...patientGateway,
    // A "minute" of three seconds. The reports of one outage are closer to each other than two outages.
    failuresShownMs: 3_000,
    failingHoldMaxMs: 3_000,
    failingElsewhereReadMs: 500,
    eventsMergedWithinMs: 2_000,
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
/** The paths to which the test sends requests all the time, to both gateways. */
let paths: readonly string[] = ['/pets', '/orders'];
let isOver = false;
let traffic: Promise<unknown>;

beforeAll(async () => {
  [store, orders] = await Promise.all([startRecordingBackend(), startRecordingBackend()]);
  const operation = (operationId: string, upstream: string) => ({
    get: { operationId, 'x-upstream': upstream },
  });
  const config = {
    upstream: undefined,
    upstreams: { store: { url: store.url }, orders: { url: orders.url, failing: { share: '20 %' } } },
    api: 'openapi.yaml',
    keys: [key.entry],
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
  };
  const paths = { '/pets': operation('listPets', 'store'), '/orders': operation('listOrders', 'orders') };
  fleet = await startFleetHere({
    starts: [{ tuning }, { tuning }],
    files: {
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
  await Promise.all([store.close(), orders.close()]);
});

async function keepSending({ baseUrl }: RunningGateway): Promise<void> {
  const headers = { authorization: `Bearer ${key.secret}` };
  while (!isOver) {
    for (const path of paths) await fetch(`${baseUrl}${path}`, { headers }).then((one) => one.arrayBuffer());
    await sleep(20);
  }
}

async function stopTraffic(other?: Promise<unknown>): Promise<void> {
  isOver = true;
  await Promise.all([traffic, other]);
  isOver = false;
}

function ask(path: string, gateway = fleet.gateways[0]) {
  if (gateway === undefined) throw new Error('two gateways were started');
  return askAdmin(Number(new URL(gateway.adminUrl).port), `/api/v1${path}`, { token });
}

interface Event {
  readonly kind: string;
  readonly upstream: string;
  readonly text: string;
  readonly endedAt?: string;
  readonly at: string;
  readonly beganAt?: string;
}

/** The outages of the upstreams, the oldest first. A gateway lists the events of an outage as one event. */
async function outages(gateway = fleet.gateways[0]): Promise<readonly Event[]> {
  return (await ask('/events?kind=upstream_failing', gateway)).body.events.toReversed();
}

async function kinds(gateway?: RunningGateway): Promise<readonly string[]> {
  return (await outages(gateway)).map(({ kind, upstream }) => `${kind} ${upstream}`);
}

/** Waits until this is the kind of the newest outage, which is the only outage after the first `before`. */
async function newest(kind: string, before: number, gateway?: RunningGateway): Promise<Event> {
  const isListed = async () => (await kinds(gateway)).slice(before).includes(kind);
  await until(`${kind} is listed`, isListed);
  const found = (await outages(gateway)).slice(before);
  expect(found.map((one) => `${one.kind} ${one.upstream}`)).toEqual([kind]);
  const [only] = found;
  if (only === undefined) throw new Error(`no ${kind}`);
  return only;
}

/** The list shows an outage that begins again within `eventsMergedWithinMs` as one, so the next outage must begin later. */
async function countSoFar(): Promise<number> {
  await sleep(tuning.bounds.eventsMergedWithinMs + 500);
  return (await outages()).length;
}

async function faults(): Promise<readonly string[]> {
  return (await ask('/state')).body.verdict.faults.map((fault: { text: string }) => fault.text);
}

it('a burst of 500 is one event with its beginning and end, and a fault in the meantime, over two gateways', async () => {
  store.react = failing;
  await newest('upstream_failing store', 0);
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
  store.react = well;
  const { text, at, beganAt = '', endedAt = '' } = await newest('upstream_well store', 0);
  expect(text).toMatch(
    / Its requests failed from about [\d:]+ UTC to about [\d:]+ UTC, for [\d.]+ s, at worst \d+ % of its requests in a minute\.$/,
  );
  // The chart of requests marks the end of the failures, and not the time of the event.
  expect(beganAt < endedAt && endedAt < at).toBe(true);
  expect(text).toContain(` to about ${endedAt.slice(11, 19)} UTC`);
  await until('no fault is left', async () => (await faults()).length === 0);
  expect(await kinds()).toEqual(['upstream_well store']);
});

it('an upstream that flaps is one outage, also if it cuts connections in between', async () => {
  const before = await countSoFar();
  for (let time = 0; time < 6; time++) {
    orders.react = time % 2 === 0 ? failing : resetting;
    await sleep(500);
    orders.react = well;
    await sleep(500);
  }
  await newest('upstream_well orders', before);
});

it('an upstream that gets no more requests is not said to have recovered', async () => {
  const before = await countSoFar();
  store.react = failing;
  await newest('upstream_failing store', before);
  paths = ['/orders'];
  const { text } = await newest('upstream_well store', before);
  expect(text).toMatch(
    /^Upstream store has had no request for a minute, so nothing shows whether it is well\./,
  );
  store.react = well;
  paths = ['/pets', '/orders'];
});

it('a gateway that starts during an outage takes part in it', async () => {
  const before = await countSoFar();
  orders.react = failing;
  await newest('upstream_failing orders', before);
  const redis = { url: fleet.redis.url, prefix: fleet.prefix };
  const files = { 'openapi.yaml': ordersOnly };
  const late = await startGatewayHere({ ...fleet.config, redis }, { tuning, files });
  const lateTraffic = keepSending(late);
  const isSeen = async () => (await ask('/upstreams', late)).body.upstreams[1].failingSinceAt !== undefined;
  await until('the new gateway knows it', isSeen);
  await newest('upstream_failing orders', before);
  orders.react = well;
  await newest('upstream_well orders', before, late);
  await stopTraffic(lateTraffic);
  await late.stop();
  traffic = Promise.all(fleet.gateways.map(keepSending));
});

it('an upstream that a reload removes while it fails is said to be removed, and an edit of the bounds applies at once', async () => {
  const before = await countSoFar();
  orders.react = failing;
  await newest('upstream_failing orders', before);
  await fleet.editConfig({
    upstreams: { store: { url: store.url, failing: { share: '100 %', failures: 1_000_000 } } },
    api: undefined,
  });
  // The requests for orders go on until no gateway has the upstream: an outage without requests would end for another reason.
  const isRemoved = async (gateway: RunningGateway) =>
    (await ask('/settings', gateway)).body.upstreams.every(({ name }: { name: string }) => name !== 'orders');
  await until('no gateway has the upstream', async () =>
    (await Promise.all(fleet.gateways.map(isRemoved))).every(Boolean),
  );
  paths = ['/pets'];
  const { text } = await newest('upstream_well orders', before);
  expect(text).toMatch(/^Upstream orders was removed from the configuration\. It had failed since /);
  store.react = failing;
  const failed = async () => (await ask('/upstreams')).body.upstreams[0].lastMinute.failed;
  await until('requests fail', async () => (await failed()) > 20);
  expect((await ask('/upstreams')).body.upstreams).toMatchObject([
    { name: 'store', failing: { share: '100 %', failures: 1_000_000 } },
  ]);
  expect((await ask('/upstreams')).body.upstreams[0]).not.toHaveProperty('failingSinceAt');
  expect(await countSoFar()).toBe(before + 1);
});

it('an outage of the only gateway ends after a restart of this gateway', async () => {
  await stopTraffic();
  const redis = { url: fleet.redis.url, prefix: 'alone' };
  const alone = { ...fleet.config, redis };
  const files = { 'openapi.yaml': ordersOnly };
  orders.react = failing;
  paths = ['/orders'];
  const first = await startGatewayHere(alone, { tuning, files });
  traffic = keepSending(first);
  await newest('upstream_failing orders', 0, first);
  await stopTraffic();
  await first.stop();
  orders.react = well;
  const second = await startGatewayHere(alone, { tuning, files });
  traffic = keepSending(second);
  const { text } = await newest('upstream_well orders', 0, second);
  expect(text).toMatch(/ It had failed since [\d:]+ UTC\.$/);
  await stopTraffic();
  await second.stop();
});

it('a gateway without Redis has the same events', async () => {
  orders.react = failing;
  const gateway = await startGatewayHere(fleet.config, { tuning, files: { 'openapi.yaml': ordersOnly } });
  traffic = keepSending(gateway);
  await newest('upstream_failing orders', 0, gateway);
  orders.react = well;
  await newest('upstream_well orders', 0, gateway);
  await stopTraffic();
  await gateway.stop();
});
