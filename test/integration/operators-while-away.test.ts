import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { faultsOf } from '../support/described-replies.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey, type RunningGateway, startGateway, testConfig } from '../support/gateway-process.ts';
import { inspect } from '../support/inspect.ts';
import { runTollgate } from '../support/run-tollgate.ts';
import { startRedis } from '../support/start-redis.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { withinOneMinute } from '../support/within-one-minute.ts';

/** What operators see while Redis is away. */

const token = makeToken('write', 'ops');
const [acme, quiet] = [makeKey({ id: 'acme' }), makeKey({ id: 'quiet' })];
const monthly = makeKey({ id: 'monthly', plan: 'enterprise', limits: { perMonth: 1_000 } });
let redis: Awaited<ReturnType<typeof startRedis>>;
let gateway: RunningGateway;
/** The secret of a key of the directory that no process has read. */
let unread: { readonly secret: string };

const config = (url: string) =>
  testConfig({
    redis: { url, prefix: 'test' },
    upstream: { url: 'http://127.0.0.1:1' },
    keys: { file: './keys.yaml', directory: true },
    admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
  });
const files = { 'keys.yaml': [acme.entry, monthly.entry, quiet.entry] };
const start = (bounds: Partial<Bounds> = {}) =>
  startGatewayHere(config(redis.url), {
    files,
    tuning: { bounds: { ...patientStore, usageFlushIntervalMs: 200, ...bounds } },
  });

const ask = (path: string, options: object = {}) =>
  askAdmin(Number(new URL(gateway.adminUrl).port), `/api/v1${path}`, { token: token.token, ...options });
async function send(requests: number, { secret }: { readonly secret: string } = acme): Promise<void> {
  for (let request = 0; request < requests; request++) {
    const headers = { authorization: `Bearer ${secret}` };
    await (await fetch(`${gateway.baseUrl}/nothing`, { headers })).arrayBuffer();
  }
}
async function issue(id: string): Promise<{ readonly secret: string }> {
  let secret = '';
  await until(`${id} is issued`, async () => {
    const { status, body } = await ask('/keys', { method: 'POST', json: { id, plan: 'free' } });
    secret = body.secret;
    return status === 201;
  });
  return { secret };
}
const isAway = () => gateway.line(({ msg }) => msg === 'Redis is away');

/** The paths that answer from what the gateway knows, and their templates. */
const answered = [
  ['/keys', '/keys'],
  ['/keys/acme', '/keys/{id}'],
  ['/keys/acme/usage', '/keys/{id}/usage'],
  ['/keys/monthly/forecast', '/keys/{id}/forecast'],
  ['/keys/acme/limits', '/keys/{id}/limits'],
  ['/keys/acme/why', '/keys/{id}/why'],
  ['/dead-secrets', '/dead-secrets'],
  ['/traffic', '/traffic'],
  ['/operations', '/operations'],
  ['/deprecated', '/deprecated'],
  ['/operations/listPets/callers', '/operations/{operationId}/callers'],
  ['/plans', '/plans'],
  ['/plans/free/distribution', '/plans/{name}/distribution'],
  ['/usage', '/usage'],
] as const;

