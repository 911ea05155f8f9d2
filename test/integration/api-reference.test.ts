import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { openApiFaults } from '../support/openapi-faults.ts';
import { openRawClient } from '../support/raw-http.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { until } from '../support/until.ts';

const key = makeKey();
const bearer = { authorization: `Bearer ${key.secret}` };
const assets = ['swagger-ui.js', 'swagger-ui.css', 'theme.js', 'page.js', 'page.css'].map(
  (name) => `/docs/${name}`,
);

async function start(overrides: Record<string, unknown> = {}, bounds: Partial<Bounds> = {}) {
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  const base = { upstream: { url: backend.url, health: '/healthz' }, keys: [key.entry] };
  const settings = await settingsOf({ ...base, docsPath: '/docs', ...overrides });
  const lines: Record<string, unknown>[] = [];
  // The clock is stopped, so that all requests count in one minute.
  const nowMs = Date.now();
  const gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: (line) => void lines.push(JSON.parse(line)) },
    bounds: tunedBounds(bounds),
    nowMs: () => nowMs,
  });
  const { port } = (await gateway.start()).listen;
  onTestFinished(async () => {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  });
  const send = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init);
  const reload = async (next: Record<string, unknown>) =>
    gateway.reload(await settingsOf({ ...base, docsPath: '/docs', ...next }));
  return { send, port, lines, reload, forwarded: backend.requests };
}

/** Opens a connection, requests the largest asset, and reads no octet of the response. */
async function openReader(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  socket.write('GET /docs/swagger-ui.js HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  return socket;
}

it('the API reference needs no key and has its own buckets: no quota and no request without a key is charged', async () => {
  const { send, lines, forwarded } = await start({ addressBucket: { perMinute: 1 } });
  for (const path of ['/docs', '/openapi.json', ...assets]) {
    const { status, headers } = await send(path);
    expect([path, status]).toEqual([path, 200]);
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'public, max-age=60',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'x-ratelimit-limit': '600',
      'ratelimit-policy': '"docs";q=600;w=60',
    });
  }
  expect((await send('/v1/pets')).status).toBe(401);
  expect((await send('/v1/pets', { headers: bearer })).headers.get('x-ratelimit-remaining')).toBe('59');
  expect(forwarded).toHaveLength(1);
  expect(lines[0]).toMatchObject({ path: '/docs', status: 200, decision: 'counted', window: 'docs' });
});

it('the API reference runs only its own scripts and styles, and cannot be framed', async () => {
  const { send } = await start();
  const response = await send('/docs');
  const policy = response.headers.get('content-security-policy') ?? '';
  expect(policy.split('; ')).toEqual(
    expect.arrayContaining([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
    ]),
  );
  const page = await response.text();
  const loaded = [...page.matchAll(/(?:src|href)="(\/[^"]*)"/g)].map(([, path]) => path);
  expect(loaded.sort()).toEqual([...assets, '/openapi.json'].sort());
  expect(page).not.toMatch(/<script>|<style|https?:|\son\w+=/);
});

it('the paths of the API reference are ordinary paths when it is off', async () => {
  const { send } = await start({ docsPath: undefined });
  for (const path of ['/docs', '/openapi.json', ...assets]) {
    expect((await send(path)).status).toBe(401);
    expect((await send(path, { headers: bearer })).status).toBe(404);
  }
});

const paths = [
  ['/docs/', 401],
  ['/docs/../v1/pets', 400],
  ['/docs/..', 400],
  ['/docs/%2e%2e/v1/pets', 400],
  ['/docs//swagger-ui.js', 400],
  ['//docs', 400],
  ['/Docs', 401],
  ['/docs/package.json', 401],
  ['/docs/swagger-ui.js/', 401],
  ['/docs/__proto__', 401],
  ['/__proto__', 401],
  ['/constructor', 401],
  ['/v1/docs', 401],
  ['/v1/openapi.json', 401],
  ['/docs;a', 400],
  ['/docs?url=https://evil.example/openapi.json', 200],
] as const;

it('only the exact path is the API reference', async () => {
  const { port } = await start();
  for (const [path, status] of paths) {
    const client = await openRawClient(port);
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    expect([path, (await client.response()).status]).toEqual([path, status]);
  }
});

it('a key in the query is in no log line and in no response', async () => {
  const { send, lines } = await start();
  for (const path of ['/docs', '/openapi.json', '/docs/page.js']) {
    expect(await (await send(`${path}?key=${key.secret}`)).text()).not.toContain(key.secret);
  }
  expect(lines.map(({ path }) => path)).toEqual(['/docs', '/openapi.json', '/docs/page.js']);
  expect(JSON.stringify(lines)).not.toContain(key.secret);
});

