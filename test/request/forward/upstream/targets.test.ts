import { afterEach, expect, it } from 'vitest';
import { defaultBounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';
import {
  okResponse,
  type RecordingBackend,
  startRecordingBackend,
} from '../../../support/recording-backend.ts';
import { stopClock } from '../../../support/stopped-clock.ts';
import { type Front, type FrontOptions, get, sendRaw, startFront, statusOf } from '../start-front.ts';

const quick = { resolveIntervalMs: 30, healthPauseMs: 30 };
const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi';

const started: { close(): Promise<void> }[] = [];

afterEach(async () => {
  // The gateway side closes first, so that it sends nothing to a backend that is already closed.
  for (const each of started.splice(0).reverse()) await each.close();
});

/** Backends on 127.0.0.1, 127.0.0.2, …, all with the same port. The response of each backend contains its number. */
async function startBackends(count: number): Promise<RecordingBackend[]> {
  const backends: RecordingBackend[] = [];
  for (let i = 1; i <= count; i++) backends.push(await startBackend(i, backends[0]?.port));
  return backends;
}

async function startBackend(i: number, port = 0): Promise<RecordingBackend> {
  const backend = await startRecordingBackend({
    host: `127.0.0.${i}`,
    port,
    react: (_request, socket) => socket.write(okResponse(`from ${i}`)),
  });
  started.push(backend);
  return backend;
}

async function startFor(
  port: number,
  addresses: string[],
  options: Partial<FrontOptions> = {},
): Promise<Front> {
  const front = await startFront({
    url: `http://store.test:${port}`,
    resolve: async () => addresses,
    bounds: quick,
    ...options,
  });
  started.push(front);
  return front;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const isHealthy = (front: Front, address: string) =>
  front.targets().some((target) => target.address.startsWith(address) && target.healthy);

it('requests are divided among all addresses of the host name', async () => {
  const [one, two] = await startBackends(2);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1', '127.0.0.2']);
  for (let i = 0; i < 40; i++) expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
  expect(one?.requests.length).toBeGreaterThan(0);
  expect(two?.requests.length).toBeGreaterThan(0);
});

it('a request before the first look-up of the host name waits for it', async () => {
  const [one] = await startBackends(1);
  let answerLookup = (_addresses: string[]) => {};
  const front = await startFor(one?.port ?? 0, [], {
    resolve: () => new Promise((resolve) => (answerLookup = resolve)),
  });
  const answer = sendRaw(front.port, get('/'));
  setTimeout(() => answerLookup(['127.0.0.1']), 50);
  expect(statusOf(await answer)).toBe(200);
});

it('no request fails when a target dies, not even a POST', async () => {
  const [one, two] = await startBackends(2);
  const port = one?.port ?? 0;
  const front = await startFor(port, ['127.0.0.1', '127.0.0.2'], {
    bounds: { ...quick, healthPauseMs: 600_000 },
  });
  await until(() => two?.healthChecks === 1);
  await two?.close();
  for (let i = 0; i < 20; i++) expect(await sendRaw(front.port, post)).toMatch(/from 1$/);
  expect(one?.requests).toHaveLength(20);
  expect(front.outcomes.every((outcome) => outcome.kind === 'forwarded')).toBe(true);
  expect(front.outcomes.filter(({ attempts }) => attempts === 2)).toHaveLength(1);
});

it('a target that was ejected is used again once its health check passes', async () => {
  const [one, two] = await startBackends(2);
  const port = one?.port ?? 0;
  const front = await startFor(port, ['127.0.0.1', '127.0.0.2']);
  await two?.close();
  await until(() => !isHealthy(front, '127.0.0.2'));
  expect(front.targets()).toContainEqual(
    expect.objectContaining({ address: `127.0.0.2:${port}`, healthy: false, reason: expect.any(String) }),
  );
  const back = await startBackend(2, port);
  await until(() => isHealthy(front, '127.0.0.2'));
  await until(async () => {
    await sendRaw(front.port, get('/'));
    return back.requests.length > 0;
  });
});

it.each([
  ['hangs', undefined, { ...quick, healthTimeoutMs: 1_000 }],
  ['says 503', 503, quick],
])('a target whose health check %s gets no more requests', async (_how, status, bounds) => {
  const [one, two] = await startBackends(2);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1', '127.0.0.2'], { bounds });
  if (two) two.health = status;
  await until(() => !isHealthy(front, '127.0.0.2'));
  for (let i = 0; i < 20; i++) expect(await sendRaw(front.port, get('/'))).toMatch(/from 1$/);
});

it('a target that begins to hang gets no more requests after two health checks, within a second', async () => {
  const [one] = await startBackends(1);
  const { healthPauseMs, healthTimeoutMs } = defaultBounds;
  const front = await startFor(one?.port ?? 0, ['127.0.0.1'], {
    bounds: { ...quick, healthPauseMs, healthTimeoutMs },
  });
  await until(() => one?.healthChecks === 2);
  if (one) one.health = undefined;
  const before = one?.healthChecks ?? 0;
  await until(() => !isHealthy(front, '127.0.0.1'));
  // On a busy machine, a second health check may already have begun and failed too.
  expect((one?.healthChecks ?? 0) - before).toBeLessThanOrEqual(2);
  expect(healthPauseMs + 2 * healthTimeoutMs).toBeLessThan(1_000);
});

it('a silent target still gets requests when there is no other target, and may respond late', async () => {
  const [one] = await startBackends(1);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1'], {
    bounds: { ...quick, healthTimeoutMs: 50 },
  });
  if (one) one.health = undefined;
  await until(() => !isHealthy(front, '127.0.0.1'));
  for (let i = 0; i < 5; i++) expect(await sendRaw(front.port, post)).toMatch(/from 1$/);
});