describe('a gateway whose Redis goes away', () => {
  beforeAll(async () => {
    redis = await startRedis();
    gateway = await start();
    await withinOneMinute(20_000);
    await send(5);
    await issue('issued');
    await send(2, await issue('served'));
    const revoked = await issue('revoked');
    await send(1, revoked);
    await ask('/keys/revoked', { method: 'PATCH', json: { disabled: true } });
    await send(4, revoked);
    unread = await issue('unread');
    await until('the requests are recorded', async () => {
      const { body } = await ask('/keys/acme/usage');
      return body.rows?.[0]?.offered === 5;
    });
    await ask('/keys/issued');
    await redis.kill();
    await isAway();
    await send(2);
    await send(3, unread);
  });
  afterAll(async () => {
    await gateway.stop();
    await redis.stop();
  });

  it('names the address, the setting and the reason', async () => {
    const { address, setting, reason } = await isAway();
    expect([address, setting]).toEqual([new URL(redis.url).host, 'redis.url']);
    expect(reason).toMatch(/\S/);
  });

  it.each(answered)('answers %s, and says since when Redis is away', async (path, template) => {
    const reply = await ask(path);
    expect([reply.status, faultsOf(reply, 'GET', template)]).toEqual([200, []]);
    // The number of keys by plan was read before, and is complete.
    if (path !== '/plans') expect(Date.parse(reply.body.missing.sinceAt)).toBeLessThan(Date.now());
  });

  it.each(['/old-secrets', '/plans/free/distribution'])(
    'says each time what %s lacks, although the result is expensive',
    async (path) => {
      for (let asked = 0; asked < 2; asked++)
        expect((await ask(path)).body.missing.what).toContain('requests');
    },
  );

  it('counts the requests whose secret it could not look up, and says why in their log lines', async () => {
    const { secrets, unknown, unread } = (await ask('/dead-secrets')).body;
    expect([secrets, unknown, unread]).toMatchObject([
      [{ key: 'revoked', plan: 'free', state: 'revoked', requests: 4 }],
      undefined,
      { requests: 3, addresses: 1 },
    ]);
    const line = await gateway.line(({ keyStatus }) => keyStatus === 'unread');
    expect(line).toMatchObject({ status: 503, error: 'store_unavailable', keyStatus: 'unread' });
    const { stdout } = await runTollgate(
      ['why', '--log', '-', `${line.requestId}`],
      {},
      JSON.stringify(line),
    );
    expect(stdout).toContain(
      ` secret, with a SHA-256 that begins with ${line.secret}, could not be looked up`,
    );
    const list = await runTollgate(['keys', 'list', '--dead'], {
      TOLLGATE_ADMIN: gateway.adminUrl,
      TOLLGATE_ADMIN_TOKEN: token.token,
    });
    expect(list.stdout).toMatch(/^not looked up +3 +1 /m);
    expect(list.stdout).toContain('3 requests got 503, because Redis did not reply when their secrets were');
  });

  it('answers /settings completely, because the process knows its own configuration', async () => {
    const reply = await ask('/settings');
    expect([reply.status, reply.body.environment, reply.body.missing]).toEqual([200, 'test', undefined]);
  });

  it('adds the requests that it decides alone to the requests that it has sent to Redis', async () => {
    const { body } = await ask('/keys/acme/usage');
    expect(body.rows.map(({ offered }: { offered: number }) => offered)).toEqual([7]);
    const { keys } = (await ask('/keys')).body;
    expect(keys[0]).toMatchObject({ id: 'acme', offered24h: 7, windows: [{ used: 7 }, { used: 7 }] });
    expect((await ask('/keys/acme')).body.why.sentence).toMatch(/has used 7 of 60 of this minute/);
    const [minute] = (await ask('/traffic')).body.rows;
    expect(minute.requests).toBeGreaterThanOrEqual(7);
  });

  it('shows no figures of an operation whose requests it does not know', async () => {
    const { operations } = (await ask('/operations')).body;
    const figuresOf = (id: string) =>
      operations.find(({ operationId }: { operationId: string }) => operationId === id);
    expect(figuresOf('').requests).toBeGreaterThanOrEqual(7);
    expect(figuresOf('createPet')).not.toHaveProperty('requests');
    expect(figuresOf('createPet')).not.toHaveProperty('statuses');
    const ran = await runTollgate(['operations'], {
      TOLLGATE_ADMIN: gateway.adminUrl,
      TOLLGATE_ADMIN_TOKEN: token.token,
    });
    expect(ran.stdout).toMatch(/^createPet +– +– +– +– /m);
  });

  it('makes no forecast from what it knows alone', async () => {
    expect((await ask('/keys/monthly/forecast')).body).toMatchObject({
      sentence: 'No forecast: Redis is away, and the record of this process alone is incomplete.',
      limit: 1_000,
    });
  });

  it('shows a key of the directory that only requests have used, also in the lists and in the bill', async () => {
    const shown = await ask('/keys/served');
    expect([shown.status, faultsOf(shown, 'GET', '/keys/{id}')]).toEqual([200, []]);
    expect(shown.body).toMatchObject({ id: 'served', plan: 'free', state: 'ok', windows: [{ used: 2 }, {}] });
    expect((await ask('/keys/revoked')).body).toMatchObject({ state: 'disabled' });
    const { keys } = (await ask('/keys')).body;
    expect(keys).toContainEqual(expect.objectContaining({ id: 'served', plan: 'free', offered24h: 2 }));
    const byId = (await ask('/keys?sort=id')).body.keys.map(({ id }: { id: string }) => id);
    expect(byId).toEqual(['acme', 'issued', 'monthly', 'quiet', 'revoked', 'served']);
    const bill = (await ask('/usage')).body.keys;
    expect(bill).toContainEqual({ id: 'served', plan: 'free', offered: 2, admitted: 2 });
  });

  it('shows a key of the directory that it has read, and refuses by name what only Redis has', async () => {
    // Another process may have counted requests of the key.
    expect((await ask('/keys/issued')).body).toMatchObject({ id: 'issued', state: 'unknown' });
    const unread = await ask('/keys/unread');
    expect([unread.status, unread.body.message]).toEqual([
      503,
      expect.stringContaining('the key unread is not'),
    ]);
    expect((await ask('/directory')).status).toBe(503);
    const find = { method: 'POST', json: { ids: ['issued', 'unread'] } };
    expect((await ask('/directory/ids', find)).status).toBe(503);
    const create = await ask('/keys', { method: 'POST', json: { id: 'new', plan: 'free' } });
    expect([create.status, create.body.message]).toEqual([
      503,
      expect.stringMatching(/^Redis has been away since .* UTC \(.+\)\. Nothing was changed: retry later\.$/),
    ]);
  });

  it.each([['keys', 'list'], ['usage', 'acme'], ['why', 'acme'], ['plans']])(
    'the command %s prints what is known, and one line about what is missing',
    async (...args) => {
      const ran = await runTollgate(args, {
        TOLLGATE_ADMIN: gateway.adminUrl,
        TOLLGATE_ADMIN_TOKEN: token.token,
      });
      expect(ran.exitCode).toBe(0);
      expect(ran.stdout).toMatch(/ 7 |free/);
      if (args[0] !== 'plans')
        expect(ran.stderr).toMatch(
          /^Redis has been away since \d{4}-\d\d-\d\d \d\d:\d\d UTC\. Missing: requests.* that are not in the memory of this gateway, whose own counts begin at \d{4}-\d\d-\d\d \d\d:\d\d UTC, so figures may be too low\. Reason: .+; check redis\.url\.\n$/,
        );
    },
  );
});

