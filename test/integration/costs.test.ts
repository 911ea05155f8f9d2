import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { decideUnits } from '../../gateway/request/path/decide-units.ts';
import { createGateway } from '../../gateway/server/gateway.ts';
import { keyOf, noBans, openLimiter } from '../request/limit/limiter-fixture.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey } from '../support/gateway-process.ts';
import { limitsOf } from '../support/limits-of.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { until } from '../support/until.ts';
import { askForWebSocket } from '../support/web-socket.ts';

const sunset = { deprecated: true, 'x-deprecated-since': '2020-01-01', 'x-deprecated-sunset': '2021-01-01' };
const operations = {
  '/pets': { operationId: 'listPets' },
  '/report': { operationId: 'report', 'x-cost': 5 },
  '/free': { operationId: 'free', 'x-cost': 0 },
  '/yearly': { operationId: 'yearly', 'x-cost': 50 },
  '/old': { operationId: 'old', 'x-cost': 5, ...sunset },
  '/private': { operationId: 'private', 'x-cost': 5 },
  '/feed': { operationId: 'feed', 'x-cost': 5, 'x-upgrade': 'websocket' },
};
const called = Object.values(operations).flatMap(({ operationId: id }) => (id === 'private' ? [] : [id]));
const document = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: Object.fromEntries(Object.entries(operations).map(([path, get]) => [path, { get }])),
};

const reader = makeToken('read');
let port: number;
let adminPort: number;
let forwarded: () => number;
/** The access lines. */
const logged: string[] = [];
let stop = () => Promise.resolve();
const keys = Array.from({ length: 5 }, () => makeKey({ plan: 'small' }));

beforeAll(async () => {
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  const overrides = {
    upstream: { url: backend.url, health: '/healthz' },
    plans: { small: { perMinute: 12, perDay: 100, operations: called } },
    keys: keys.map(({ entry }) => entry),
    api: 'costs.yaml',
    admin: { host: '127.0.0.1', port: 0, tokens: [reader.entry] },
    cors: { origins: ['https://app.example.com'] },
    bans: { after: 2 },
  };
  const gateway = createGateway({
    settings: await settingsOf(overrides, { 'costs.yaml': stringify(document) }),
    log: {
      logger: pino({ level: 'silent' }),
      access: (line) => void logged.push(line),
    },
    bounds: tunedBounds({ windowsMs: freshWindows(Date.now()) }),
  });
  const started = await gateway.start();
  [port, adminPort] = [started.listen.port, started.admin.port];
  forwarded = () => backend.requests.length;
  stop = async () => {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  };
});
afterAll(() => stop());

/** Each test has a key of its own, with 12 units a minute and 100 a day. */
function nextKey() {
  const key = keys.pop() ?? makeKey();
  const headersOf = (headers: Record<string, string>) => ({
    authorization: `Bearer ${key.secret}`,
    ...headers,
  });
  const show = async () =>
    (await askAdmin(adminPort, `/api/v1/keys/${key.entry.id}`, { token: reader.token })).body;
  /** The status, the remaining units of the minute, and the cost in the response. */
  const send = async (path: string, method = 'GET', headers: Record<string, string> = {}) => {
    const url = `http://127.0.0.1:${port}/v1${path}`;
    const response = await fetch(url, { method, headers: headersOf(headers) });
    const field = (name: string) => response.headers.get(name);
    const { message } = (await response.json().catch(() => ({}))) as { message?: string };
    const left = Number(/"minute";r=(\d+)/.exec(field('ratelimit') ?? '')?.[1]);
    return { said: [response.status, left, field('x-ratelimit-cost')], message, field };
  };
  return { ...key, show, send };
}

