import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Gateway } from '../../gateway/server/gateway.ts';
import type { Certificate } from '../../gateway/shared/model.ts';
import { type Bounds, defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { openRawClient, type RawClient } from '../support/raw-http.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const reader = makeToken('read');
const writer = makeToken('write');
const key = makeKey();

function settingsWith(admin: Record<string, unknown>) {
  return settingsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    admin: { host: '127.0.0.1', port: 0, ...admin },
    keys: [key.entry],
  });
}

async function start(admin: Record<string, unknown>, bounds: Bounds = defaultBounds, tls?: Certificate) {
  const settings = await settingsWith(admin);
  const gateway = createGateway({
    settings: { ...settings, admin: { ...settings.admin, ...(tls && { tls }) } },
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds,
  });
  const { port } = (await gateway.start()).admin;
  return { gateway, port };
}

let gateway: Gateway;
let port: number;
beforeAll(async () => {
  // The next test sends up to 10,000 wrong tokens, so the limits per second must not stop the test.
  const bounds = tunedBounds({
    adminConnectionsPerSecondMax: 1_000_000,
    adminTurnsPerSecondMax: 1_000_000,
  });
  ({ gateway, port } = await start({ tokens: [reader.entry, writer.entry], hosts: ['gateway'] }, bounds));
});
afterAll(() => gateway.drain({ graceMs: 0 }));

const plans = '/api/v1/plans';

describe('a token', () => {
  it('that may read or write opens the API, with GET and HEAD', async () => {
    for (const { token } of [reader, writer]) {
      expect((await askAdmin(port, plans, { token })).status).toBe(200);
      const head = await askAdmin(port, plans, { token, method: 'HEAD' });
      expect([head.status, Number(head.headers['content-length']) > 20]).toEqual([200, true]);
    }
  });

  it.each([
    ['is missing', {}, 'missing_token', 'Bearer realm="admin"'],
    [
      'has another scheme',
      { authorization: `Basic ${reader.token}` },
      'missing_token',
      'Bearer realm="admin"',
    ],
    [
      'is wrong',
      { authorization: 'Bearer tga_nobody' },
      'invalid_token',
      'Bearer realm="admin", error="invalid_token"',
    ],
    [
      'is the digest of a token',
      { authorization: `Bearer ${reader.entry.sha256}` },
      'invalid_token',
      'Bearer realm="admin", error="invalid_token"',
    ],
    [
      'is the secret of an API key',
      { authorization: `Bearer ${key.secret}` },
      'invalid_token',
      'Bearer realm="admin", error="invalid_token"',
    ],
  ])('that %s gets 401 on every path', async (_what, headers, code, challenge) => {
    const replies = await Promise.all(
      [plans, '/api/v1/nothing', '/api/v1/'].map((path) => askAdmin(port, path, { headers })),
    );
    for (const { status, body, headers } of replies) {
      expect([status, body.code, headers['www-authenticate']]).toEqual([401, code, challenge]);
    }
  });

  it('that may only read gets 403 for a method that makes changes', async () => {
    const [keys, acme] = ['/api/v1/keys', '/api/v1/keys/acme'];
    const ofKey = [acme, `${acme}/secrets`, `${acme}/secrets/01234567`, `${acme}/unban`, `${acme}/grant`];
    const changeable = [plans, keys, ...ofKey, '/api/v1/changes', '/api/v1/directory'];
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      for (const path of changeable) {
        const { status, body } = await askAdmin(port, path, { token: reader.token, method });
        expect([method, status, body.code]).toEqual([method, 403, 'read_only_token']);
      }
    }
    const { status, headers } = await askAdmin(port, plans, { token: writer.token, method: 'POST' });
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
  });

  it('becomes valid or invalid with a reload', async () => {
    const started = await start({ tokens: [reader.entry] });
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const statuses = async () => [
      (await askAdmin(started.port, plans, { token: reader.token })).status,
      (await askAdmin(started.port, plans, { token: writer.token })).status,
      (await askAdmin(started.port, plans, { token: writer.token, headers: { host: 'new' } })).status,
    ];
    expect(await statuses()).toEqual([200, 401, 421]);
    started.gateway.reload(await settingsWith({ tokens: [writer.entry], hosts: ['NEW'] }));
    expect(await statuses()).toEqual([401, 200, 200]);
  });

  it('is missing from the configuration: every request gets 403, and the response names the command that makes a token', async () => {
    const started = await start({});
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    for (const token of [undefined, reader.token]) {
      const { status, body } = await askAdmin(started.port, plans, token === undefined ? {} : { token });
      expect([status, body.code]).toEqual([403, 'no_tokens']);
      expect(body.message).toContain('tollgate admin token');
    }
  });
});

