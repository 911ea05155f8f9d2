import { once } from 'node:events';
import { createServer, get, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import type { RedisPlace } from '../../support/connect-redis.ts';
import { directoryOf } from '../../support/directory-of.ts';
import { type Fleet, startFleet, startFleetHere } from '../../support/fleet.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { readMetrics } from '../../support/read-metrics.ts';
import { redisForms } from '../../support/redis-forms.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { patientGateway, steadyStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { askForWebSocket } from '../../support/web-socket.ts';

const operations: Readonly<
  Record<
    string,
    { readonly operationId: string; readonly 'x-cost'?: number; readonly [more: string]: unknown }
  >
> = {
  '/pets': { operationId: 'listPets' },
  '/report': { operationId: 'report', 'x-cost': 5 },
  '/twice': { operationId: 'twice', 'x-cost': 2 },
  '/free': { operationId: 'free', 'x-cost': 0 },
  '/pay': { operationId: 'pay', 'x-upstream': 'payments' },
  '/feed': { operationId: 'feed', 'x-upgrade': 'websocket' },
};
const responses = { 200: { description: 'It went well.' } };
const document = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: Object.fromEntries(
    Object.entries(operations).map(([path, of]) => [
      path,
      {
        get: { ...of, responses },
        ...(path === '/pets' && { head: { operationId: 'headPets', responses } }),
      },
    ]),
  ),
};
const files = { 'makegood.yaml': stringify(document) };
const token = makeToken('write', 'ops');
const reader = makeToken('read', 'eye');
const bounds = {
  ...patientGateway,
  presenceIntervalMs: 50,
  fleetFlushPollMs: 10,
  fleetFlushTimeoutMs: 30_000,
  // The other responses, and clients that close their connections, are faster, also on a busy machine.
  upstreamTotalTimeoutMs: 3_000,
  sweepIntervalMs: 20,
  healthPauseMs: 20,
  // Counts reach Redis only by a flush of the fleet.
  usageFlushIntervalMs: 600_000,
};

/**
 * The way in which the backend responds. `cut` ends in the middle of the body, `hang` stops in the middle of the body, `stream` never ends,
 * `large` sends more than sockets can buffer, and `lost` does not respond.
 */
type Mode = 'ok' | '503' | '404' | 'cut' | 'hang' | 'stream' | 'large' | 'lost';

/** Starts a backend that can fail in several ways. Health checks always succeed. */
async function startBackend() {
  let mode: Mode = 'ok';
  let attempts = 0;
  const server = createServer((req, res) => {
    if (req.url === '/healthz' || mode === 'ok') return res.end('[]');
    if (mode === '503' || mode === '404') return res.writeHead(Number(mode)).end('no');
    if (mode === 'lost') {
      attempts += 1;
      return req.socket.destroy();
    }
    if (mode === 'large') return res.end(Buffer.alloc(30_000_000));
    if (mode === 'stream') return drip(res);
    res.writeHead(200, { 'content-length': '100' }).write('half');
    if (mode === 'cut') setTimeout(() => res.destroy(), 5);
    return undefined;
  });
  server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  server.unref();
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    attempts: () => attempts,
    be(next: Mode) {
      mode = next;
    },
  };
}

function drip(res: ServerResponse): void {
  const timer = setInterval(() => res.write('x'), 10);
  res.on('close', () => clearInterval(timer));
}

type Backend = Awaited<ReturnType<typeof startBackend>>;

/** Keys without a limit that a test reaches. */
const plans = {
  free: { perDay: 1_000_000, perMonth: 10_000_000 },
  business: { perDay: 1_000_000, perMonth: 10_000_000 },
};

function configOf(backend: Backend, keys: readonly ReturnType<typeof makeKey>[]) {
  return {
    upstreams: {
      pets: { url: backend.url, health: '/healthz' },
      payments: { url: backend.url, health: '/healthz' },
    },
    upstream: undefined,
    api: 'makegood.yaml',
    plans,
    keys: keys.map(({ entry }) => entry),
    admin: { host: '127.0.0.1', port: 0, tokens: [token.entry, reader.entry] },
  };
}

