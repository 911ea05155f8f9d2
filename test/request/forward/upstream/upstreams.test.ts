import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, vi } from 'vitest';
import type { Upstream } from '../../../../gateway/shared/model.ts';
import {
  fieldLines,
  type RecordingBackend,
  startRecordingBackend,
} from '../../../support/recording-backend.ts';
import { stopTimers } from '../../../support/stopped-clock.ts';
import { until } from '../../../support/until.ts';
import {
  type Front,
  type FrontOptions,
  get,
  sendRaw,
  startFront,
  statusOf,
  upstreamAt,
} from '../start-front.ts';

const started: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of started.splice(0).reverse()) await each.close();
});

async function startBackend(): Promise<RecordingBackend> {
  const backend = await startRecordingBackend();
  started.push(backend);
  return backend;
}

async function startFor(url: string, upstream: Partial<Upstream> = {}): Promise<Front> {
  const front = await startFront({ url, upstream });
  started.push(front);
  return front;
}

it('a reload that changes nothing closes no connection', async () => {
  const backend = await startBackend();
  const front = await startFor(backend.url, { timeouts: { connectMs: 50_000 } });
  await sendRaw(front.port, get('/'));
  front.setUrl(backend.url);
  await sendRaw(front.port, get('/'));
  expect(new Set(backend.requests.map(({ connection }) => connection)).size).toBe(1);
});

it.each<[what: string, change: Partial<Upstream>]>([
  ['its host', { host: 'target' }],
  ['a timeout', { timeouts: { headersMs: 50_000 } }],
])('a reload that changes %s takes effect with the next request', async (_what, change) => {
  const backend = await startBackend();
  const front = await startFor(backend.url);
  await sendRaw(front.port, get('/'));
  front.forwarder.setUpstreams([upstreamAt(backend.url, change)]);
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
  await until('the old connection is closed', () => backend.openConnections() <= 2);
  const [before, after] = backend.requests;
  expect(before?.connection).not.toBe(after?.connection);
  const host = change.host === 'target' ? `127.0.0.1:${backend.port}` : 'api.test';
  expect(after && fieldLines(after)).toContain(`Host: ${host}`);
});

it('a request whose upstream a reload has just removed gets 503 with Retry-After', async () => {
  const backend = await startBackend();
  const front = await startFor(backend.url);
  front.forwarder.setUpstreams([upstreamAt(backend.url, { name: 'another' })]);
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(503);
  const upgrade = get('/', 'Upgrade: websocket').replace('Connection: close', 'Connection: Upgrade');
  expect(statusOf(await sendRaw(front.port, upgrade))).toBe(503);
  expect(front.outcomes).toMatchObject(
    [0, 1].map(() => ({
      kind: 'failed',
      code: 'upstream_unavailable',
      headersSent: false,
      retryAfterSeconds: 1,
      attempts: 0,
    })),
  );
  expect(backend.requests).toEqual([]);
});

it('a request whose upstream is removed during its body gets 503, and no other request is affected', async () => {
  const backend = await startBackend();
  const front = await startFor(backend.url);
  const client = connect(front.port, '127.0.0.1').setEncoding('latin1');
  let received = '';
  client.on('data', (text: string) => {
    received += text;
  });
  const fields = 'Host: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close';
  client.write(`POST / HTTP/1.1\r\n${fields}\r\n\r\n`);
  // The 100 Continue response shows that the gateway has chosen the upstream.
  await once(client, 'data');
  received = '';
  client.write('ha');
  const [store, other] = [upstreamAt(backend.url), upstreamAt(backend.url, { name: 'another' })];
  front.forwarder.setUpstreams([other]);
  client.write('lf');
  await once(client, 'close');
  expect(statusOf(received)).toBe(503);
  expect(backend.requests).toEqual([]);
  front.forwarder.setUpstreams([other, store]);
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
});

it('a request whose upstream changes during its body goes to the new upstream, with the new Host', async () => {
  const [before, after] = [await startBackend(), await startBackend()];
  const front = await startFor(before.url, { host: 'target' });
  const client = connect(front.port, '127.0.0.1').setEncoding('latin1').resume();
  const fields = 'Host: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nConnection: close';
  client.write(`POST / HTTP/1.1\r\n${fields}\r\n\r\n`);
  // The 100 Continue response shows that the gateway has chosen the old upstream.
  await once(client, 'data');
  front.setUrl(after.url);
  client.write('4\r\nhalf\r\n0\r\n\r\n');
  await once(client, 'close');
  expect(before.requests).toEqual([]);
  const [request] = after.requests;
  expect(request && fieldLines(request)).toEqual([`Host: 127.0.0.1:${after.port}`, 'Content-Length: 4']);
  expect(request?.rawBody).toBe('half');
});

