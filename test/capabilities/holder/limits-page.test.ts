import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import type { WindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { readReply } from '../../support/read-reply.ts';
import { okResponse, startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { startRedis } from '../../support/start-redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

const dayMs = 86_400_000;
const plans = { small: { perMinute: 5, perDay: 50 } };

/** A gateway with these settings and a stopped clock, and functions to send requests with its keys. */
async function start(
  overrides: Record<string, unknown>,
  keys = [makeKey({ plan: 'small' })],
  windowsMs?: WindowsMs,
  bounds: Partial<Bounds> = {},
) {
  const nowMs = Date.now();
  const backend = await startRecordingBackend({
    react: (_, socket) => socket.write(okResponse('[]', 200, ['X-Key-Expires: never'])),
  });
  const settings = await settingsOf({
    upstream: { url: backend.url, health: '/healthz' },
    plans,
    limitsPath: '/limits',
    keys: keys.map(({ entry }) => entry),
    ...overrides,
  });
  const lines: Record<string, unknown>[] = [];
  const gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: (line) => void lines.push(JSON.parse(line)) },
    bounds: tunedBounds({ ...patientStore, ...bounds, windowsMs }),
    nowMs: () => nowMs,
  });
  const { listen, admin } = await gateway.start();
  const { port } = listen;
  onTestFinished(async () => {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  });
  const send = async (
    path: string,
    init: RequestInit & { key?: { secret: string } | null | undefined } = {},
  ) => {
    const { key = keys[0], ...rest } = init;
    const headers = { ...(key && { authorization: `Bearer ${key.secret}` }), ...rest.headers };
    return readReply(await fetch(`http://127.0.0.1:${port}${path}`, { ...rest, headers }));
  };
  return { send, nowMs, lines, forwarded: backend.requests, port, adminPort: admin.port };
}

it('a key reads its limits and what remains of them, and is not charged for that', async () => {
  const { send, nowMs, lines, forwarded } = await start({
    plans: { small: { ...plans.small, concurrent: 9 } },
  });
  for (let i = 0; i < 2; i++) await send('/v1/pets');
  const nextMinute = new Date((Math.floor(nowMs / 60_000) + 1) * 60_000).toISOString();
  const nextDay = new Date((Math.floor(nowMs / dayMs) + 1) * dayMs).toISOString();
  for (let look = 0; look < 3; look++) {
    const { status, headers, body } = await send('/limits');
    expect([status, body]).toEqual([
      200,
      {
        id: expect.stringMatching(/^key-/),
        plan: 'small',
        windows: [
          { name: 'minute', limit: 5, used: 2, remaining: 3, resetAt: nextMinute },
          { name: 'day', limit: 50, used: 2, remaining: 48, resetAt: nextDay },
        ],
        concurrent: 9,
        secret: {},
      },
    ]);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-ratelimit-limit': '5',
      'x-ratelimit-remaining': '3',
      'ratelimit-policy': '"minute";q=5;w=60, "day";q=50;w=86400, "concurrent";q=9;qu="concurrent-requests"',
    });
  }
  expect((await send('/v1/pets')).headers.get('x-ratelimit-remaining')).toBe('2');
  expect(forwarded).toHaveLength(3);
  expect(lines[3]).toMatchObject({ path: '/limits', status: 200, decision: 'counted', window: 'minute' });
});

it('HEAD of the limits page has the fields of GET, other methods get 405, and similar paths do not exist', async () => {
  const { send } = await start({});
  const head = await send('/limits', { method: 'HEAD' });
  expect([head.status, head.text, head.headers.get('x-ratelimit-remaining')]).toEqual([200, '', '5']);
  expect(Number(head.headers.get('content-length'))).toBeGreaterThan(100);
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const refused = await send('/limits', { method });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  }
  for (const path of ['/limits/', '/v1/limits', '/Limits', '/limits/x']) {
    expect((await send(path)).status).toBe(404);
  }
  expect((await send('/limits?key=a')).status).toBe(200);
});