async function start(
  startGateways: typeof startFleetHere,
  keys: readonly ReturnType<typeof makeKey>[],
  {
    gateways = 3,
    ...options
  }: Partial<Parameters<typeof startFleetHere>[0]> & {
    readonly gateways?: number;
    readonly bounds?: object;
  } = {},
) {
  const backend = await startBackend();
  const tuning = { bounds: { ...bounds, ...options.bounds } };
  const fleet = await startGateways({
    starts: Array.from({ length: gateways }, () => ({ tuning })),
    ...options,
    config: { ...configOf(backend, keys), ...options.config },
    files: { ...files, ...options.files },
  });
  onTestFinished(() => fleet.stop());
  await until('every process is listed', async () => {
    const { body } = await ask(fleet.gateways[0], 'GET', '/state');
    return body.processes.length === gateways;
  });
  return { fleet, backend };
}

function ask(gateway: RunningGateway | undefined, method: string, path: string, json?: object, as = token) {
  const port = Number(new URL(gateway?.adminUrl ?? '').port);
  return askAdmin(port, `/api/v1${path}`, { token: as.token, method, json });
}

const agoIso = (ms: number) => new Date(Date.now() - ms).toISOString();

function makegood(gateway: RunningGateway | undefined, more: object = {}, as = token) {
  const period = { from: agoIso(600_000), to: agoIso(0) };
  return ask(gateway, 'POST', '/makegood', { ...period, ...more }, as);
}

/** Sends a request, and returns the status, and whether the response was cut. */
async function send(
  { port }: RunningGateway,
  secret: string,
  path = '/pets',
  method = 'GET',
): Promise<{ readonly status: number; readonly isCut: boolean }> {
  const sent = request({
    host: '127.0.0.1',
    port,
    path: `/v1${path}`,
    method,
    agent: false,
    headers: { authorization: `Bearer ${secret}` },
  });
  sent.end();
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const fail = (cause: Error) => reject(new Error(`${method} ${path} failed: ${cause.message}`, { cause }));
    sent.once('response', resolve).once('error', fail);
  });
  await new Promise<void>((resolve) => {
    response
      .resume()
      .on('error', () => {})
      .once('close', resolve);
  });
  return { status: response.statusCode ?? 0, isCut: !response.complete };
}

/** The used units of the key's day and month. */
async function usedOf(gateway: RunningGateway | undefined, id: string): Promise<readonly number[]> {
  const { body } = await ask(gateway, 'GET', `/keys/${id}`);
  return body.windows.map(({ used }: { readonly used: number }) => used);
}

const member = (fleet: Fleet<RunningGateway>, index: number) => {
  const gateway = fleet.gateways[index % fleet.gateways.length];
  if (gateway === undefined) throw new Error('the fleet has gateways');
  return gateway;
};

/** Sends requests of each key through all gateways, and returns the failed units of each key. */
async function sendAll(
  fleet: Fleet<RunningGateway>,
  keys: readonly ReturnType<typeof makeKey>[],
  paths: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const failed = new Map<string, number>();
  for (const [index, { entry, secret }] of keys.entries()) {
    for (let request = 0; request <= index; request++) {
      for (const [place, path] of paths.entries()) {
        const { status, isCut } = await send(member(fleet, request + place), secret, path);
        const cost = operations[path]?.['x-cost'] ?? 1;
        if (status >= 500 || isCut) failed.set(entry.id, (failed.get(entry.id) ?? 0) + cost);
      }
    }
  }
  return failed;
}

function sum(failed: ReadonlyMap<string, number>): number {
  return [...failed.values()].reduce((all, units) => all + units, 0);
}

/** The whole scenario: an upstream fails in several ways, and each key gets back exactly its failed units. */
async function failAndMakeGood(startGateways: typeof startFleetHere, place?: RedisPlace) {
  const keys = Array.from({ length: 3 }, () => makeKey({ plan: 'free' }));
  const { fleet, backend } = await start(startGateways, keys, place && { place });
  const paths = ['/pets', '/report', '/twice', '/free', '/pay'] as const;
  const failed = new Map<string, number>();
  for (const mode of ['ok', '503', 'cut', 'ok', '404', 'hang'] as const) {
    backend.be(mode);
    const ofMode = await sendAll(fleet, keys, mode === 'hang' ? ['/report'] : paths);
    for (const [id, units] of ofMode) failed.set(id, (failed.get(id) ?? 0) + units);
  }
  backend.be('ok');
  expect(failed.size).toBe(3);
  const before = new Map<string, readonly number[]>();
  for (const { entry } of keys) before.set(entry.id, await usedOf(member(fleet, 0), entry.id));

  const units = sum(failed);
  const dry = await makegood(member(fleet, 1), { dryRun: true }, reader);
  const figures = { keys: 3, failedUnits: units, creditedKeys: 3, givenBack: { day: units, month: units } };
  expect(dry.body).toMatchObject({ dryRun: true, ...figures });
  expect((await makegood(member(fleet, 2))).body).toMatchObject(figures);
  for (const { entry } of keys) {
    const left = (before.get(entry.id) ?? []).map((used) => used - (failed.get(entry.id) ?? 0));
    expect(await usedOf(member(fleet, 0), entry.id)).toEqual(left);
  }
  const nothing = { failedUnits: units, creditedKeys: 0, givenBack: { day: 0, month: 0 } };
  for (const from of [600_000, 3_600_000]) {
    expect((await makegood(member(fleet, 0), { from: agoIso(from) })).body).toMatchObject(nothing);
  }
  return { fleet, backend, keys, failed };
}

