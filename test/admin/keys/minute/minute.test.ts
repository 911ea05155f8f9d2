import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { askAdmin, makeToken } from '../../../support/admin-client.ts';
import { createGateway } from '../../../support/create-gateway.ts';
import { type KeyEntry, makeKey } from '../../../support/gateway-process.ts';
import { startHoldingBackend } from '../../../support/holding-backend.ts';
import { okResponse, startRecordingBackend } from '../../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { runTollgate } from '../../../support/run-tollgate.ts';
import { settingsOf } from '../../../support/settings-of.ts';
import { startRedis } from '../../../support/start-redis.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientGateway } from '../../../support/tuning.ts';
import { until } from '../../../support/until.ts';
import { withinOneMinute } from '../../../support/within-one-minute.ts';

/** `GET /keys/{id}/why`: each kind of refusal, with real requests to a real gateway. */

const token = makeToken('write', 'ada');
const startMs = Date.parse('2026-11-24T14:03:00Z');
const api = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: {
    '/pets': { get: { operationId: 'listPets' }, delete: { operationId: 'deletePets' } },
    '/report': { get: { operationId: 'createReport' } },
    '/old': {
      get: {
        ...{ operationId: 'getOld', deprecated: true },
        ...{ 'x-deprecated-since': '2026-01-01', 'x-deprecated-sunset': '2026-06-01' },
      },
    },
  },
};
const plan = { perMinute: 5, perDay: 8 };

interface Start {
  readonly plan?: object;
  readonly key?: { readonly entry: KeyEntry; readonly secret: string };
  readonly settings?: object;
  readonly backendUrl?: string;
  readonly directory?: true;
  /** Absent: the gateway has the clock of the machine, as Redis has. */
  readonly clock?: () => number;
}

async function start({
  key = makeKey({ id: 'acme' }),
  settings,
  backendUrl,
  directory,
  clock,
  ...of
}: Start) {
  const backend = await startRecordingBackend({
    react: ({ target }, socket) => socket.write(okResponse('[]', target.includes('fail') ? 500 : 200)),
  });
  const settingsWith = (free: object) =>
    settingsOf(
      {
        upstream: { url: backendUrl ?? backend.url },
        plans: { free },
        api: 'api.yaml',
        keys: [key.entry],
        bans: { after: 1_000 },
        admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
        ...settings,
      },
      { 'api.yaml': stringify(api) },
    );
  const gateway = createGateway({
    settings: { ...(await settingsWith(of.plan ?? plan)), directory: directory ?? false },
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds(patientGateway),
    ...(clock && { nowMs: clock }),
  });
  const { listen, admin } = await gateway.start();
  onTestFinished(async () => {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  });
  const request = async (path: string, secret = key.secret, method = 'GET') => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`http://127.0.0.1:${listen.port}/v1${path}`, { method, headers });
    await response.arrayBuffer();
    return response.status;
  };
  const send = async (times: number, ...[path, secret, method]: Parameters<typeof request>) => {
    const statuses: number[] = [];
    for (let sent = 0; sent < times; sent++) statuses.push(await request(path, secret, method));
    return statuses;
  };
  const ask = (path: string, options = {}) =>
    askAdmin(admin.port, `/api/v1${path}`, { token: token.token, ...options });
  const why = async (atMs: number) => {
    const { status, body } = await ask(`/keys/acme/why?at=${new Date(atMs).toISOString()}`);
    expect([status, body]).toEqual([200, expect.anything()]);
    return body;
  };
  const edit = async (free: object) => gateway.reload(await settingsWith(free));
  const env = { TOLLGATE_ADMIN: `http://127.0.0.1:${admin.port}`, TOLLGATE_ADMIN_TOKEN: token.token };
  return { edit, request, send, ask, why, env };
}

/** A gateway whose clock the test sets. */
async function startAt(options: Start = {}) {
  let nowMs = startMs;
  const started = await start({ ...options, clock: () => nowMs });
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { ...started, wait };
}

const kinds = (body: { readonly refusals: readonly { by: string; requests: number; per: string }[] }) =>
  body.refusals.map(({ by, requests, per }) => [by, requests, per]);
const sentences = (body: { readonly refusals: readonly { sentence: string }[] }) =>
  body.refusals.map(({ sentence }) => sentence);