it('each request is charged the cost of its operation, and a refusal names the cost and the time when it fits', async () => {
  const { send, show } = nextKey();
  expect((await send('/report')).said).toEqual([200, 7, '5']);
  expect((await send('/pets')).said).toEqual([200, 6, null]);
  expect((await send('/nothing')).said).toEqual([404, 5, null]);
  expect((await send('/report', 'DELETE')).said).toEqual([405, 4, null]);
  const refused = await send('/report', 'GET', { origin: 'https://app.example.com' });
  expect(refused.said).toEqual([429, 4, '5']);
  const seconds = refused.field('retry-after');
  expect(refused.message).toBe(
    `This request costs 5 units; 4 of this minute's 12 are left. Retry in ${seconds} s.`,
  );
  expect(refused.field('x-ratelimit-remaining')).toBe('4');
  expect(seconds).toBe(/"minute";r=4;t=(\d+)/.exec(refused.field('ratelimit') ?? '')?.[1]);
  expect(refused.field('access-control-expose-headers')).toContain('X-RateLimit-Cost');
  // A refused request is not charged, so a cheaper request may still be admitted.
  expect((await send('/pets')).said).toEqual([200, 3, null]);
  const { windows } = await show();
  expect(windows).toMatchObject([{ name: 'minute', limit: 12, used: 9, remaining: 3 }, { used: 9 }]);
});

it('403 and 410 are charged the cost of the operation', async () => {
  const { send } = nextKey();
  expect((await send('/private')).said).toEqual([403, 7, '5']);
  expect((await send('/old')).said).toEqual([410, 2, '5']);
  expect((await send('/old')).said).toEqual([429, 2, '5']);
});

it('the handshake of a WebSocket is charged the cost of its operation', async () => {
  const client = await askForWebSocket(port, nextKey().secret);
  const { headers } = await client.response();
  client.destroy();
  expect([headers.get('x-ratelimit-remaining'), headers.get('x-ratelimit-cost')]).toEqual(['7', '5']);
});

it('a free request is never refused for a window, and is refused during a ban', async () => {
  const { send } = nextKey();
  for (let at = 0; at < 15; at++) expect((await send('/free')).said).toEqual([200, 12, '0']);
  for (const left of [7, 2]) expect((await send('/report')).said).toEqual([200, left, '5']);
  expect((await send('/report')).said).toEqual([429, 2, '5']);
  expect((await send('/free')).said).toEqual([200, 2, '0']);
  // Each refusal is one strike, whatever the cost of the request.
  expect((await send('/report')).field('ratelimit')).toContain('"ban"');
  const banned = await send('/free');
  expect(banned.said).toEqual([429, 2, '0']);
  expect(banned.message).toContain('banned');
});

it('an operation that costs more than a limit gets an uncharged 403 with the reason', async () => {
  const { send } = nextKey();
  const before = forwarded();
  for (let at = 0; at < 5; at++) {
    const { said, message } = await send('/yearly');
    expect(said).toEqual([403, 12, '50']);
    expect(message).toBe('This request costs 50 units, and the API key may use at most 12 in a minute.');
  }
  expect(forwarded()).toBe(before);
  const cause = '"cause":"the operation costs 50 units, more than a limit of the key"';
  await until('the log names the reason', () => logged.filter((line) => line.includes(cause)).length === 5);
});

it('a grant that raises the limits admits an operation that costs more than the plan has', async () => {
  const { own: limiter } = openLimiter({});
  const key = keyOf(12, 100);
  const decideAt = (units: number) => decideUnits(key, { units }, { bans: noBans }, limiter);
  expect(await decideAt(50)).toMatchObject({ kind: 'admitted', units: 0 });
  await limiter.adjust(key.id, {
    grant: { limits: limitsOf({ perMinute: 60 }), untilMs: Date.now() + 60_000 },
  });
  expect(await decideAt(50)).toMatchObject({ kind: 'admitted', units: 50 });
  expect(await decideAt(50)).toMatchObject({ kind: 'refused', units: 50 });
  expect(await decideAt(70)).toMatchObject({ kind: 'admitted', units: 0 });
});

it('a request that a grant admits above the limit of the plan counts once towards the concurrency limit', async () => {
  const { own: limiter } = openLimiter({});
  const key = { ...keyOf(12, 1_000), concurrent: 1 };
  const kindAt = async (units: number) => (await decideUnits(key, { units }, { bans: noBans }, limiter)).kind;
  await limiter.adjust(key.id, {
    grant: { limits: limitsOf({ perMinute: 60 }), untilMs: Date.now() + 60_000 },
  });
  expect(await kindAt(20)).toBe('admitted');
  expect(await kindAt(20)).toBe('crowded');
  limiter.release(key.id);
  expect(await kindAt(20)).toBe('admitted');
  limiter.release(key.id);
  // The windows refuse this request, so it does not count as in progress, and the next request is admitted.
  expect(await kindAt(30)).toBe('refused');
  expect(await kindAt(20)).toBe('admitted');
});