it('each key gets back exactly the units of its failed requests, once, from the counts of all processes', async () => {
  const { fleet, keys, failed } = await failAndMakeGood(startFleetHere);
  for (const { entry } of keys) {
    const units = failed.get(entry.id) ?? 0;
    const credit = {
      ...{ at: expect.any(String), from: expect.any(String), to: expect.any(String) },
      ...{ failedUnits: units, givenBack: { day: units, month: units } },
    };
    expect((await ask(member(fleet, 1), 'GET', `/keys/${entry.id}`)).body.credits).toEqual([credit]);
  }
  const { body } = await ask(member(fleet, 1), 'GET', '/changes');
  const runs = body.changes.filter(({ action }: { action: string }) => action === 'makegood');
  expect(runs).toHaveLength(3);
  const units = sum(failed);
  expect(runs[2]).toMatchObject({
    by: 'ops',
    text: expect.stringMatching(/^ops gave 3 keys back \d+ units of the day and \d+ units of the month for/),
    after: { keys: 3, failedUnits: units, givenBack: { day: units, month: units } },
  });
  expect(runs[0].text).toMatch(/^ops gave no units back for requests that failed from/);
});

it.each(redisForms)(
  'with three processes and $name, each key gets back exactly the units of its failed requests',
  {
    tags: 'full',
  },
  async (form) => {
    const { place, stop } = await form.start();
    onTestFinished(stop);
    const { failed } = await failAndMakeGood(startFleet, place);
    expect(failed.size).toBe(3);
  },
);

it('two runs at the same time, with periods that overlap, give each unit back once', async () => {
  const keys = Array.from({ length: 3 }, () => makeKey({ plan: 'free' }));
  const { fleet, backend } = await start(startFleetHere, keys);
  backend.be('503');
  const failed = await sendAll(fleet, keys, ['/pets', '/report', '/pay']);
  const runs = await Promise.all(
    [0, 1, 2, 0].map((index) => makegood(member(fleet, index), { from: agoIso(600_000 + index * 60_000) })),
  );
  const given = runs.map(({ body }) => body.givenBack.day);
  expect(given.reduce((all, units) => all + units, 0)).toBe(sum(failed));
  // Failures of the same minute that are recorded later are given back by the next run.
  const more = await sendAll(fleet, keys, ['/pets']);
  expect((await makegood(member(fleet, 1))).body.givenBack.day).toBe(sum(more));
});

it('only requests that the gateway or the upstream failed are given back, one charge for all attempts', async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleetHere, [key], { gateways: 1 });
  const gateway = member(fleet, 0);
  const { secret } = key;
  const given = async () => (await makegood(gateway)).body.givenBack.day;

  // The client closes its connection in the middle of the response.
  backend.be('hang');
  for (let request = 0; request < 3; request++) {
    const options = { host: '127.0.0.1', port: gateway.port, path: '/v1/pets', agent: false } as const;
    const sent = get({ ...options, headers: { authorization: `Bearer ${secret}` } });
    sent.on('error', () => {});
    await new Promise<void>((resolve) => sent.once('response', () => resolve()));
    sent.socket?.resetAndDestroy();
  }
  const cut = () => gateway.lines.filter(({ status }) => status === 499);
  await until('the gateway has ended these requests', () => cut().length === 3);
  expect(await given()).toBe(0);

  backend.be('404');
  expect((await send(gateway, secret)).status).toBe(404);
  expect((await send(gateway, secret, '/no-such-path')).status).toBe(404);
  expect(await given()).toBe(0);

  // The total timeout of the gateway cuts the response.
  backend.be('hang');
  expect(await send(gateway, secret, '/report')).toEqual({ status: 200, isCut: true });
  expect(await given()).toBe(5);

  backend.be('503');
  expect((await send(gateway, secret, '/pets', 'HEAD')).status).toBe(503);
  expect(await given()).toBe(1);
  const { status } = await (await askForWebSocket(gateway.port, secret)).response();
  expect(status).toBe(503);
  expect(await given()).toBe(1);
  expect((await send(gateway, secret, '/free')).status).toBe(503);
  expect(await given()).toBe(0);

  backend.be('lost');
  expect((await send(gateway, secret, '/twice')).status).toBe(502);
  expect(backend.attempts()).toBeGreaterThan(1);
  expect(await given()).toBe(2);
});