describe('a name in Host', () => {
  const statusOf = async (host: string, path = plans) =>
    (await askAdmin(port, path, { token: reader.token, headers: { host } })).status;

  it.each([
    'evil.example',
    'evil.example:9090',
    'localhost.evil.example',
    'gateway.evil.example',
    '127.0.0.1.nip.io',
    '127.1',
    '2130706433',
    '[evil.example]',
    '::1',
    '127.0.0.1@evil.example',
  ])('that is not known, %j, gets 421 before the token is checked', async (host) => {
    expect(await statusOf(host)).toBe(421);
    expect(await statusOf(host, '/')).toBe(421);
    const { status, headers } = await askAdmin(port, plans, { headers: { host } });
    expect([status, headers['www-authenticate']]).toEqual([421, undefined]);
  });

  it.each([
    'localhost',
    'LOCALHOST:1',
    '127.0.0.1',
    '10.0.0.7:9090',
    '[::1]:9090',
    'gateway',
    'Gateway:9090',
  ])('%j is known: an address, localhost or one of admin.hosts', async (host) => {
    expect(await statusOf(host)).toBe(200);
  });

  it('does not matter on the paths for programs', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const headers = { host: 'evil.example', origin: 'https://evil.example' };
      expect([path, (await askAdmin(port, path, { headers })).status]).toEqual([path, 200]);
      expect((await askAdmin(port, path, { method: 'HEAD' })).status).toBe(200);
      expect((await askAdmin(port, path, { method: 'POST' })).headers.allow).toBe('GET, HEAD');
    }
  });
});

it.each([
  ['https://evil.example', 403],
  ['null', 403],
  ['http://127.0.0.1:1', 403],
  ['file://', 403],
  ['http://gateway:9090.evil.example', 403],
  ['http://gateway:9090', 200],
  ['https://gateway:9090', 200],
])('a request with Origin %j gets %i', async (origin, status) => {
  const headers = { host: 'gateway:9090', origin };
  expect((await askAdmin(port, plans, { token: reader.token, headers })).status).toBe(status);
  const preflight = await askAdmin(port, plans, { method: 'OPTIONS', headers });
  expect(preflight.status).toBe(status === 200 ? 401 : 403);
});

