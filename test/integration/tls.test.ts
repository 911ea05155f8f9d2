import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { request } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../support/gateway-process.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { exchangeRaw, openRawClient } from '../support/raw-http.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const key = makeKey({ plan: 'enterprise', limits: { perMinute: 1_000_000 } });
const get = `GET /v1/pets HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer ${key.secret}\r\n\r\n`;
const token = makeToken();
const dayMs = 86_400_000;

let folder: string;
let backend: RecordingBackend;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-tls-'));
  backend = await startRecordingBackend({ react: (_request, socket) => socket.write(okResponse('{}')) });
});
beforeEach(() => {
  backend.requests.length = 0;
});
afterAll(async () => {
  await backend.close();
  await rm(folder, { recursive: true });
});

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** Writes a certificate. A second call replaces the files, as renewal tools do. @returns the paths of the files */
async function write(name: string, pair: Pair): Promise<Pair> {
  const paths = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) };
  for (const part of ['cert', 'key'] as const) {
    await writeFile(`${paths[part]}.new`, pair[part]);
    await rename(`${paths[part]}.new`, paths[part]);
  }
  return paths;
}

async function start(overrides: Record<string, unknown>, tuning: Tuning = {}): Promise<RunningGateway> {
  const upstream = { url: backend.url, health: '/healthz' };
  const bounds = { healthTimeoutMs: 20_000, ...tuning.bounds };
  const gateway = await startGatewayHere(testConfig({ upstream, keys: [key.entry], ...overrides }), {
    tuning: { windowsMs: freshWindows(Date.now()), ...tuning, bounds },
  });
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

function listenWith(tls: Pair) {
  return { listen: { host: '127.0.0.1', port: 0, tls } };
}

interface Readyz {
  readonly status: string;
  readonly reasons: readonly string[];
  readonly certificates: Record<string, { readonly notAfter: string; readonly notice?: string }>;
  readonly config: { readonly version: string; readonly lastError?: string };
}

async function readyz({ adminUrl }: RunningGateway): Promise<Readyz> {
  return (await (await fetch(`${adminUrl}/readyz`)).json()) as Readyz;
}

/** The events about certificates, the newest first. */
async function noticesIn({ adminUrl }: RunningGateway): Promise<readonly string[]> {
  const { body } = await askAdmin(Number(new URL(adminUrl).port), '/api/v1/events', { token: token.token });
  return body.events.map(({ text }: { text: string }) => text);
}

/** The certificate that the gateway presents to a new connection, in PEM. */
async function presented(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerX509Certificate()?.toString() ?? '';
  socket.destroy();
  return certificate;
}

describe('a certificate that is replaced on disk', () => {
  it('is presented to new connections, and no request on any connection fails meanwhile', async () => {
    const first = makeCertificate({ host: 'first' });
    const second = makeCertificate({ host: 'second' });
    const gateway = await start(listenWith(await write('swapped', first)));
    const clients = await Promise.all(
      Array.from({ length: 8 }, () => openRawClient(gateway.port, { ca: first.cert })),
    );
    let going = true;
    let served = 0;
    const load = clients.map(async (client) => {
      while (going) {
        client.send(get);
        served += Number((await client.response()).status === 200);
      }
    });
    // New connections are opened throughout the change, and their clients trust both certificates.
    const newcomers = (async () => {
      while (going) {
        const client = await openRawClient(gateway.port, { ca: first.cert + second.cert });
        client.send(get);
        expect((await client.response()).status).toBe(200);
        client.destroy();
      }
    })();
    await until('it is under load', () => served > 100);

    await write('swapped', second);
    await until('the new one is presented', async () => (await presented(gateway.port)) === second.cert);
    const before = served;
    await until('the connections of before are served', () => served > before + 100);
    going = false;
    await Promise.all([...load, newcomers]);
    expect(await readyz(gateway)).toMatchObject({
      status: 'ok',
      certificates: { listen: { notAfter: new Date(second.notAfterMs).toISOString() } },
    });
    for (const client of clients) client.destroy();
  });

  it('with a broken pair changes nothing, and log and /readyz report it until the repair', {
    tags: 'full',
  }, async () => {
    const good = makeCertificate();
    const gateway = await start(listenWith(await write('broken', good)));
    await write('broken', { ...good, key: makeCertificate().key });
    await gateway.line(({ msg }) => String(msg).startsWith('the configuration was not reloaded'));
    expect(await presented(gateway.port)).toBe(good.cert);
    const broken = await readyz(gateway);
    expect(broken.status).toBe('degraded');
    expect(broken.config.lastError).toMatch(/broken\.key:1:1: this key does not belong to/);
    await write('broken', makeCertificate());
    await until('it is well again', async () => (await readyz(gateway)).status === 'ok');
    expect(await presented(gateway.port)).not.toBe(good.cert);
  });

  it('never appears, nor does its key, in a log or a response of the admin listener', async () => {
    const good = makeCertificate();
    const gateway = await start(listenWith(await write('secret', good)));
    const other = makeCertificate();
    await write('secret', { cert: other.key, key: good.cert });
    await until('it is refused', async () => (await readyz(gateway)).status === 'degraded');
    await write('secret', { cert: good.cert, key: other.key.slice(0, 120) });
    await gateway.line(({ msg }) => String(msg).includes('is it cut off?'));
    const shown = gateway.output() + JSON.stringify(await readyz(gateway));
    const lines = [good.key, other.key].flatMap((pem) => pem.split('\n').slice(1, -2));
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) expect(shown).not.toContain(line.slice(0, 10));
  });
});