it('a request that failed because of its client is not failed', async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleetHere, [key], {
    gateways: 1,
    // The gateway waits for the client most of this time, also on a busy machine.
    bounds: { collectedBodiesBytesMax: 100, upstreamTotalTimeoutMs: 2_000 },
  });
  const gateway = member(fleet, 0);
  const authorization = `Bearer ${key.secret}`;
  const options = { host: '127.0.0.1', port: gateway.port, path: '/v1/pets', agent: false } as const;
  const endedWith = (status: number) =>
    until(`a request has ended with ${status}`, () => gateway.lines.some((line) => line.status === status));

  const upload = request({ ...options, headers: { authorization, 'content-length': 200 } });
  const refused = new Promise<number | undefined>((resolve) =>
    upload.once('response', ({ statusCode }) => resolve(statusCode)),
  );
  upload.on('error', () => {});
  upload.write('x'.repeat(200));
  expect(await refused).toBe(503);
  await endedWith(503);

  backend.be('stream');
  expect(await send(gateway, key.secret)).toEqual({ status: 200, isCut: true });
  await endedWith(499);

  backend.be('large');
  const download = get({ ...options, headers: { authorization } });
  download.on('error', () => {});
  const [response] = (await once(download, 'response')) as [IncomingMessage];
  response.on('error', () => {}).pause();
  await until('both were cut', () => gateway.lines.filter(({ status }) => status === 499).length === 2);

  expect((await makegood(gateway)).body.givenBack.day).toBe(0);
  expect((await readMetrics(gateway.adminUrl)).sum('tollgate_failures_total')).toBe(0);
});

it('a drain that cuts a request makes it a failed request', async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleetHere, [key], {
    gateways: 2,
    bounds: { drainDeadlineMs: 50, upstreamTotalTimeoutMs: 60_000, usageCloseTimeoutMs: 20_000 },
  });
  const [leaving, staying] = [member(fleet, 0), member(fleet, 1)];
  backend.be('hang');
  const sent = send(leaving, key.secret, '/report');
  await until('the request is charged', async () => (await usedOf(staying, key.entry.id))[0] === 5);
  await leaving.stop('SIGTERM');
  expect(await sent).toMatchObject({ isCut: true });
  expect((await makegood(staying)).body.givenBack).toEqual({ day: 5, month: 5 });
});

it('a key that failed requests have used up may call again on every process', async () => {
  const key = makeKey({ plan: 'small' });
  const { fleet, backend } = await start(startFleetHere, [key], {
    config: { plans: { small: { perDay: 6 } } },
  });
  backend.be('503');
  for (let request = 0; request < 6; request++) await send(member(fleet, request), key.secret);
  for (const gateway of fleet.gateways) expect((await send(gateway, key.secret)).status).toBe(429);
  backend.be('ok');
  expect((await makegood(member(fleet, 0))).body.givenBack).toEqual({ day: 6, month: 0 });
  for (const gateway of fleet.gateways) {
    await until('the key may call', async () => (await send(gateway, key.secret)).status === 200);
  }
});

it('a process whose clock is wrong gives back the failures until now', async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleetHere, [key], {
    gateways: 2,
    starts: [{ tuning: { bounds } }, { tuning: { bounds, clockSkewMs: -90_000 } }],
  });
  backend.be('503');
  await send(member(fleet, 0), key.secret, '/report');
  const period = { from: agoIso(600_000), to: agoIso(-600_000) };
  const { body } = await ask(member(fleet, 1), 'POST', '/makegood', period);
  expect(body).toMatchObject({ failedUnits: 5, givenBack: { day: 5, month: 5 } });
});

it('a run names a killed process, whose last failures are lost', { tags: 'full' }, async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleet, [key], {
    gateways: 2,
    bounds: { fleetFlushTimeoutMs: 500 },
  });
  const [victim, witness] = [member(fleet, 0), member(fleet, 1)];
  backend.be('503');
  for (const gateway of [victim, victim, witness]) await send(gateway, key.secret, '/report');
  await victim.stop('SIGKILL');
  const { body } = await makegood(witness);
  expect(body).toMatchObject({ givenBack: { day: 5, month: 5 }, behind: [{ host: expect.any(String) }] });
  await until('the killed process is no longer listed', async () => {
    return (await makegood(witness)).body.behind === undefined;
  });
  expect(await usedOf(witness, key.entry.id)).toEqual([10, 10]);
});