describe('a command', () => {
  const run = (...args: string[]) =>
    runTollgate(args, { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token });
  beforeAll(async () => {
    redis = await startRedis();
    gateway = await start();
    await send(2);
    // The reading thread connects to Redis.
    await ask('/keys/acme');
    await redis.kill();
    await isAway();
  });
  afterAll(async () => {
    await gateway.stop();
    await redis.stop();
  });

  it('that makes a bill fails, because requests are missing', async () => {
    for (const options of [[], ['--csv'], ['--json']]) {
      const bill = await run('usage', '--all', ...options);
      expect(bill).toMatchObject({
        exitCode: 1,
        stdout: expect.stringContaining('acme'),
        stderr: expect.stringContaining('so do not bill these figures.'),
      });
    }
  });

  it('that would change keys says so in its dry run', async () => {
    const dry = await run('keys', 'ban', 'acme', '--until', '+1h', '--dry-run');
    expect(dry.exitCode).toBe(1);
    expect(dry.stdout).toContain('would ban 0 keys');
    expect(dry.stdout).toMatch(/acme: Redis has been away since .* UTC, so the change would fail now\./);
  });
});

it('plans count the keys of the directory that requests have used', async () => {
  redis = await startRedis();
  gateway = await start();
  try {
    await send(1, await issue('served'));
    await issue('unread');
    await ask('/keys/acme');
    await redis.kill();
    await isAway();
    const plans = await ask('/plans');
    expect([plans.status, faultsOf(plans, 'GET', '/plans')]).toEqual([200, []]);
    const free = plans.body.plans.find(({ name }: { name: string }) => name === 'free');
    // acme and quiet are in the file.
    expect([free.keys, plans.body.missing.what]).toEqual([3, ['keys']]);
  } finally {
    await gateway.stop();
    await redis.stop();
  }
});