it.each([
  ['text/html,application/xhtml+xml,*/*;q=0.8', undefined, 'text/html; charset=utf-8', 200],
  ['application/json;q=0.5, text/html;q=0.9', undefined, 'text/html; charset=utf-8', 200],
  ['text/html;q=0.5, application/json', undefined, 'application/json', 401],
  ['text/html;q=0', undefined, 'application/json', 401],
  ['*/*', undefined, 'application/json', 401],
  ['text/html', 'valid', 'application/json', 200],
  ['text/html', 'guessed', 'application/json', 401],
])('at limitsPath, Accept %s with the key %s gets %s', async (accept, which, type, status) => {
  const key = makeKey({ plan: 'small' });
  const { send } = await start({}, [key]);
  const presented = which === 'guessed' ? { secret: 'guessed' } : which === 'valid' ? key : null;
  const got = await send('/limits', { headers: { accept }, key: presented });
  expect([got.status, got.headers.get('content-type')]).toEqual([status, type]);
  expect(got.headers.get('vary')).toContain('Accept, Authorization');
});

it('the page for key holders is charged to its address, allows nothing from elsewhere, and its files need no key', async () => {
  const { send } = await start({});
  const { headers, text } = await send('/limits', { headers: { accept: 'text/html' }, key: null });
  expect(headers.get('ratelimit-policy')).toBe('"docs";q=600;w=60');
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/);
  expect(text).toContain('<main id="holder" data-limits="/limits">');
  for (const name of ['holder.js', 'holder.css']) {
    const file = await send(`/limits/${name}`, { key: null });
    expect([file.status, file.headers.get('x-content-type-options')]).toEqual([200, 'nosniff']);
  }
  for (const path of ['/limits/usage', '/limits/deprecated']) {
    expect((await send(path, { headers: { accept: 'text/html' }, key: null })).status).toBe(401);
  }
});

it('a key reads its own usage as the admin API shows it, and that of no other key', async () => {
  const operator = makeToken('read', 'alice');
  const admin = { host: '127.0.0.1', port: 0, tokens: [operator.entry] };
  const [own, other] = [makeKey({ plan: 'small' }), makeKey({ plan: 'small' })];
  const { send, adminPort, nowMs } = await start({ admin }, [own, other]);
  for (let i = 0; i < 7; i++) await send('/v1/pets', { key: own });
  await send('/v1/pets', { key: other });
  for (const step of ['minute', 'hour', 'day']) {
    const { body } = await send(`/limits/usage?step=${step}`, { key: own });
    const path = `/api/v1/keys/${own.entry.id}/usage?step=${step}`;
    expect(body).toEqual((await askAdmin(adminPort, path, { token: operator.token })).body);
    expect(body.rows).toMatchObject([{ offered: 7, admitted: 5, refused: { minute: 2 } }]);
  }
  expect((await send('/limits/usage', { key: own })).body.step).toBe('minute');
  expect((await send('/limits/usage', { key: other })).body.rows).toMatchObject([
    { offered: 1, admitted: 1 },
  ]);
  const past = new Date(nowMs - 3 * dayMs).toISOString();
  for (const query of [
    `key=${own.entry.id}`,
    `step=hour&step=day`,
    'step=week',
    `step=minute&from=${past}`,
  ]) {
    const refused = await send(`/limits/usage?${query}`, { key: other });
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_request']);
  }
  expect((await send('/limits/usage', { method: 'POST', key: own })).headers.get('allow')).toBe('GET, HEAD');
  expect((await send('/v1/pets', { key: other })).headers.get('x-ratelimit-remaining')).toBe('3');
});

it('a key whose reads of the usage record take too long gets 429 for them, and still reads its limits', async () => {
  const { send } = await start({}, undefined, undefined, { ownReadTimeoutMs: -1 });
  for (const path of ['/limits/usage', '/limits/deprecated']) {
    const refused = await send(path);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(refused.body.message).toContain('Too many requests for the usage of API keys');
  }
  expect((await send('/limits')).status).toBe(200);
});

it('without a usage record the usage of a key has no rows', async () => {
  const { send } = await start({ usage: { keepDays: 0 } });
  await send('/v1/pets');
  expect((await send('/limits/usage')).body).toEqual({ step: 'minute', rows: [] });
  expect((await send('/limits/deprecated')).body).toEqual({ operations: [] });
});