it('HEAD has the fields of GET, a known ETag gives 304, and other methods get 405', async () => {
  const { send } = await start();
  const get = await send('/docs/swagger-ui.js', { headers: { 'accept-encoding': 'identity' } });
  const bytes = Buffer.from(await get.arrayBuffer());
  expect(bytes.length).toBeGreaterThan(1_000_000);
  const head = await send('/docs/swagger-ui.js', {
    method: 'HEAD',
    headers: { 'accept-encoding': 'identity' },
  });
  expect(Number(head.headers.get('content-length'))).toBe(bytes.length);
  expect(head.headers.get('etag')).toBe(get.headers.get('etag'));
  const coded = await send('/docs/swagger-ui.js', { headers: { 'accept-encoding': 'br' } });
  expect(Number(coded.headers.get('content-length'))).toBeLessThan(bytes.length / 3);
  const digest = (body: Uint8Array) => createHash('sha256').update(body).digest('hex');
  expect(digest(new Uint8Array(await coded.arrayBuffer()))).toBe(digest(bytes));
  const known = { 'if-none-match': get.headers.get('etag') ?? '', 'accept-encoding': 'identity' };
  expect((await send('/docs/swagger-ui.js', { headers: known })).status).toBe(304);
  for (const method of ['POST', 'DELETE', 'OPTIONS']) {
    const refused = await send('/docs', { method });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  }
});

it('an edit of a plan appears in the document, with another ETag', async () => {
  const { send, reload } = await start({ plans: { free: { perMinute: 61 } } });
  const before = await send('/openapi.json');
  const text = await before.text();
  expect(text).toContain('| free | 61 |');
  expect(openApiFaults(JSON.parse(text))).toEqual([]);
  await reload({ plans: { free: { perMinute: 62 } } });
  const known = { 'if-none-match': before.headers.get('etag') ?? '' };
  const after = await send('/openapi.json', { headers: known });
  expect(after.status).toBe(200);
  expect(await after.text()).toContain('| free | 62 |');
});

it('an address above its limit of reads a minute gets no page, and its requests with a key are unaffected', async () => {
  const { send } = await start({}, { docsReadsPerMinuteMax: 2 });
  const statuses = [];
  for (let read = 0; read < 3; read++)
    statuses.push((await send('/docs/page.css', { method: 'HEAD' })).status);
  expect(statuses).toEqual([200, 200, 429]);
  const refused = await send('/docs');
  expect(await refused.text()).toMatch(/"Too many requests for pages from this address\. Retry in \d+ s\."/);
  expect((await send('/v1/pets', { headers: bearer })).status).toBe(200);
});

it('an address that reads nothing fills only its share of the unread responses, and other addresses are served', async () => {
  const docsUnreadBytesMax = 20_000_000;
  const { port, lines } = await start({}, { docsUnreadBytesMax, docsReadBytesPerSecond: 1_000 });
  for (let i = 0; i < 40; i++) await openReader(port, '127.0.0.2');
  await until('all are answered', () => lines.length === 40);
  const admitted = lines.filter(({ status }) => status === 200).length;
  expect(lines.filter(({ status }) => status === 429)).toHaveLength(40 - admitted);
  const bytes = 1_500_000;
  expect(admitted).toBeGreaterThan(1);
  expect(admitted * bytes).toBeLessThanOrEqual(docsUnreadBytesMax / 2);
  const client = await openRawClient(port, { localAddress: '127.0.0.3' });
  client.send('GET /docs/swagger-ui.js HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const { status, body } = await client.response();
  expect([status, body.length > bytes]).toEqual([200, true]);
});

it('memory for a response is free again once the response was read', async () => {
  const { send } = await start({}, { docsUnreadBytesMax: 4_000_000, docsReadBytesPerSecond: 1_000_000_000 });
  for (let visit = 0; visit < 20; visit++) {
    const response = await send('/docs/swagger-ui.js', { headers: { 'accept-encoding': 'identity' } });
    expect([visit, response.status]).toEqual([visit, 200]);
    await response.arrayBuffer();
  }
});

it('a client that takes too long to read is disconnected', async () => {
  const { port, lines } = await start({}, { docsReadTimeoutMs: 200 });
  const reader = await openReader(port, '127.0.0.1');
  await until('it is answered', () => lines.length === 1);
  const closed = new Promise<void>((resolve) => reader.once('close', () => resolve()));
  setTimeout(() => reader.resume(), 1_000);
  await closed;
});

it('pages of an origin that CORS allows may read the document, with the Vary field for caches', async () => {
  const { send } = await start({ cors: { origins: ['https://app.example.com'] } });
  const { headers } = await send('/openapi.json', { headers: { origin: 'https://app.example.com' } });
  expect(headers.get('access-control-allow-origin')).toBe('https://app.example.com');
  expect(headers.get('vary')).toBe('Origin, Accept-Encoding');
});
