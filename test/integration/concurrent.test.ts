import { once } from 'node:events';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { untilConnected } from '../../gateway/redis/redis-connection.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { measureConcurrency } from '../faults/concurrency.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { startHoldingBackend } from '../support/holding-backend.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientForwarding, patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const reader = makeToken('read');

async function startBackend() {
  const backend = await startHoldingBackend();
  onTestFinished(backend.close);
  return backend;
}

/** Gateways of one fleet on one Redis, without workers. */
async function startFleet(size: number, backendUrl: string, overrides: Record<string, unknown> = {}) {
  const key = makeKey({ plan: 'shared' });
  const settings = await settingsOf({
    upstream: { url: backendUrl, health: '/healthz' },
    plans: { shared: { perMinute: 100_000, perDay: 1_000_000, concurrent: 4 } },
    keys: [key.entry],
    bans: { after: 3, within: '60s', for: '5m' },
    admin: { host: '127.0.0.1', port: 0, tokens: [reader.entry] },
    redis: { url: redisUrl(), prefix: freshPrefix() },
    ...overrides,
  });
  const bounds = tunedBounds({
    halfClosedTimeoutMs: 100,
    ...patientGateway,
    ...patientForwarding,
    leaseMs: 1_000,
    leaseRenewalMs: 200,
    usageFlushIntervalMs: 200,
  });
  const gateways = Array.from({ length: size }, () =>
    createGateway({ settings, log: { logger: pino({ level: 'silent' }), access: () => {} }, bounds }),
  );
  const ports: number[] = [];
  let adminPort = 0;
  for (const gateway of gateways) {
    const { listen, admin } = await gateway.start();
    ports.push(listen.port);
    adminPort ||= admin.port;
  }
  onTestFinished(async () => {
    await Promise.all(gateways.map((gateway) => gateway.drain({ graceMs: 0 })));
  });
  const headers = { authorization: `Bearer ${key.secret}` };
  const send = (at: number, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${ports[at % size]}/v1/pets`, { ...init, headers });
  const show = async (path: string) =>
    (await askAdmin(adminPort, `/api/v1/keys/${key.entry.id}${path}`, { token: reader.token })).body;
  const used = async (): Promise<number> => (await show('')).windows.at(-1).used;
  const usage = (): Promise<{ rows: { offered: number }[] }> => show('/usage?step=day');
  return { key, send, used, usage, headers, ports };
}

it('three processes forward at most the allowed requests of a key at once, and a refused request costs nothing', async () => {
  const backend = await startBackend();
  const { send, used, usage } = await startFleet(3, backend.url);
  let served = 0;
  let refused = 0;
  const client = async (at: number) => {
    while (served < 60) {
      const response = await send(at);
      if (response.status === 200) {
        await response.arrayBuffer();
        served += 1;
      } else {
        refused += 1;
        expect(response.headers.get('retry-after')).toBe('1');
        expect(response.headers.get('ratelimit-policy')).toContain(
          '"concurrent";q=4;qu="concurrent-requests"',
        );
        expect(await response.json()).toMatchObject({ code: 'too_many_concurrent', status: 429 });
      }
    }
  };
  const clients = Promise.all(Array.from({ length: 12 }, (_, at) => client(at)));
  await until('the limit is reached', () => backend.counts.now === 4 && refused > 20);
  const ending = setInterval(backend.endOne, 1);
  onTestFinished(() => clearInterval(ending));
  await clients;
  expect(backend.counts.most).toBe(4);
  // The refusals exceeded `bans.after` but caused no ban. Only the served requests were charged.
  expect(await used()).toBe(served);
  await until('the usage record has all requests', async () => {
    const [row] = (await usage()).rows;
    return row?.offered === served + refused;
  });
  const offered = served + refused;
  expect((await usage()).rows).toMatchObject([
    { offered, admitted: served, refused: { concurrent: refused } },
  ]);
});

it('a request stops counting when the client leaves, the backend fails or a WebSocket closes, and still counts when it lasts longer than a lease', async () => {
  const backend = await startBackend();
  const { send, headers, ports } = await startFleet(2, backend.url, { api: undefined });
  const sockets = [0, 1].map((at) => new WebSocket(`ws://127.0.0.1:${ports[at]}/v1/live`, { headers }));
  await Promise.all(sockets.map((socket) => once(socket, 'open')));
  const leaving = new AbortController();
  const left = send(0, { signal: leaving.signal }).catch(() => 'left');
  await until('the first request arrives', () => backend.held.length === 1);
  const cut = send(1);
  await until('all places are taken', () => backend.counts.now === 4);
  const isFull = async () => (await send(0)).status === 429 && (await send(1)).status === 429;
  // The requests in progress last longer than three leases.
  const endMs = performance.now() + 3_000;
  while (performance.now() < endMs) expect(await isFull()).toBe(true);

  const free = async (what: string, end: () => void) => {
    end();
    let response: Promise<Response> | undefined;
    await until(`${what} gives its place back`, async () => {
      const before = backend.held.length;
      const tried = send(0);
      const refusedStatus = await Promise.race([
        tried.then(({ status }) => status),
        until('it arrives', () => backend.held.length > before).then(() => undefined),
      ]);
      if (refusedStatus === undefined) response = tried;
      return refusedStatus === undefined;
    });
    backend.held.pop()?.end('[]');
    expect((await response)?.status).toBe(200);
  };
  await free('a client that leaves', () => leaving.abort());
  expect(await left).toBe('left');
  await free('a response that breaks off', () => backend.held.at(-1)?.destroy());
  expect((await cut).status).toBe(502);
  await free('a WebSocket', () => sockets[0]?.close());
  expect(backend.counts.most).toBe(4);
  for (const socket of sockets) socket.terminate();
});