it('a key reads which deprecated operations it called, when they end, and what to use instead', async () => {
  const [own, other] = [makeKey({ plan: 'small' }), makeKey({ plan: 'small' })];
  const { send } = await start({}, [own, other]);
  await send('/v1/pets', { key: own });
  for (let i = 0; i < 2; i++) await send('/v1/pets/1', { key: own });
  expect((await send('/limits/deprecated', { key: own })).body).toEqual({
    operations: [
      expect.objectContaining({
        operationId: 'getPet',
        method: 'GET',
        path: '/v1/pets/{petId}',
        requests: 2,
      }),
    ],
  });
  expect((await send('/limits/deprecated', { key: other })).body).toEqual({ operations: [] });
});

it('the holder of a directory key gets a new secret, the old one ends a day later, and operators see who did it', async () => {
  const operator = makeToken('write', 'alice');
  const admin = { host: '127.0.0.1', port: 0, tokens: [operator.entry] };
  const { token } = operator;
  const { send, adminPort, nowMs, lines } = await start({
    admin,
    keys: { directory: true },
    redis: { url: redisUrl(), prefix: freshPrefix() },
    selfService: { rotate: true },
  });
  const expiresAt = new Date(nowMs + 90 * dayMs).toISOString();
  const json = { id: 'customer', plan: 'small', expiresAt };
  const issued = (await askAdmin(adminPort, '/api/v1/keys', { method: 'POST', token, json })).body;
  expect((await send('/limits', { key: issued })).body.secret).toEqual({ expiresAt, canRotate: true });
  expect((await send('/limits/rotate', { key: issued })).headers.get('allow')).toBe('POST');
  expect((await send('/limits/rotate', { method: 'POST', key: { secret: 'guessed' } })).status).toBe(401);
  // A second rotation with the old secret would give a new secret to anyone who has found the old secret.
  const all = await Promise.all(
    Array.from({ length: 20 }, () => send('/limits/rotate', { method: 'POST', key: issued })),
  );
  expect(all.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 403)]);
  const rotated = all.find(({ status }) => status === 200);
  const oldEndsAt = new Date(nowMs + dayMs).toISOString();
  expect(rotated?.body).toEqual({ secret: expect.stringMatching(/^tg_/), expiresAt, oldEndsAt });
  expect(rotated?.headers.get('cache-control')).toBe('no-store');
  for (const key of [issued, rotated?.body]) expect((await send('/v1/pets', { key })).status).toBe(200);
  const { changes } = (await askAdmin(adminPort, '/api/v1/changes', { token })).body;
  expect(changes[0]).toMatchObject({ action: 'rotate', by: 'holder', key: 'customer', after: { oldEndsAt } });
  expect(JSON.stringify([changes, lines])).not.toContain(rotated?.body.secret);
  const { secrets } = (await askAdmin(adminPort, '/api/v1/keys/customer', { token })).body;
  expect(secrets).toMatchObject([{ expiresAt: oldEndsAt }, { expiresAt }]);
});

it('a holder who lost the response of a rotation gets another secret with the same Idempotency-Key, and the lost one ends', async () => {
  const operator = makeToken('write', 'alice');
  const { token } = operator;
  const { send, port, adminPort, nowMs } = await start({
    admin: { host: '127.0.0.1', port: 0, tokens: [operator.entry] },
    keys: { directory: true },
    redis: { url: redisUrl(), prefix: freshPrefix() },
    selfService: { rotate: true },
  });
  const json = { id: 'customer', plan: 'small' };
  const issued = (await askAdmin(adminPort, '/api/v1/keys', { method: 'POST', token, json })).body;
  const headers = { 'idempotency-key': crypto.randomUUID() };
  // The client closes its connection before the response arrives.
  const lines = [
    'POST /limits/rotate HTTP/1.1',
    'Host: api.example.com',
    `Authorization: Bearer ${issued.secret}`,
  ];
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const socket = connect(port, '127.0.0.1');
  socket.write(`${[...lines, ...fields].join('\r\n')}\r\n\r\n`);
  const secretsOf = async () => (await askAdmin(adminPort, '/api/v1/keys/customer', { token })).body.secrets;
  await until('the secret is rotated', async () => (await secretsOf()).length === 2);
  socket.destroy();
  const lost = (await secretsOf()).map((one: { digestStart: string }) => one.digestStart);

  expect((await send('/limits/rotate', { method: 'POST', key: issued })).status).toBe(403);
  const again = await send('/limits/rotate', { method: 'POST', key: issued, headers });
  expect([again.status, again.body.oldEndsAt]).toEqual([200, new Date(nowMs + dayMs).toISOString()]);
  const shown = await secretsOf();
  expect(shown).toHaveLength(2);
  expect(shown.map((one: { digestStart: string }) => one.digestStart)).not.toEqual(lost);
  // A second repetition ends the secret of the first one.
  const third = await send('/limits/rotate', { method: 'POST', key: issued, headers });
  expect((await send('/v1/pets', { key: again.body })).status).toBe(401);
  for (const key of [issued, third.body]) expect((await send('/v1/pets', { key })).status).toBe(200);
  const short = { 'idempotency-key': 'short' };
  expect((await send('/limits/rotate', { method: 'POST', key: issued, headers: short })).status).toBe(400);
});