describe('the expiry of a certificate', () => {
  it('is announced 14 days before, in /readyz and in the log, and when it has passed', {
    tags: 'full',
  }, async () => {
    const brief = makeCertificate({ notBeforeMs: Date.now() - dayMs, notAfterMs: Date.now() + 13 * dayMs });
    const end = new Date(brief.notAfterMs).toISOString();
    const bounds = { certificateNoticeIntervalMs: 100 };
    const admin = { host: '127.0.0.1', port: 0, tokens: [token.entry] };
    const gateway = await start(
      { ...listenWith(await write('brief', brief)), admin },
      { bounds, clockLeapMs: 13 * dayMs },
    );
    const soon = await readyz(gateway);
    expect(soon.status).toBe('degraded');
    expect(soon.certificates.listen?.notAfter).toBe(end);
    expect(soon.reasons).toEqual([expect.stringContaining(`\`listen.tls\` expires on ${end}`)]);
    await gateway.line(({ level, msg }) => level === 40 && String(msg).includes(`expires on ${end}`));

    gateway.leapClock();
    await gateway.line(({ level, msg }) => level === 40 && String(msg).includes(`expired on ${end}`));
    expect((await readyz(gateway)).reasons).toEqual([expect.stringContaining(`expired on ${end}`)]);
    // Each warning is one event, although the gateway logs the warning repeatedly.
    expect(await noticesIn(gateway)).toEqual([
      expect.stringContaining(`expired on ${end}`),
      expect.stringContaining(`expires on ${end}`),
    ]);
    // The gateway still presents the expired certificate, and edits still take effect.
    expect(await presented(gateway.port)).toBe(brief.cert);
    const before = (await readyz(gateway)).config.version;
    const upstream = { url: backend.url, health: '/healthz' };
    const listen = listenWith({ cert: join(folder, 'brief.pem'), key: join(folder, 'brief.key') });
    await gateway.editConfig(testConfig({ upstream, keys: [], ...listen }));
    await until('an edit takes effect', async () => (await readyz(gateway)).config.version !== before);
    expect((await readyz(gateway)).config.lastError).toBeUndefined();
  });
});