describe('a minute of a key names', () => {
  it('the windows that refused, and no refusal of another minute', async () => {
    const { send, why, wait } = await startAt();
    await send(7, '/pets');
    wait(60_000);
    await send(5, '/pets');
    wait(60_000);
    const first = await why(startMs + 59_999);
    expect(first).toMatchObject({
      at: '2026-11-24T14:03:00.000Z',
      sentence: 'acme sent 7 requests in the minute from 14:03:00 UTC. 5 were admitted, and 2 refused.',
      usage: { offered: 7, admitted: 5, refused: { minute: 2 } },
    });
    expect(sentences(first)).toEqual(['2 requests were refused with 429 by the limit of 5 a minute.']);
    expect(sentences(await why(startMs + 60_000))).toEqual([
      '2 requests were refused with 429 by the limit of 8 a day. Its count starts over at 00:00:00 UTC on 2026-11-25.',
    ]);
    expect(await why(startMs - 60_000)).toEqual({
      at: '2026-11-24T14:02:00.000Z',
      sentence: 'No request that reached the limits of acme is recorded in the minute from 14:02:00 UTC.',
      refusals: [],
      notes: [],
    });
  });

  it('the limit that applied then, after an edit of the plan and during a grant', async () => {
    const { edit, send, ask, why, wait } = await startAt({ plan: { perMinute: 5 } });
    await send(6, '/pets');
    wait(60_000);
    const grant = { limits: { perMinute: 7 }, untilAt: new Date(startMs + 120_000).toISOString() };
    expect((await ask('/keys/acme/grant', { method: 'POST', json: grant })).status).toBe(200);
    await send(8, '/pets');
    wait(60_000);
    await edit({ perMinute: 2 });
    await send(3, '/pets');
    wait(60_000);
    const at = async (ms: number) => sentences(await why(startMs + ms))[0];
    expect(await at(0)).toBe('1 request was refused with 429 by the limit of 5 a minute.');
    expect(await at(60_000)).toBe(
      '1 request was refused with 429 by the limit of 7 a minute, in force since 14:04:00 UTC.',
    );
    expect(await at(120_000)).toBe(
      '1 request was refused with 429 by the limit of 2 a minute, in force since 14:05:00 UTC.',
    );
  });

  it('the group whose limit refused', async () => {
    const groups = { reports: { operations: ['createReport'], perMinute: 2 } };
    const { send, why } = await startAt({ plan: { perMinute: 5, groups } });
    await send(3, '/report');
    await send(4, '/pets');
    expect(sentences(await why(startMs))).toEqual([
      '1 request was refused with 429 by the limit of 5 a minute.',
      '1 request was refused with 429 by the limit of 2 a minute for the group reports.',
    ]);
  });

  it('a ban with its beginning and its end, and the time at which it was lifted', async () => {
    const { send, ask, why, wait } = await startAt({
      settings: { bans: { after: 3, within: '60s', for: '90s' } },
    });
    await send(5, '/pets');
    wait(10_000);
    await send(5, '/pets');
    expect(sentences(await why(startMs))).toContain(
      '3 requests were refused with 429 by a ban from 14:03:10 UTC, which ends at 14:04:40 UTC. A key is banned when it keeps sending after refusals.',
    );
    wait(50_000);
    await send(4, '/pets');
    wait(5_000);
    expect((await ask('/keys/acme/unban', { method: 'POST' })).status).toBe(200);
    wait(60_000);
    expect(sentences(await why(startMs + 60_000))).toEqual([
      '4 requests were refused with 429 by a ban from 14:03:10 UTC, which an operator lifted at 14:04:05 UTC. A key is banned when it keeps sending after refusals.',
    ]);
  });

  it('a ban, while the key itself names its used-up day too and is listed as limited', async () => {
    const { send, ask } = await startAt({
      plan: { perMinute: 9, perDay: 5 },
      settings: { bans: { after: 3, within: '60s', for: '90s' } },
    });
    await send(9, '/pets');
    const { body } = await ask('/keys/acme');
    expect(body.state).toBe('banned');
    expect(body.why.sentence).toMatch(
      /^acme \(free\) is banned until 14:04:30 UTC, because .* It has also used all 5 requests of this day, which starts over at 00:00:00 UTC on 2026-11-25\. In the last/,
    );
    for (const state of ['limited', 'banned']) {
      expect((await ask(`/keys?state=${state}`)).body.keys).toMatchObject([{ id: 'acme', state: 'banned' }]);
    }
  });

  it('the limit of concurrent requests', async () => {
    const backend = await startHoldingBackend();
    onTestFinished(() => backend.close());
    const { request, why } = await startAt({
      plan: { perMinute: 50, concurrent: 2 },
      backendUrl: backend.url,
    });
    const held = [request('/pets'), request('/pets')];
    await until('two requests are held', () => backend.counts.now === 2);
    expect(await request('/pets')).toBe(429);
    for (const _ of held) backend.endOne();
    await Promise.all(held);
    expect(sentences(await why(startMs))).toEqual([
      '1 request was refused with 429 by the limit of concurrent requests. It is 2 now; earlier values are not recorded.',
    ]);
  });

  it('requests with an expired secret, and with a secret of a disabled key', async () => {
    const key = makeKey({ id: 'acme' });
    const old = makeKey();
    const [first, ofOld] = [key.entry.secrets[0], old.entry.secrets[0]];
    const secrets = [first, { ...ofOld, expires: '2026-11-20' }] as KeyEntry['secrets'];
    const { send, why } = await startAt({ key: { ...key, entry: { ...key.entry, secrets } } });
    await send(3, '/pets', old.secret);
    await send(1, '/pets');
    const digest = String(ofOld?.sha256).slice(0, 8);
    expect(sentences(await why(startMs))).toEqual([
      `3 requests were refused with 401, because their secret was not valid, or with 429 if their address had sent too many such requests. Such requests of this day presented ${digest}…, which expired at 00:00:00 UTC on 2026-11-20.`,
    ]);
    const off = makeKey({ id: 'acme', disabled: true });
    const disabled = await startAt({ key: off });
    await disabled.send(2, '/pets');
    expect(sentences(await disabled.why(startMs))).toEqual([
      expect.stringMatching(
        /^2 requests were refused with 401, .* The key is disabled in the configuration now\. Such requests/,
      ),
    ]);
  });

  it('requests from addresses that the key does not allow, operations that it may not call, and removed ones, by hour', async () => {
    const fenced = await startAt({ key: makeKey({ id: 'acme', addresses: ['10.0.0.0/8'] }) });
    expect(await fenced.send(2, '/pets')).toEqual([403, 403]);
    expect(kinds(await fenced.why(startMs + 1))).toEqual([['address', 2, 'hour']]);
    const narrow = { perMinute: 50, operations: ['listPets', 'getOld'] };
    const { send, why, wait } = await startAt({ plan: narrow });
    expect(await send(2, '/pets', undefined, 'DELETE')).toEqual([403, 403]);
    expect(await send(1, '/old')).toEqual([410]);
    expect(await send(1, '/nowhere')).toEqual([404]);
    wait(60_000);
    const found = await why(startMs);
    expect(found.sentence).toMatch(/^acme sent 4 requests .* The limits admitted all of them\.$/);
    expect(kinds(found)).toEqual([['other', 4, 'hour']]);
    expect(sentences(found)[0]).toContain(
      'The 4xx of the hour: deletePets 2 (the key may not call it now), getOld 1 (removed) and no operation 1.',
    );
  });

  it('failed requests and the decisions of the trial', async () => {
    const trial = { perMinute: 2 };
    const { send, why, wait } = await startAt({ plan: { perMinute: 50, trial } });
    await send(3, '/pets?fail');
    wait(120_000);
    expect((await why(startMs)).notes).toEqual([
      '3 admitted requests failed: they ended with 5xx or were cut by the gateway or an upstream. By upstream: default 3.',
      'Trial 2 a minute: 1 of 3 requests (33 %) would have been refused, 1 by the minute limit. The plan itself refused none.',
    ]);
  });
});