it('a key of the configuration is not rotated by its holder, and without selfService there is no path for it', async () => {
  const key = makeKey({ plan: 'small' });
  const { send } = await start(
    {
      keys: { directory: true, file: await keysFileOf(key) },
      selfService: { rotate: true },
      redis: { url: redisUrl(), prefix: freshPrefix() },
    },
    [key],
  );
  expect((await send('/limits')).body.secret).toEqual({});
  const refused = await send('/limits/rotate', { method: 'POST' });
  expect([refused.status, refused.body.code]).toEqual([403, 'operation_not_allowed']);
  const off = await start({}, [key]);
  expect((await off.send('/limits/rotate', { method: 'POST' })).status).toBe(404);
});

it('the limits page gives 401 without a valid key, as every path does, and does not exist without a configured path', async () => {
  const { send } = await start({ addressBucket: { perMinute: 3 } });
  const stranger = { key: { secret: 'guessed' } };
  const statuses = [];
  for (let i = 0; i < 4; i++) statuses.push((await send('/limits', stranger)).status);
  expect(statuses).toEqual([401, 401, 401, 429]);
  expect((await send('/limits', stranger)).headers.get('ratelimit-policy')).toBe('"address";q=3;w=60');
  expect((await send('/limits')).status).toBe(200);

  const off = await start({ limitsPath: undefined });
  expect((await off.send('/limits')).status).toBe(404);
});

it('a key may read its limits sixty times a minute, independently of other keys and of its quota', async () => {
  const [greedy, calm] = [makeKey({ plan: 'small' }), makeKey({ plan: 'small' })];
  const { send } = await start({}, [greedy, calm]);
  for (let look = 0; look < 60; look++) expect((await send('/limits')).status).toBe(200);
  const refused = await send('/limits');
  expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited', status: 429 } });
  expect(refused.body.message).toMatch(
    /^Too many requests for the limits of this API key\. Retry in \d+ s\.$/,
  );
  expect(refused.headers.get('ratelimit-policy')).toBe('"limits";q=60;w=60');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await send('/limits', { key: calm })).status).toBe(200);
  expect((await send('/v1/pets')).headers.get('x-ratelimit-remaining')).toBe('4');
});

it('a banned key reads the end of the ban and its reason; each response has all its windows', async () => {
  const { send, nowMs } = await start({ bans: { after: 3, within: '60s', for: '5m' } });
  for (let i = 0; i < 8; i++) await send('/v1/pets');
  expect((await send('/v1/pets')).body.code).toBe('key_banned');
  const { status, headers, body } = await send('/limits');
  expect(status).toBe(200);
  expect(body.ban).toEqual({
    untilAt: new Date(nowMs + 300_000).toISOString(),
    reason: 'The key kept sending requests after 429.',
  });
  expect(body.windows).toMatchObject([
    { used: 5, remaining: 0 },
    { used: 5, remaining: 45 },
  ]);
  expect(headers.get('ratelimit')).toContain('"ban";r=0;t=300');
});