describe('a request', () => {
  it.each([
    ['/api/v1/plans?q=1', 'There is no query parameter `q` here; this path has none.'],
    ['/api/v1/plans?q', 'There is no query parameter `q` here; this path has none.'],
    [`/api/v1/plans?${reader.token}=1`, 'There is an unknown query parameter; this path has none.'],
  ])('for %s gets 400', async (path, message) => {
    const { status, body } = await askAdmin(port, path, { token: reader.token });
    expect([status, body]).toEqual([400, { code: 'invalid_request', message, status: 400 }]);
  });

  it.each([
    '/api/v1/',
    '/api/v1/plans/',
    '/api/v1//plans',
    '/api/v1/nothing',
    '/api/v2/plans',
    '/nowhere',
    '/api/v1',
  ])('for %s gets 404', async (path) => {
    expect((await askAdmin(port, path, { token: reader.token })).status).toBe(404);
  });

  it.each([
    ['that is malformed', 'GET /api/v1/plans HTTP/9\r\n\r\n', 400],
    ['whose URI is too long', `GET /${'a'.repeat(3_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 414],
    ['whose fields are too large', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ['that expects something else', 'GET / HTTP/1.1\r\nHost: localhost\r\nExpect: cake\r\n\r\n', 417],
    ['without Host', 'GET /api/v1/plans HTTP/1.1\r\n\r\n', 421],
    ['with two Hosts', 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n', 400],
    [
      'with two tokens',
      `GET ${plans} HTTP/1.1\r\nHost: localhost\r\n${`Authorization: Bearer ${reader.token}\r\n`.repeat(2)}\r\n`,
      400,
    ],
    [
      'whose body of 20,000 chunks of one octet is no JSON',
      `POST /api/v1/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${writer.token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(20_000)}0\r\n\r\n`,
      400,
    ],
  ])('%s gets the status, fields and body of its error', async (_what, bytes, status) => {
    const client = await openRawClient(port);
    onTestFinished(() => client.destroy());
    client.send(bytes);
    const { status: received, headers, body } = await client.response();
    expect(received).toBe(status);
    expect(JSON.parse(body)).toEqual({ code: expect.any(String), message: expect.any(String), status });
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('above the limit of open API requests gets 503', async () => {
    const started = await start({ tokens: [reader.entry] }, tunedBounds({ adminRequestsMax: 0 }));
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const busy = await askAdmin(started.port, plans, { token: reader.token });
    expect([busy.status, busy.body.code, busy.headers['retry-after']]).toEqual([503, 'busy', '1']);
    expect((await askAdmin(started.port, '/healthz')).status).toBe(200);
  });

  it('for any path waits for its turn, so responses never exceed the rate', async () => {
    const bounds = tunedBounds({ adminTurnsPerSecondMax: 100, adminTurnsAtOnceMax: 1 });
    const started = await start({}, bounds);
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const paths = [
      '/healthz',
      '/readyz',
      '/metrics',
      '/',
      '/nothing',
      plans,
      '/assets/admin/pages/browser/main.js',
    ];
    const beganMs = performance.now();
    await Promise.all(paths.map((path) => fetch(`http://127.0.0.1:${started.port}${path}`)));
    expect((paths.length - 1) / (performance.now() - beganMs)).toBeLessThanOrEqual(100 / 1_000);
  });

  it('with a long body takes a turn for each slice of the body', async () => {
    const bounds = tunedBounds({ adminTurnsPerSecondMax: 100, adminTurnsAtOnceMax: 1, adminParsingMs: 0 });
    const started = await start({ tokens: [writer.entry] }, bounds);
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const beganMs = performance.now();
    const json = { id: 'x'.repeat(7 * bounds.adminSliceBytes) };
    const { status } = await askAdmin(started.port, '/api/v1/keys', { method: 'POST', json, ...writer });
    expect([status, performance.now() - beganMs > 70]).toEqual([400, true]);
  });

  it('of an operator is answered while connections of the same address wait for their turn', async () => {
    const bounds = tunedBounds({ adminConnectionsPerSecondMax: 100, adminConnectionsAtOnceMax: 1 });
    const started = await start({}, bounds);
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const beganMs = performance.now();
    const clients = await Promise.all(Array.from({ length: 8 }, () => openRawClient(started.port)));
    for (const client of clients) client.send('no HTTP\r\n\r\n');
    expect((await askAdmin(started.port, '/readyz')).status).toBe(200);
    expect(8 / (performance.now() - beganMs)).toBeLessThanOrEqual(100 / 1_000);
    await Promise.all(clients.map(({ closed }) => closed));
  });

  it('with a token does not wait for connections without a token from the same address', async () => {
    const bounds = tunedBounds({ adminConnectionsPerSecondMax: 20, adminConnectionsAtOnceMax: 1 });
    const started = await start({ tokens: [reader.entry] }, bounds);
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const clients = await Promise.all(Array.from({ length: 24 }, () => openRawClient(started.port)));
    let answered = 0;
    const responses = clients.map(async (client) => {
      client.send(`GET ${plans} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      const { status } = await client.response();
      answered += 1;
      return status;
    });
    expect((await askAdmin(started.port, plans, { token: reader.token })).status).toBe(200);
    expect(answered).toBeLessThan(clients.length);
    expect(new Set(await Promise.all(responses))).toEqual(new Set([401]));
    for (const client of clients) client.destroy();
  });

  it('is answered if its client sends it after the turn of its connection', async () => {
    const bounds = tunedBounds({ adminConnectionsPerSecondMax: 20, adminConnectionsAtOnceMax: 1 });
    const started = await start({}, bounds);
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const clients = [];
    for (let opened = 0; opened < 4; opened++) clients.push(await openRawClient(started.port));
    // The last connection has its turn after the other connections, which have sent nothing yet.
    for (const client of clients.toReversed()) {
      client.send('GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      expect((await client.response()).status).toBe(200);
    }
  });

  it('with a token is served while its address has all connections that it may have', async () => {
    const bounds = tunedBounds({
      adminConnectionsMax: 8,
      adminConnectionsPerSecondMax: 20,
      adminConnectionsAtOnceMax: 1,
    });
    const started = await start({ tokens: [reader.entry] }, bounds);
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const kept = await openRawClient(started.port);
    onTestFinished(() => kept.destroy());
    const ask = async () => {
      const fields = ['Host: localhost', `Authorization: Bearer ${reader.token}`];
      kept.send([`GET ${plans} HTTP/1.1`, ...fields, '', ''].join('\r\n'));
      return (await kept.response()).status;
    };
    expect(await ask()).toBe(200);
    // One address may have four connections. These six clients send nothing, and replace each other.
    for (let opened = 0; opened < 6; opened++) {
      const client = await openRawClient(started.port);
      onTestFinished(() => client.destroy());
    }
    expect((await askAdmin(started.port, plans, { token: reader.token })).status).toBe(200);
    expect(await ask()).toBe(200);
  });

  it('that is pipelined behind four without a response ends its connection', async () => {
    const client = await openRawClient(port);
    client.send('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_000));
    await client.closed;
    expect((await askAdmin(port, '/healthz')).status).toBe(200);
  });
});

describe('connections beyond what one client address may have', () => {
  const certificate = makeCertificate();
  it.each([
    ['without TLS', undefined, {}],
    ['over TLS', certificate, { ca: certificate.cert }],
  ])('%s replace the connection that has been idle for the longest', async (_how, tls, trust) => {
    const bounds = tunedBounds({ adminConnectionsMax: 4, adminBodyTimeoutMs: 60_000 });
    const started = await start({ tokens: [reader.entry] }, bounds, tls);
    onTestFinished(() => started.gateway.drain({ graceMs: 0 }));
    const open = async (localAddress: string) => {
      const client = await openRawClient(started.port, { localAddress, ...trust });
      onTestFinished(() => client.destroy());
      return client;
    };
    const served = async (client: RawClient) => {
      client.send('GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n');
      return (await client.response()).status;
    };
    // The limit is four connections in total, so one address may have two.
    const [first, second] = [await open('127.0.0.1'), await open('127.0.0.1')];
    expect(await served(first)).toBe(200);
    const third = await open('127.0.0.1');
    await second.closed;
    expect([await served(third), await served(first)]).toEqual([200, 200]);

    // Two other addresses use the remaining connections. When a client with a fourth address connects, the server closes an idle
    // connection of another address.
    await Promise.all([await open('127.0.0.2'), await open('127.0.0.3')].map(served));
    expect(await served(await open('127.0.0.4'))).toBe(200);
    await third.closed;
    expect(await served(first)).toBe(200);

    // A connection with a request in progress is not closed. When no connection is free, a new connection is closed if its address has no
    // idle connection.
    const fields = [
      'Host: localhost',
      `Authorization: Bearer ${reader.token}`,
      'Content-Type: application/json',
    ];
    first.send(['POST /api/v1/whoami HTTP/1.1', ...fields, 'Content-Length: 2', '', ''].join('\r\n'));
    await (await open('127.0.0.1').catch(() => undefined))?.closed;
    first.send('{}');
    expect((await first.response()).status).toBe(400);
  });
});

for (const guesses of [500, 10_000])
  it(`after the first of ${guesses} wrong tokens an address gets 429, and its valid token is still served`, {
    tags: guesses === 500 ? [] : ['full'],
  }, async () => {
    const statuses = new Map<number, number>();
    let retryAfter: string | undefined;
    const guess = async (index: number) => {
      const { status, headers, text } = await askAdmin(port, plans, { token: `tga_${index}` });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 429) retryAfter = String(headers['retry-after']);
      expect(text).not.toContain(`tga_${index}`);
    };
    for (let index = 0; index < guesses; index += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, offset) => guess(index + offset)));
      if (index % 250 === 0) {
        expect((await askAdmin(port, plans, { token: reader.token })).status).toBe(200);
      }
    }
    expect([...statuses.keys()].every((status) => status === 401 || status === 429)).toBe(true);
    // The bound is inexact, because an earlier test has already sent wrong tokens, and a minute may end during this test.
    expect(statuses.get(429)).toBeGreaterThan(guesses - 100);
    expect(retryAfter).toMatch(/^([1-9]|[1-5]\d|60)$/);
  });