describe('with Redis', () => {
  const redis = () => ({ url: redisUrl(), prefix: freshPrefix() });

  it('windows, groups, bans and the revocation of a directory key are named', async () => {
    const groups = { reports: { operations: ['createReport'], perMinute: 2 } };
    const { send, ask, why } = await start({
      plan: { perMinute: 5, groups },
      key: makeKey({ id: 'other' }),
      directory: true,
      settings: { redis: redis(), bans: { after: 4, within: '60s', for: '90s' } },
    });
    const issued = await ask('/keys', { method: 'POST', json: { id: 'acme', plan: 'free' } });
    expect([issued.status, issued.body.message]).toEqual([201, undefined]);
    const { secret } = issued.body;
    await withinOneMinute(20_000);
    const atMs = Date.now();
    await send(3, '/report', secret);
    await send(8, '/pets', secret);
    expect((await ask('/keys/acme', { method: 'PATCH', json: { disabled: true } })).status).toBe(200);
    await send(2, '/pets', secret);
    const found = await why(atMs);
    expect(kinds(found)).toEqual(
      expect.arrayContaining([
        ['minute', 2, 'minute'],
        ['banned', 3, 'minute'],
        ['unauthorized', 2, 'minute'],
        ['reports-minute', 1, 'minute'],
      ]),
    );
    expect(sentences(found).join('\n')).toMatch(/by a ban from \d\d:\d\d:\d\d UTC, which ends at .*\n?/);
    expect(sentences(found).join('\n')).toMatch(/The key was revoked at \d\d:\d\d:\d\d UTC\. /);
  });

  it('requests that were refused because Redis was away are named with the outage', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const { request, ask } = await start({
      settings: { redis: { url: server.url, prefix: 'test', onFailure: 'refuse' } },
    });
    await until('Redis decides', async () => (await request('/pets')) !== 503);
    await server.kill();
    const refusedMs = Date.now();
    await until('a request is refused', async () => (await request('/pets')) === 503);
    await server.restart();
    await until('Redis decides again', async () => (await request('/pets')) !== 503);
    let found: Awaited<ReturnType<typeof ask>>['body'];
    await until('the refusal is recorded', async () => {
      const minutes = [refusedMs, Date.now()];
      for (const atMs of minutes) {
        found = (await ask(`/keys/acme/why?at=${new Date(atMs).toISOString()}`)).body;
        if (found.refusals?.some(({ by }: { by: string }) => by === 'undecided')) return true;
      }
      return false;
    });
    expect(sentences(found).join('\n')).toMatch(
      /refused with 503, because Redis was away (from .* )?and `redis.onFailure` was `refuse`\./,
    );
  });

  it('admitted requests that each process counted alone are told with the outage', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const { request, send, ask } = await start({
      settings: { redis: { url: server.url, prefix: 'test', onFailure: 'local' } },
    });
    await send(1, '/pets');
    const before = (await ask('/state')).body.store;
    await server.kill();
    await until('Redis is away', async () => (await ask('/state')).body.store.available === false);
    expect(before.available).toBe(true);
    await withinOneMinute(20_000);
    const atMs = Date.now();
    await request('/pets');
    await server.restart();
    await until('Redis is back', async () => (await ask('/state')).body.store.available);
    const path = `/keys/acme/why?at=${new Date(atMs).toISOString()}`;
    await until('the outage is recorded', async () =>
      (await ask(path)).body.sentence?.includes('Redis was away'),
    );
    expect((await ask(path)).body.sentence).toMatch(
      /^acme sent \d requests? in the minute .*\. Redis was away (from|for) .*: each process counted the requests on its own, so more than a limit may have been admitted\.$/,
    );
  });
});