describe('over TLS', () => {
  const certificate = makeCertificate();
  let tls: Pair;
  beforeAll(async () => {
    tls = await write('own', certificate);
  });

  it('the upstream reads X-Forwarded-Proto: https, unless a trusted proxy says otherwise', async () => {
    const protoOf = async (gateway: RunningGateway, field: string) => {
      const client = await openRawClient(gateway.port, { ca: certificate.cert });
      client.send(get.replace('\r\n\r\n', `\r\n${field}\r\n\r\n`));
      expect((await client.response()).status).toBe(200);
      client.destroy();
      return /^x-forwarded-proto: (.*)\r$/im.exec(backend.requests.at(-1)?.head ?? '')?.[1];
    };
    const direct = await start(listenWith(tls));
    expect(await protoOf(direct, 'X-A: b')).toBe('https');
    expect(await protoOf(direct, 'X-Forwarded-Proto: http')).toBe('https');
    const behind = await start({ ...listenWith(tls), trustedProxies: ['127.0.0.1'] });
    expect(await protoOf(behind, 'X-A: b')).toBe('https');
    expect(await protoOf(behind, 'X-Forwarded-Proto: http')).toBe('http');
  });

  it('every response has Strict-Transport-Security if hsts is set, and none in cleartext', async () => {
    const hsts = { maxAge: '365d', includeSubDomains: true };
    const gateway = await start({ ...listenWith(tls), hsts });
    const secure = async (bytes: string) => {
      const client = await openRawClient(gateway.port, { ca: certificate.cert });
      client.send(bytes);
      const { status, headers } = await client.response();
      client.destroy();
      return [status, headers.get('strict-transport-security')];
    };
    const value = 'max-age=31536000; includeSubDomains';
    expect(await secure(get)).toEqual([200, value]);
    expect(await secure('GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n')).toEqual([401, value]);
    expect(await secure('GET /p ets HTTP/1.1\r\nHost: a\r\n\r\n')).toEqual([400, value]);
    const [cleartext] = await exchangeRaw(gateway.port, get);
    expect([cleartext?.status, cleartext?.headers.get('strict-transport-security')]).toEqual([
      400,
      undefined,
    ]);
    const without = await start({ listen: { host: '127.0.0.1', port: 0 }, hsts });
    const client = await openRawClient(without.port);
    client.send(get);
    expect((await client.response()).headers.get('strict-transport-security')).toBeUndefined();
    client.destroy();
  });

  it('a client without TLS gets 400 with the headers of every error, is charged, and nothing is forwarded', async () => {
    const gateway = await start({ ...listenWith(tls), addressBucket: { perMinute: 30 } });
    const responses = [await exchangeRaw(gateway.port, get), await exchangeRaw(gateway.port, get)].flat();
    expect(responses.map(({ status, headers }) => [status, headers.get('x-ratelimit-remaining')])).toEqual([
      [400, '29'],
      [400, '28'],
    ]);
    const [response] = responses;
    expect(JSON.parse(response?.body ?? '')).toEqual({
      code: 'invalid_request',
      message: 'This port speaks TLS: use https:// in place of http://.',
      status: 400,
    });
    for (const name of ['x-request-id', 'x-ratelimit-limit', 'x-ratelimit-reset', 'ratelimit', 'date']) {
      expect(response?.headers.get(name), name).toBeDefined();
    }
    expect(backend.requests).toEqual([]);
    const line = await gateway.line(({ requestId }) => requestId === response?.headers.get('x-request-id'));
    expect(line).toMatchObject({ status: 400, error: 'invalid_request', fault: 'client' });
    expect(gateway.output()).not.toContain(key.secret);
  });

  it('failed handshakes are logged together, with their number', { tags: 'full' }, async () => {
    const gateway = await start(listenWith(tls), { bounds: { tlsFailuresIntervalMs: 3_000 } });
    const garbage = Buffer.from([0x16, 0xff, 0xff, 0x00, 0x01, 0x01]);
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = connectTcp(gateway.port, '127.0.0.1');
        socket.on('error', () => {});
        socket.write(garbage);
        socket.resume();
        await new Promise((resolve) => socket.once('close', resolve));
      }),
    );
    const isAbout = ({ msg }: Record<string, unknown>) => msg === 'TLS handshakes failed';
    const countOf = (line: Record<string, unknown>) =>
      Object.values(line.failed as Record<string, number>).reduce((sum, count) => sum + count, 0);
    await until(
      'all are counted',
      () =>
        gateway.lines
          .filter(isAbout)
          .map(countOf)
          .reduce((sum, count) => sum + count, 0) === 100,
    );
    expect(gateway.lines.filter(isAbout).length).toBeLessThan(20);
    expect(gateway.lines.filter(isAbout)[0]).toMatchObject({ listener: 'listen' });
  });
});