it('a key with a grant reads the grant’s limits and end, in its windows and beside them', async () => {
  const operator = makeToken('write', 'alice');
  const key = makeKey({ plan: 'small' });
  const admin = { host: '127.0.0.1', port: 0, tokens: [operator.entry] };
  const { send, nowMs, adminPort } = await start({ admin }, [key]);
  for (let i = 0; i < 6; i++) await send('/v1/pets');
  const untilAt = new Date(nowMs + 600_000).toISOString();
  const path = `/api/v1/keys/${key.entry.id}/grant`;
  const { token } = operator;
  const grant = async (json: object) =>
    expect((await askAdmin(adminPort, path, { method: 'POST', token, json })).status).toBe(200);
  const fromAt = new Date(nowMs + 300_000).toISOString();
  await grant({ limits: { perMinute: 8 }, fromAt, untilAt });
  expect((await send('/limits')).body).toMatchObject({
    windows: [{ name: 'minute', limit: 5, used: 5, remaining: 0 }, {}],
    grant: { limits: { perMinute: 8 }, fromAt, untilAt },
  });
  await askAdmin(adminPort, path, { method: 'DELETE', token });
  await grant({ limits: { perMinute: 8 }, untilAt });
  const { headers, body } = await send('/limits');
  expect(body).toMatchObject({
    windows: [
      { name: 'minute', limit: 8, used: 5, remaining: 3 },
      { name: 'day', limit: 50, used: 5, remaining: 45 },
    ],
    grant: { limits: { perMinute: 8 }, untilAt },
  });
  expect(headers.get('ratelimit-policy')).toBe('"minute";q=8;w=60, "day";q=50;w=86400');
  const served = await send('/v1/pets');
  expect([served.status, served.headers.get('ratelimit-policy')]).toEqual([
    200,
    '"minute";q=8;w=60, "day";q=50;w=86400',
  ]);
});

it('a secret that expires within two weeks is announced in every response and in its limits; a backend cannot announce one', async () => {
  const nowMs = Date.now();
  const expiring = (inMs: number) => {
    const key = makeKey({ plan: 'small' });
    const expires = new Date(Math.floor((nowMs + inMs) / 1_000) * 1_000).toISOString().replace('.000', '');
    const secrets = key.entry.secrets.map((secret) => ({ ...secret, expires }));
    return { ...key, entry: { ...key.entry, secrets }, expires };
  };
  const [soon, later, never] = [expiring(13 * dayMs), expiring(15 * dayMs), makeKey({ plan: 'small' })];
  const { send } = await start({}, [soon, later, never]);
  const announced = async (path: string, key: { secret: string }) =>
    (await send(path, { key })).headers.get('x-key-expires');
  for (const path of ['/v1/pets', '/v1/nowhere', '/limits', '/v1/pets', '/v1/pets', '/v1/pets', '/v1/pets']) {
    expect(await announced(path, soon)).toBe(new Date(soon.expires).toUTCString());
    expect([await announced(path, later), await announced(path, never)]).toEqual([null, null]);
  }
  expect((await send('/v1/pets', { key: soon })).status).toBe(429);
  const secretOf = async (key: { secret: string }) => (await send('/limits', { key })).body.secret;
  expect(await secretOf(soon)).toEqual({ expiresAt: new Date(soon.expires).toISOString() });
  expect(await secretOf(later)).toEqual({ expiresAt: new Date(later.expires).toISOString() });
  expect(await secretOf(never)).toEqual({});
});

it.each(['local', 'refuse'])('while Redis is away and onFailure is %s', async (onFailure) => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  // The clock of Redis is not stopped.
  const windowsMs = freshWindows(Date.now());
  const { send, lines } = await start({ redis: { url: redis.url, onFailure } }, undefined, windowsMs);
  await send('/v1/pets');
  expect((await send('/limits')).body.windows[0]).toMatchObject({ used: 1, remaining: 4 });
  await redis.kill();
  await until('it is seen', async () => (await send('/v1/pets')) && lines.at(-1)?.source === 'local');
  const alone = lines.filter(({ path, source }) => path === '/v1/pets' && source === 'local').length;
  const { status, body, headers } = await send('/limits');
  expect(lines.at(-1)).toMatchObject({ source: 'local' });
  if (onFailure === 'refuse') {
    expect([status, body.code]).toEqual([503, 'store_unavailable']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  } else {
    // The figures are the last reply of Redis plus the requests that this process has admitted since then.
    expect(status).toBe(200);
    expect(body.windows[0]).toMatchObject({ used: 1 + alone, remaining: 4 - alone });
  }
});

/** The path of a keys file with this key. */
async function keysFileOf({ entry }: ReturnType<typeof makeKey>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'keys.yaml');
  await writeFile(file, stringify([entry]));
  return file;
}