it('`why --at` prints a line for the minute, for each kind of refusal and for each note', async () => {
  const trial = { perMinute: 2 };
  const { send, why, env } = await start({ plan: { perMinute: 5, trial } });
  await withinOneMinute(20_000);
  const at = new Date().toISOString();
  await send(7, '/pets');
  const run = (...args: string[]) => runTollgate(['why', 'acme', '--at', ...args], env);
  // A time without a date is the last such time.
  const { exitCode, stdout, stderr } = await run(at.slice(11, 16));
  expect([exitCode, stderr]).toEqual([0, '']);
  const [minute, refused, ...notes] = stdout.trimEnd().split('\n');
  expect(minute).toMatch(/^acme sent 7 requests in the minute from .*\. 5 were admitted, and 2 refused\.$/);
  expect(refused).toBe('2 requests were refused with 429 by the limit of 5 a minute.');
  expect(notes[0]).toMatch(/^Trial 2 a minute: 5 of 7 requests/);
  const withJson = JSON.parse((await run(at, '--json')).stdout);
  const { sentence: _, notes: __, ...lasting } = await why(Date.parse(at));
  expect(withJson).toMatchObject(lasting);
});

describe('the query', () => {
  it('selects the present minute by default, and refuses the future, unkept minutes and texts that are no time', async () => {
    const { send, ask } = await startAt();
    await send(6, '/pets');
    expect((await ask('/keys/acme/why')).body).toMatchObject({
      at: '2026-11-24T14:03:00.000Z',
      refusals: [{ by: 'minute', requests: 1 }],
    });
    const message = async (query: string) => {
      const { status, body } = await ask(`/keys/acme/why?${query}`);
      return [status, body.message];
    };
    expect(await message('at=2026-11-24T14:04Z')).toEqual([
      400,
      'The query parameter `at` must not be in the future.',
    ]);
    expect(await message('at=14:03')).toEqual([
      400,
      expect.stringMatching(/^The query parameter `at` must be a date such as/),
    ]);
    expect(await message('at=2026-11-22T23:59Z')).toEqual([
      400,
      'The minute 23:59:00 UTC on 2026-11-22 is no longer recorded. Minutes are kept for 1 day, and older usage by day.',
    ]);
    expect(await message('at=2026-11-23T00:00Z')).toEqual([200, undefined]);
    expect((await ask('/keys/nobody/why')).status).toBe(404);
  });

  it('gets a reason if usage is not recorded', async () => {
    const { ask } = await startAt({ settings: { usage: { keepDays: 0 } } });
    const { status, body } = await ask('/keys/acme/why');
    expect([status, body.message]).toEqual([
      400,
      'No minute is recorded, because `usage.keepDays` is 0. The log has a line for each request.',
    ]);
  });
});