describe('the admin listener over TLS', () => {
  it('responds only over TLS, follows its certificate file, and reports the end of both certificates', async () => {
    const own = makeCertificate();
    const admin = { host: '127.0.0.1', port: 0, tls: await write('admin', own) };
    const gateway = await start({ admin });
    const port = Number(new URL(gateway.adminUrl).port);
    const ask = (ca: string) =>
      new Promise<{ status: number; body: string }>((resolve, reject) => {
        const options = { port, host: '127.0.0.1', path: '/readyz', ca, agent: false };
        const sent = request(options, (response) => {
          let body = '';
          response.setEncoding('utf8').on('data', (text: string) => {
            body += text;
          });
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
        });
        sent.on('error', reject).end();
      });
    const { status, body } = await ask(own.cert);
    expect(status).toBe(200);
    expect((JSON.parse(body) as Readyz).certificates).toEqual({
      admin: { notAfter: new Date(own.notAfterMs).toISOString() },
    });

    const cleartext = await fetch(`${gateway.adminUrl}/readyz`);
    expect([cleartext.status, await cleartext.json()]).toEqual([
      400,
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining('https://') }),
    ]);

    const next = makeCertificate();
    await write('admin', next);
    await until('it presents the new one', async () => (await presented(port)) === next.cert);
    expect((await ask(next.cert)).status).toBe(200);
    expect(await gateway.stop()).toBe(0);
  });
});

describe('WebSockets over TLS', () => {
  it('carry messages in both directions, and end gently when the gateway drains', async () => {
    const certificate = makeCertificate();
    const server = createServer((_req, res) => res.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    new WebSocketServer({ server }).on('connection', (socket) => {
      socket.on('message', (data) => socket.send(data));
    });
    const api = join(folder, 'api.json');
    const feed = {
      get: { operationId: 'feed', 'x-upgrade': 'websocket', responses: { 200: { description: 'x' } } },
    };
    await writeFile(
      api,
      JSON.stringify({ openapi: '3.1.0', info: { title: 'x', version: '1' }, paths: { '/feed': feed } }),
    );
    const { port } = server.address() as { port: number };
    const gateway = await start({
      ...listenWith(await write('socket', certificate)),
      upstream: { url: `http://127.0.0.1:${port}`, health: '/healthz' },
      api,
    });
    const client = new WebSocket(`wss://127.0.0.1:${gateway.port}/v1/feed`, {
      ca: certificate.cert,
      headers: { authorization: `Bearer ${key.secret}` },
    });
    client.on('error', () => {});
    const messages: Buffer[] = [];
    client.on('message', (data: Buffer) => messages.push(data));
    await once(client, 'open');
    const large = Buffer.alloc(3_000_000, 'x');
    client.send('hello');
    client.send(large);
    await until('both are back', () => messages.length === 2);
    expect([messages[0]?.toString(), messages[1]?.length]).toEqual(['hello', large.length]);
    const closed = once(client, 'close');
    expect(await gateway.stop()).toBe(0);
    await closed;
  });
});