it.each([
  ['the head', { headersMs: 200 }, () => {}],
  [
    'the whole exchange',
    { totalMs: 200 },
    (socket: { write(text: string): void }) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal');
    },
  ],
])('an upstream’s own timeout for %s fires at most a tenth late', async (_what, timeouts, act) => {
  stopTimers(['setInterval', 'clearInterval', 'performance']);
  const backend = await startBackend();
  backend.react = (_request, socket) => act(socket);
  const front = await startFor(backend.url, { timeouts });
  const response = sendRaw(front.port, get('/'));
  await backend.received(1);
  vi.advanceTimersByTime(199);
  await sleep(50);
  expect(front.outcomes).toEqual([]);
  vi.advanceTimersByTime(21);
  await response;
  expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_timeout' }]);
});

it('health checks have the same Host as requests', async () => {
  const backend = await startBackend();
  await startFor(backend.url.replace('127.0.0.1', 'localhost'), { health: '/up', host: 'target' });
  await backend.received(1);
  const [check] = backend.requests;
  expect(check?.target).toBe('/up');
  expect(check && fieldLines(check)).toEqual([`Host: localhost:${backend.port}`]);
});

/** A DNS resolver whose names the test adds and removes. The resolver counts the look-ups of each name. */
function startNames(names: Record<string, readonly string[]>) {
  const asked: string[] = [];
  const resolve = async (hostname: string) => {
    asked.push(hostname);
    const addresses = names[hostname];
    if (addresses === undefined) throw new Error(`getaddrinfo ENOTFOUND ${hostname}`);
    return addresses;
  };
  return { asked, resolve };
}

async function startNamed(url: string, resolve: FrontOptions['resolve']): Promise<Front> {
  const front = await startFront({ url, ...(resolve && { resolve }), bounds: { resolveIntervalMs: 20 } });
  started.push(front);
  return front;
}

/** Returns the URL of a backend with a host name in place of the address. */
const at = (name: string, { url }: RecordingBackend) => url.replace('127.0.0.1', name);

const stateOf = (front: Front) => front.forwarder.state().default;

it('an edit with a host name that cannot be resolved keeps the old targets until it can', async () => {
  const [old, next] = [await startBackend(), await startBackend()];
  const names: Record<string, readonly string[]> = { 'old.test': ['127.0.0.1'] };
  const { asked, resolve } = startNames(names);
  const front = await startNamed(at('old.test', old), resolve);
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);

  const url = at('next.test', next);
  front.setUrl(url);
  for (let i = 0; i < 5; i++) expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
  await until('it was looked up again', () => asked.filter((name) => name === 'next.test').length > 2);
  expect(stateOf(front)).toMatchObject({
    url: at('old.test', old),
    targets: [{ address: `127.0.0.1:${old.port}` }],
    awaited: { url, lookupError: 'getaddrinfo ENOTFOUND next.test' },
  });
  expect([old.requests.length, next.requests.length]).toEqual([6, 0]);

  names['next.test'] = ['127.0.0.1'];
  await until('the new one is in force', () => stateOf(front)?.url === url);
  expect(stateOf(front)).toMatchObject({ awaited: undefined });
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
  expect([old.requests.length, next.requests.length]).toEqual([6, 1]);
  await until('the old connections are closed', () => old.openConnections() === 0);
  const ofOld = asked.filter((name) => name === 'old.test').length;
  const ofNext = asked.length;
  await until('it was looked up again', () => asked.length > ofNext + 2);
  expect(asked.filter((name) => name === 'old.test')).toHaveLength(ofOld);
});

it('an edit that is reverted during its look-up changes nothing', async () => {
  const backend = await startBackend();
  const { asked, resolve } = startNames({ 'old.test': ['127.0.0.1'] });
  const front = await startNamed(at('old.test', backend), resolve);
  await sendRaw(front.port, get('/'));
  front.setUrl('http://next.test:1');
  front.setUrl('http://another.test:1');
  front.setUrl('http://another.test:1');
  await until('it was looked up', () => asked.includes('another.test'));
  front.setUrl(at('old.test', backend));
  expect(stateOf(front)).toMatchObject({ awaited: undefined });
  const { length } = asked;
  await until('names are looked up again', () => asked.length > length + 2);
  expect(new Set(asked.slice(length + 1))).toEqual(new Set(['old.test']));
  await sendRaw(front.port, get('/'));
  expect(new Set(backend.requests.map(({ connection }) => connection)).size).toBe(1);
});

it('an edit of other settings than the host name takes effect at once, even if names cannot be resolved', async () => {
  const backend = await startBackend();
  const names: Record<string, readonly string[]> = { 'old.test': ['127.0.0.1'] };
  const front = await startNamed(at('old.test', backend), startNames(names).resolve);
  await sendRaw(front.port, get('/'));
  delete names['old.test'];
  front.forwarder.setUpstreams([upstreamAt(at('old.test', backend), { host: 'target' })]);
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
  const [, after] = backend.requests;
  expect(after && fieldLines(after)).toContain(`Host: old.test:${backend.port}`);
  await until('/readyz can tell', () => stateOf(front)?.lookupError === 'getaddrinfo ENOTFOUND old.test');
});

it('an edit after a failed look-up is looked up and used', async () => {
  const backend = await startBackend();
  const front = await startNamed('http://old.test:1', startNames({ 'next.test': ['127.0.0.1'] }).resolve);
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(503);
  front.setUrl(at('next.test', backend));
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
});