it('the workers of a gateway send their counts too', { tags: 'full' }, async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleet, [key], {
    gateways: 2,
    starts: [{ tuning: { bounds: { ...bounds, workerReportIntervalMs: 100 } } }],
    config: { workers: 2 },
  });
  backend.be('503');
  for (let request = 0; request < 20; request++) await send(member(fleet, 0), key.secret, '/twice');
  expect((await makegood(member(fleet, 0))).body).toMatchObject({
    failedUnits: 40,
    givenBack: { day: 40, month: 40 },
  });
  expect(await usedOf(member(fleet, 0), key.entry.id)).toEqual([0, 0]);
});

it('a group of the plan and of the trial admits exactly as many as if the failed requests had never been', async () => {
  const key = makeKey({ plan: 'grouped' });
  const trial = { perDay: 50, groups: { reports: { operations: ['listPets'], perDay: 25 } } };
  const reports = { operations: ['listPets', 'headPets'], perDay: 20 };
  const { fleet, backend } = await start(startFleetHere, [key], {
    config: { plans: { grouped: { perDay: 60, groups: { reports }, trial } } },
  });
  const { secret, entry } = key;
  const sendMany = async (requests: number) => {
    const statuses: number[] = [];
    for (let request = 0; request < requests; request++) {
      statuses.push((await send(member(fleet, request), secret)).status);
    }
    return [200, 503, 429].map((status) => statuses.filter((one) => one === status).length);
  };
  const usedInTrial = () =>
    fleet.inspector.hmget(`${fleet.prefix}:{${entry.id}}`, 'trial:dayUsed', 'trial:reports:dayUsed');

  expect(await sendMany(5)).toEqual([5, 0, 0]);
  backend.be('503');
  expect(await sendMany(20)).toEqual([0, 15, 5]);
  expect(await usedOf(member(fleet, 0), entry.id)).toEqual([20, 20]);
  expect(await usedInTrial()).toEqual(['25', '25']);
  const { body } = await makegood(member(fleet, 1));
  expect(body).toMatchObject({ failedUnits: 15, creditedKeys: 1, givenBack: { day: 15, month: 0 } });
  expect(await usedOf(member(fleet, 2), entry.id)).toEqual([5, 5]);
  // The trial admitted the 5 requests that the plan refused. These requests did not fail.
  expect(await usedInTrial()).toEqual(['10', '10']);
  backend.be('ok');
  expect(await sendMany(20)).toEqual([15, 0, 5]);
  expect(await usedOf(member(fleet, 0), entry.id)).toEqual([20, 20]);
  expect((await makegood(member(fleet, 2))).body.givenBack).toEqual({ day: 0, month: 0 });
});

it('a group that only the trial has gets its units back', async () => {
  const key = makeKey({ plan: 'tried' });
  const trial = { perDay: 50, groups: { trials: { operations: ['report'], perDay: 25 } } };
  const { fleet, backend } = await start(startFleetHere, [key], {
    config: { plans: { tried: { perDay: 60, trial } } },
  });
  backend.be('503');
  for (let request = 0; request < 3; request++) await send(member(fleet, request), key.secret, '/report');
  const used = () => fleet.inspector.hget(`${fleet.prefix}:{${key.entry.id}}`, 'trial:trials:dayUsed');
  expect(await used()).toBe('15');
  await makegood(member(fleet, 0));
  expect(await used()).toBe('0');
});

it('a group with a daily limit gets units back, and the run shows them, though the plan has no daily limit', async () => {
  const key = makeKey({ plan: 'brief' });
  const groups = { reports: { operations: ['report'], perDay: 25 } };
  const { fleet, backend } = await start(startFleetHere, [key], {
    config: { plans: { brief: { perMinute: 1_000, groups } } },
  });
  backend.be('503');
  for (let request = 0; request < 6; request++) await send(member(fleet, request), key.secret, '/report');
  const figures = { failedUnits: 25, creditedKeys: 1, givenBack: { day: 25, month: 0 } };
  expect((await makegood(member(fleet, 1), { dryRun: true })).body).toMatchObject(figures);
  expect((await makegood(member(fleet, 0))).body).toMatchObject(figures);
  expect((await send(member(fleet, 2), key.secret, '/report')).status).toBe(503);
  const { body } = await ask(member(fleet, 1), 'GET', `/keys/${key.entry.id}`);
  expect(body.credits).toMatchObject([{ failedUnits: 25, givenBack: { day: 25, month: 0 } }]);
});