it('a dead secret is listed, although its key is no longer in the memory of the gateway', async () => {
  redis = await startRedis();
  gateway = await start({ directoryCachedKeysMax: 1 });
  try {
    const revoked = await issue('revoked');
    await ask('/keys/revoked', { method: 'PATCH', json: { disabled: true } });
    await send(2, revoked);
    await send(1, await issue('next'));
    await redis.kill();
    await isAway();
    const dead = await ask('/dead-secrets');
    expect(faultsOf(dead, 'GET', '/dead-secrets')).toEqual([]);
    expect(dead.body.secrets).toMatchObject([{ key: 'revoked', state: 'unknown', requests: 2 }]);
    expect(dead.body.secrets[0]).not.toHaveProperty('plan');
  } finally {
    await gateway.stop();
    await redis.stop();
  }
});

it('a gateway that starts without Redis answers from its own counts, and completely when Redis is back', async () => {
  redis = await startRedis();
  await redis.kill();
  gateway = await start();
  try {
    await isAway();
    await withinOneMinute(20_000);
    await send(3);
    const alone = (await ask('/keys/acme/usage')).body;
    expect(alone).toMatchObject({ rows: [{ offered: 3 }], missing: { sinceAt: expect.any(String) } });
    await redis.restart();
    await gateway.line(({ msg }) => msg === 'Redis is back');
    await until(
      'the answer is complete',
      async () => (await ask('/keys/acme/usage')).body.missing === undefined,
    );
    await expect.poll(async () => (await ask('/keys/acme/usage')).body.rows).toMatchObject([{ offered: 3 }]);
  } finally {
    await gateway.stop();
    await redis.stop();
  }
});

it('a supervisor asks its workers: their counts, and the requests that they have recorded', async () => {
  redis = await startRedis();
  gateway = await startGateway({ ...config(redis.url), workers: 2 }, { files });
  try {
    await withinOneMinute(20_000);
    await send(4);
    await send(1, await issue('served'));
    await redis.kill();
    await isAway();
    await send(6);
    await expect
      .poll(async () => (await ask('/keys/served')).body)
      .toMatchObject({ id: 'served', plan: 'free', state: 'ok' });
    await expect
      .poll(async () => (await ask('/keys/acme/usage')).body)
      .toMatchObject({ rows: [{ offered: 10 }], missing: { sinceAt: expect.any(String) } });
    const { keys } = (await ask('/keys')).body;
    expect(keys[0]).toMatchObject({ id: 'acme', offered24h: 10 });
    expect(keys[0].windows[0].used).toBeGreaterThanOrEqual(7);
  } finally {
    await gateway.stop();
    await redis.stop();
  }
});