it('a target that refused and is now silent gets no request until a health check passes', async () => {
  const [one] = await startBackends(1);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1'], {
    bounds: { ...quick, healthTimeoutMs: 50 },
  });
  if (one) one.health = 503;
  await until(() => front.targets()[0]?.reason === 'health check answered 503');
  if (one) one.health = undefined;
  const checks = one?.healthChecks ?? 0;
  await until(() => (one?.healthChecks ?? 0) >= checks + 3);
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(503);
  if (one) one.health = 200;
  await until(async () => statusOf(await sendRaw(front.port, get('/'))) === 200);
});

it('requests get an immediate 503 with Retry-After when all targets are gone', async () => {
  const [one, two] = await startBackends(2);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1', '127.0.0.2']);
  await one?.close();
  await two?.close();
  expect(statusOf(await sendRaw(front.port, post))).toBe(503);
  await until(() => front.targets().every(({ healthy }) => !healthy));
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(503);
  expect(front.outcomes.at(-1)).toMatchObject({
    kind: 'failed',
    code: 'upstream_unavailable',
    headersSent: false,
    retryAfterSeconds: 1,
    attempts: 0,
  });
});

it('a host name that cannot be resolved gives 503 until it can', async () => {
  const [one] = await startBackends(1);
  let known = false;
  const front = await startFor(one?.port ?? 0, [], {
    resolve: async () => {
      if (!known) throw new Error('ENOTFOUND');
      return ['127.0.0.1'];
    },
  });
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(503);
  known = true;
  await until(async () => statusOf(await sendRaw(front.port, get('/'))) === 200);
  known = false;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
});

it('new addresses of a host name are used, and removed addresses finish their requests', async () => {
  const [one, two] = await startBackends(2);
  const addresses = ['127.0.0.1'];
  const front = await startFor(one?.port ?? 0, addresses);
  let answer = () => {};
  if (one) one.react = (_request, socket) => (answer = () => socket.write(okResponse('late from 1')));
  const slow = sendRaw(front.port, get('/'));
  await one?.received(1);
  addresses.splice(0, 1, '127.0.0.2');
  await until(async () => front.targets()[0]?.address.startsWith('127.0.0.2') === true);
  expect(await sendRaw(front.port, get('/'))).toMatch(/from 2$/);
  expect(two?.requests).toHaveLength(1);
  answer();
  expect(await slow).toMatch(/late from 1$/);
});

it('a hanging target holds no more than its share, and other targets are unaffected', async () => {
  const [one, two] = await startBackends(2);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1', '127.0.0.2'], {
    bounds: { ...quick, connectionsPerTargetMax: 2, queuedPerTargetMax: 1 },
  });
  if (two) two.react = () => {};
  const heldByTwo = () =>
    front.targets().find(({ address }) => address.startsWith('127.0.0.2'))?.inFlight ?? 0;
  // The working target accepts three requests at a time, so each request is either forwarded or held by the hanging
  // target.
  for (let sent = 3; sent <= 42; sent += 3) {
    for (let i = 0; i < 3; i++) void sendRaw(front.port, get('/'));
    await until(() => front.outcomes.length + heldByTwo() === sent);
  }
  expect(front.outcomes.every(({ kind }) => kind === 'forwarded')).toBe(true);
  expect(front.outcomes.length).toBeGreaterThanOrEqual(39);
  expect(two?.requests.length).toBeLessThanOrEqual(2);
});

it('requests to a single hanging target get 503 above a key’s share of connections and queue, and the others time out', async () => {
  const [one] = await startBackends(1);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1'], {
    bounds: {
      ...quick,
      connectionsPerTargetMax: 2,
      queuedPerTargetMax: 1,
      sweepIntervalMs: 30,
    },
  });
  if (one) one.react = () => {};
  const clock = stopClock();
  const responses = Array.from({ length: 5 }, () => sendRaw(front.port, get('/')));
  await front.ended(3);
  clock.pass(defaultBounds.upstreamTotalTimeoutMs);
  expect((await Promise.all(responses)).map(statusOf).toSorted()).toEqual([503, 503, 503, 504, 504]);
  // After the timeouts, all connections are free again, and no request is queued.
  if (one) one.react = (_request, socket) => socket.write(okResponse('fine'));
  await until(() => front.targets()[0]?.inFlight === 0);
  expect(await sendRaw(front.port, get('/'))).toMatch(/fine$/);
});

it('a change of the upstream sends new requests to the new one, and requests in flight finish on the old one', async () => {
  const [one] = await startBackends(1);
  const other = await startBackend(3);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1']);
  let answer = () => {};
  if (one) one.react = (_request, socket) => (answer = () => socket.write(okResponse('from the old')));
  const slow = sendRaw(front.port, post);
  await one?.received(1);
  front.setUrl(other.url);
  expect(await sendRaw(front.port, get('/'))).toMatch(/from 3$/);
  answer();
  expect(await slow).toMatch(/from the old$/);
  await until(() => one?.openConnections() === 0);
  expect(one?.requests).toHaveLength(1);
});

it('closing the targets ends within its timeout although a backend hangs', async () => {
  const [one] = await startBackends(1);
  const front = await startFor(one?.port ?? 0, ['127.0.0.1'], {
    bounds: { ...quick, upstreamCloseTimeoutMs: 50 },
  });
  if (one) one.react = () => {};
  const answer = sendRaw(front.port, get('/'));
  await one?.received(1);
  await front.forwarder.close();
  expect(statusOf(await answer)).toBe(503);
});