it('an upstream, a plan and the key directory limit who gets units back; a deleted key gets none', async () => {
  const [free, business] = [makeKey({ plan: 'free' }), makeKey({ plan: 'business' })];
  const { fleet, backend } = await start(startFleetHere, [free, business], {
    gateways: 2,
    config: { keys: { file: './keys.yaml', directory: true } },
    files: { 'keys.yaml': [free.entry, business.entry] },
  });
  const directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
  onTestFinished(() => directory.close());
  const [issued, deleted] = [makeKey({ plan: 'free' }), makeKey({ plan: 'free' })];
  for (const { entry, secret } of [issued, deleted]) await directory.issue(entry.id, [secret]);
  backend.be('503');
  const all = [free, business, issued, deleted];
  for (const { secret } of all) {
    for (const path of ['/pets', '/pay']) {
      expect((await send(member(fleet, 0), secret, path)).status).toBe(503);
    }
  }
  await directory.discard(deleted.entry.id);
  const run = async (more: object) => {
    const { keys, creditedKeys, givenBack } = (await makegood(member(fleet, 1), more)).body;
    return [keys, creditedKeys, givenBack.day];
  };
  expect(await run({ upstream: 'payments', plan: 'business' })).toEqual([1, 1, 1]);
  expect(await run({ upstream: 'payments' })).toEqual([3, 2, 2]);
  expect(await run({ plan: 'free' })).toEqual([2, 2, 2]);
  expect(await run({})).toEqual([3, 1, 1]);
});

it('a request that cannot be fulfilled gets an error that says why, and changes nothing', async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleetHere, [key], { gateways: 1 });
  const gateway = member(fleet, 0);
  backend.be('503');
  await send(gateway, key.secret);
  const refusal = async (more: object, as = token) => {
    const { status, body } = await makegood(gateway, more, as);
    return [status, body.message];
  };
  expect(await refusal({}, reader)).toEqual([403, 'The token may only read.']);
  expect(await refusal({ upstream: 'no' })).toEqual([
    400,
    expect.stringMatching(/upstreams are pets, payments/),
  ]);
  expect(await refusal({ plan: 'no' })).toEqual([400, expect.stringContaining('no plan')]);
  expect(await refusal({ after: 'no' })).toEqual([400, expect.stringContaining('`after`')]);
  const reversed = { from: agoIso(1_000), to: agoIso(2_000) };
  expect(await refusal(reversed)).toEqual([400, expect.stringContaining('later than `to`')]);
  const ahead = { from: agoIso(-60_000), to: agoIso(-120_000) };
  expect(await refusal(ahead)).toEqual([400, expect.stringContaining('in the future')]);
  const old = { from: '2020-01-01', to: '2020-01-02' };
  expect(await refusal(old)).toEqual([400, expect.stringContaining('beginning of the usage record')]);
  expect(await usedOf(gateway, key.entry.id)).toEqual([1, 1]);
  // A period may end ahead of now.
  const open = { from: agoIso(600_000), to: agoIso(-3_600_000) };
  expect((await makegood(gateway, open)).body.givenBack).toEqual({ day: 1, month: 1 });
});

it('without a usage record, the error names the setting; in memory, a single process gives units back', async () => {
  const key = makeKey({ plan: 'free' });
  const backend = await startBackend();
  const startAlone = async (config: object) => {
    const gateway = await startGatewayHere(testConfig({ ...configOf(backend, [key]), ...config }), {
      tuning: { bounds },
      files,
    });
    onTestFinished(async () => void (await gateway.stop('SIGKILL')));
    return gateway;
  };
  const unrecorded = await startAlone({ usage: { keepDays: 0 } });
  expect(await makegood(unrecorded)).toMatchObject({
    status: 409,
    body: { message: expect.stringContaining('keepDays: 0') },
  });
  const alone = await startAlone({});
  backend.be('503');
  for (let request = 0; request < 3; request++) await send(alone, key.secret, '/report');
  backend.be('ok');
  await send(alone, key.secret);
  expect((await makegood(alone)).body.givenBack).toEqual({ day: 15, month: 15 });
  expect((await makegood(alone)).body.givenBack).toEqual({ day: 0, month: 0 });
  expect(await usedOf(alone, key.entry.id)).toEqual([1, 1]);
});