describe('of two gateways whose Redis goes away, one', () => {
  let other: RunningGateway;
  const command = (...args: string[]) =>
    runTollgate(args, { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token });
  const sendTo = async (to: RunningGateway, requests: number) => {
    const own = gateway;
    gateway = to;
    await send(requests).finally(() => {
      gateway = own;
    });
  };
  const grant = (id: string) => ({
    path: `/keys/${id}/grant`,
    sent: {
      method: 'POST',
      json: { limits: { perMinute: 90 }, untilAt: new Date(Date.now() + 3_600_000).toISOString() },
    },
  });

  beforeAll(async () => {
    redis = await startRedis();
    [gateway, other] = [await start(), await start()];
    await withinOneMinute(20_000);
    await sendTo(other, 4);
    await sendTo(gateway, 3);
    const ofOther = new URL(other.adminUrl).port;
    const { path, sent } = grant('acme');
    await askAdmin(Number(ofOther), `/api/v1${path}`, { token: token.token, ...sent });
    const own = grant('quiet');
    expect((await ask(own.path, own.sent)).status).toBe(200);
    // The list reads the sums of hours, and the counts of keys.
    await until('all requests are recorded', async () => (await ask('/keys')).body.keys[0].offered24h === 7);
    await redis.kill();
    await isAway();
  });
  afterAll(async () => {
    await Promise.all([gateway.stop(), other.stop()]);
    await redis.stop();
  });

  it('knows the grants that it has made, and those that its pages have read', async () => {
    for (const id of ['acme', 'quiet'])
      expect((await ask(`/keys/${id}`)).body.why.sentence).toMatch(/has a grant until .*: 90 a minute/);
  });

  it('knows the counts that its pages have read', async () => {
    const { windows } = (await ask('/keys/acme')).body;
    expect(windows.map(({ used }: { used: number }) => used)).toEqual([7, 7]);
  });

  it('shows the same number of requests in the sentence, the figures and the operations of a key', async () => {
    const { stdout } = await command('keys', 'show', 'acme');
    const [, table = ''] = stdout.split('OPERATION, 24 H');
    const calls = [...table.matchAll(/^\S.*? {2,}(\d+)(?: +\d+ +\d+)?$/gm)].map(([, one]) => Number(one));
    const total = Number(/^last 24 h +(\d+) requests/m.exec(stdout)?.[1]);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      `knows ${total} requests of the last 24 h, and no refusal`,
    );
    expect(calls.reduce((sum, one) => sum + one, 0)).toBe(total);
  });

  it('says in one line since when and why Redis is away, and that it knows only itself', async () => {
    const top = (await command('top', '--once')).stdout.split('\n');
    const told = top.slice(1, top.indexOf('')).join(' ');
    expect(told).toMatch(
      /^Redis is away \(.+; check redis\.url\): limits are counted by each process on its own, and keys of the directory that a process has not read get 503, and only this gateway is known here\. Since \d\d:\d\d:\d\d UTC, \d+ s\.(?!.*Redis)/,
    );
    expect((await command('processes')).stderr).toMatch(
      /^Redis has been away since .* UTC\. Missing: processes that are not in the memory of this gateway, whose own counts begin at \d{4}-\d\d-\d\d \d\d:\d\d UTC, so figures may be too low\. Reason: .+\n$/,
    );
  });
});

describe('a gateway that starts with', () => {
  const wrong = (url: string) => url.replace('//', '//:wrong@');
  it.each([
    ['a wrong password', wrong, 'WRONGPASS'],
    ['no password, though Redis requires one', (url: string) => url, 'NOAUTH'],
  ])(
    '%s names the address, the setting and the reason, and does not know what Redis has',
    async (_, urlOf, code) => {
      redis = await startRedis();
      const inspector = inspect(redis.url);
      await inspector.config('SET', 'requirepass', 'right');
      inspector.disconnect();
      gateway = await startGatewayHere(config(urlOf(redis.url)), { files });
      try {
        await isAway();
        const { host } = new URL(redis.url);
        const { sentence } = (await ask('/state')).body.verdict;
        expect(sentence).toMatch(
          new RegExp(
            `^Redis is away \\(${code} [^(]{1,60} at ${host}; check redis\\.\\w+\\): limits are counted`,
          ),
        );
        const [event] = (await ask('/events?kind=incident')).body.events;
        expect(event.text).toContain(`at ${host}; check redis.`);
        expect((await ask('/keys/acme')).body).toMatchObject({
          ...{ state: 'unknown', windows: [], missing: { reason: expect.stringContaining(host) } },
          why: { sentence: 'What acme (free) has used is not known, because Redis is away.' },
        });
        const unknown = [['changes'], ['usage', 'acme'], ['usage'], ['usage', '--all', '--month', '2026-11']];
        for (const args of unknown) {
          const ran = await runTollgate(args, {
            TOLLGATE_ADMIN: gateway.adminUrl,
            TOLLGATE_ADMIN_TOKEN: token.token,
          });
          expect(ran.stdout).toBe('Unknown: Redis is away, and this gateway knows of none.\n');
        }
      } finally {
        await gateway.stop();
        await redis.stop();
      }
    },
  );
});