it('a process without Redis counts alone, and a key may have another limit than its plan', async () => {
  const backend = await startBackend();
  const wide = makeKey({ plan: 'shared' });
  const keys = [{ ...wide.entry, concurrent: 6 }];
  const { ports } = await startFleet(1, backend.url, { redis: undefined, keys });
  const headers = { authorization: `Bearer ${wide.secret}` };
  const all = Array.from({ length: 9 }, () => fetch(`http://127.0.0.1:${ports[0]}/v1/pets`, { headers }));
  await until('six arrive', () => backend.counts.now === 6);
  const statuses = Promise.all(all.map(async (one) => (await one).status));
  while (backend.held.length > 0) backend.endOne();
  expect((await statuses).filter((status) => status === 429)).toHaveLength(3);
  expect(backend.counts.most).toBe(6);
});

it('requests of a killed process stop counting when its lease has expired', async () => {
  const backend = await startBackend();
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const { key, send } = await startFleet(1, backend.url, { redis });
  const connection = openRedis(redis, defaultBounds);
  onTestFinished(() => connection.close());
  await untilConnected(connection, 20_000);
  const store = createRedisQuotaStore({
    redis: connection,
    windowsMs: defaultBounds.windowsMs,
    deadlineMs: 20_000,
    patientDeadlineMs: 20_000,
    keysPerCallMax: 1,
    functionRetryMs: 10_000,
  });
  const limits = [{ window: 'minute', max: 100_000 }] as const;
  const bans = { after: 1_000, withinMs: 1_000, forMs: 1_000, maxMs: 1_000 };
  const concurrency = { max: 4, process: 'killed', active: 4, leaseMs: 1_500 };
  await store.decide([{ keyId: key.entry.id, limits, bans, runs: [], concurrency }]);
  expect((await send(0)).status).toBe(429);
  const ending = setInterval(backend.endOne, 1);
  onTestFinished(() => clearInterval(ending));
  await until('the lease expires', async () => (await send(0)).status === 200);
});

it('three processes, each killed in turn: the backend never has more than ten requests of the key, all ten places are free again, and each process counts alone without Redis', {
  tags: 'full',
}, async () => {
  const found = await measureConcurrency({ kills: 3, leases: { leaseMs: 8_000, leaseRenewalMs: 1_000 } });
  expect(Math.min(...found.openAtKill)).toBeGreaterThan(0);
  expect(found.most).toEqual({ before: 10, ofOneWhileAway: 10, admittedAfter: 0, after: 10 });
  expect(found.refused).toBeGreaterThan(0);
});