it('a run of many keys has parts; the record of changes has the run once, also if its client dies', async () => {
  const keys = Array.from({ length: 5 }, () => makeKey({ plan: 'free' }));
  const { fleet, backend } = await start(startFleetHere, keys, {
    gateways: 2,
    bounds: { makegoodKeysAtOnce: 2, makegoodPartMs: 0 },
  });
  backend.be('503');
  const failed = sum(await sendAll(fleet, keys, ['/report']));
  const [leaving, staying] = [member(fleet, 0), member(fleet, 1)];

  // The client of this run requests no further part.
  const first = (await makegood(leaving)).body;
  expect(first).toMatchObject({ examinedKeys: 2, creditedKeys: 2, next: expect.any(String) });
  const period = { from: agoIso(600_000), to: agoIso(0) };
  let shown = (await ask(staying, 'POST', '/makegood', period)).body;
  const parts = [shown.examinedKeys];
  while (shown.next !== undefined) {
    const { from, to, next: after } = shown;
    shown = (await ask(staying, 'POST', '/makegood', { from, to, after })).body;
    parts.push(shown.examinedKeys);
  }
  expect(parts).toEqual([2, 4, 5]);
  expect(shown).toMatchObject({ keys: 5, creditedKeys: 3, failedUnits: failed });
  expect(shown.givenBack.day + first.givenBack.day).toBe(failed);
  await leaving.stop('SIGTERM');
  const { body } = await ask(staying, 'GET', '/changes');
  const runs = body.changes.filter(({ action }: { action: string }) => action === 'makegood');
  expect(runs.map(({ after }: { after: Record<string, unknown> }) => after.keys)).toEqual([2, 3]);
});

it('while Redis is away, a run changes nothing; a run that Redis interrupts continues with the next run', async () => {
  const keys = Array.from({ length: 4 }, () => makeKey({ plan: 'free' }));
  const { fleet, backend } = await start(startFleetHere, keys, {
    gateways: 1,
    relayed: true,
    bounds: { ...steadyStore, makegoodKeysAtOnce: 2, makegoodPartMs: 0, fleetFlushTimeoutMs: 30_000 },
  });
  const gateway = member(fleet, 0);
  backend.be('503');
  const failed = sum(await sendAll(fleet, keys, ['/report']));
  const period = { from: agoIso(600_000), to: agoIso(0) };
  const { from, to, next: after, givenBack } = (await ask(gateway, 'POST', '/makegood', period)).body;
  expect(givenBack.day).toBeGreaterThan(0);
  const { relay, redis } = fleet;
  relay?.switchTo(1);
  relay?.cut();
  for (const body of [{ from, to, after }, period]) {
    expect((await ask(gateway, 'POST', '/makegood', body)).status).toBe(503);
  }
  relay?.switchTo(redis.port);
  await until('a run works again', async () => (await makegood(gateway, { dryRun: true })).status === 200);
  let left = 0;
  for (let shown = (await makegood(gateway)).body; ; ) {
    left = shown.givenBack.day;
    if (shown.next === undefined) break;
    const next = { from: shown.from, to: shown.to, after: shown.next };
    shown = (await ask(gateway, 'POST', '/makegood', next)).body;
  }
  expect(left + givenBack.day).toBe(failed);
  for (const { entry } of keys) expect(await usedOf(gateway, entry.id)).toEqual([0, 0]);
});

it.each([
  { charged: 'no failure', perDay: 20, succeeded: 20, failures: 15, refused: 15, left: 0 },
  { charged: 'some failures', perDay: 20, succeeded: 12, failures: 15, refused: 7, left: 8 },
  { charged: 'every failure', perDay: 20, succeeded: 3, failures: 15, refused: 0, left: 17 },
  {
    charged: 'some failures of 5 units',
    path: '/report',
    perDay: 20,
    succeeded: 9,
    failures: 4,
    refused: 2,
    left: 11,
  },
  {
    charged: 'no failure, each too expensive',
    path: '/report',
    perDay: 4,
    succeeded: 3,
    failures: 2,
    refused: 2,
    left: 1,
  },
])('a trial that has charged $charged gets back only what it charged', async (of) => {
  const { path = '/pets', perDay, succeeded, failures, refused, left } = of;
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleetHere, [key], {
    config: { plans: { ...plans, free: { perDay: 60, trial: { perDay } } }, bans: { after: 1_000 } },
  });
  const lines = () => fleet.gateways.flatMap((gateway) => gateway.lines).filter(({ decision }) => decision);
  /** Sends requests through all gateways, and returns how many requests the trial has refused so far. */
  const sendTimes = async (times: number, to = '/pets') => {
    const before = lines().length;
    for (let request = 0; request < times; request++) await send(member(fleet, request), key.secret, to);
    await until('every request has its line', async () => lines().length === before + times);
    return lines().filter(({ trial }) => trial === 'day').length;
  };
  await sendTimes(succeeded);
  backend.be('503');
  expect(await sendTimes(failures, path)).toBe(refused);
  const failed = failures * (operations[path]?.['x-cost'] ?? 1);
  // Several runs at the same time give each unit of each bucket back once.
  const runs = await Promise.all(fleet.gateways.map((gateway) => makegood(gateway)));
  expect(runs.reduce((sum, { body }) => sum + body.givenBack.day, 0)).toBe(failed);
  const again = (await makegood(member(fleet, 0))).body;
  expect(again).toMatchObject({ failedUnits: failed, givenBack: { day: 0 } });
  expect(await usedOf(member(fleet, 1), key.entry.id)).toEqual([succeeded]);
  backend.be('ok');
  expect(await sendTimes(left + 3)).toBe(refused + 3);
});

it('failed requests that were decided while Redis was away are given back too', async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleetHere, [key], {
    gateways: 1,
    relayed: true,
    bounds: { ...steadyStore, fleetFlushTimeoutMs: 30_000, reportIntervalMs: 600_000 },
  });
  const gateway = member(fleet, 0);
  const { relay, redis } = fleet;
  await send(gateway, key.secret);
  relay?.switchTo(1);
  relay?.cut();
  const ready = async () => (await askAdmin(Number(new URL(gateway.adminUrl).port), '/readyz')).text;
  await until('Redis is away', async () => (await ready()).includes('degraded'));
  backend.be('503');
  for (let request = 0; request < 4; request++) {
    expect((await send(gateway, key.secret, '/report')).status).toBe(503);
  }
  relay?.switchTo(redis.port);
  await until('a run gives units back', async () => {
    const { status, body } = await makegood(gateway);
    return status === 200 && body.behind === undefined && body.givenBack.day === 20;
  });
  expect(await usedOf(gateway, key.entry.id)).toEqual([1, 1]);
});

it('the command gives units back, and states what it could not do', async () => {
  const key = makeKey({ plan: 'free' });
  const { fleet, backend } = await start(startFleetHere, [key]);
  backend.be('503');
  for (let request = 0; request < 3; request++) await send(member(fleet, request), key.secret, '/report');
  const run = (...args: string[]) =>
    runTollgate(['makegood', '--from', '-10m', ...args], {
      TOLLGATE_ADMIN: member(fleet, 1).adminUrl,
      TOLLGATE_ADMIN_TOKEN: token.token,
    });
  const dry = await run('--to', 'now', '--dry-run', '--upstream', 'pets');
  expect(dry.stdout).toMatch(/^1 key paid 15 units for failed requests from .* UTC \(upstream pets\)\.$/m);
  expect(dry.stdout).toMatch(/^1 key would get back 15 units of the day and 15 units of the month\.$/m);
  const ahead = await run('--to', agoIso(-3_600_000));
  expect(ahead).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('the period has not ended') });
  expect(ahead.stdout).toMatch(/^1 key got back 15 units/m);
  const again = await run('--to', 'now', '--json');
  expect(JSON.parse(again.stdout)).toMatchObject({
    keys: 1,
    failedUnits: 15,
    givenBack: { day: 0, month: 0 },
  });
  expect((await run('--to', 'now')).stdout).toMatch(/^No unit was given back\./m);
  const shown = await runTollgate(['keys', 'show', key.entry.id], {
    TOLLGATE_ADMIN: member(fleet, 1).adminUrl,
    TOLLGATE_ADMIN_TOKEN: reader.token,
  });
  expect(shown.stdout).toMatch(/^given back +15 units of the day and 15 of the month at/m);
  // The usage of a month is before credits, and says so.
  const bill = await runTollgate(['usage', '--all', '--csv'], {
    TOLLGATE_ADMIN: member(fleet, 1).adminUrl,
    TOLLGATE_ADMIN_TOKEN: reader.token,
  });
  expect(bill.stdout).toMatch(/,15$/m);
  const help = await runTollgate(['usage', '--help'], {});
  expect(help.stdout).toContain('Units include those that "tollgate makegood" has given back.');
  const wrong = await run('--to', 'now', '--upstream', 'nope');
  expect(wrong).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('no upstream') });
});
