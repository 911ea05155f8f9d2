import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { directoryOf } from '../../support/directory-of.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeCustomKey, makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { inspect } from '../../support/inspect.ts';
import { readMetrics } from '../../support/read-metrics.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { startRedis } from '../../support/start-redis.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { withinOneMinute } from '../../support/within-one-minute.ts';

const token = makeToken('read');
const bounds = {
  ...patientStore,
  usageFlushIntervalMs: 300,
  // A gateway sends its last counts when it stops.
  usageCloseTimeoutMs: 20_000,
  usageSlicesPerFlush: 3,
  usageActiveNotedMs: 0,
  recentFiguresMs: 600_000,
};

let backend: RecordingBackend;
beforeAll(async () => {
  backend = await startRecordingBackend({
    react({ target }, socket) {
      if (target.endsWith('/cut')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
      else socket.write(okResponse('{}', Number(/[45]\d\d$/.exec(target)?.[0] ?? 200)));
    },
  });
  return () => backend.close();
});

const open: RunningGateway[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((gateway) => gateway.stop('SIGKILL')));
});

async function start(overrides: Record<string, unknown>, files = {}): Promise<RunningGateway> {
  const config = testConfig({
    upstream: { url: backend.url, health: '/healthz' },
    admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    ...overrides,
  });
  const gateway = await startGatewayHere(config, { tuning: { bounds }, files });
  open.push(gateway);
  return gateway;
}

function onRedis(prefix: string, url = redisUrl()) {
  return { redis: { url, prefix } };
}

async function ask<Body>(gateway: RunningGateway, path: string, status = 200): Promise<Body> {
  const response = await askAdmin(Number(new URL(gateway.adminUrl).port), `/api/v1${path}`, {
    token: token.token,
  });
  expect([response.status, response.body]).toEqual([status, expect.anything()]);
  return response.body as Body;
}

/** Sends requests one after the other. @returns the number of responses of each status */
async function send(gateway: RunningGateway, secret: string, times: number, path = '/pets') {
  const statuses: Record<number, number> = {};
  for (let request = 0; request < times; request++) {
    const response = await fetch(`${gateway.baseUrl}${path}`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    await response.arrayBuffer();
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
  }
  return statuses;
}

interface Item {
  readonly id: string;
  readonly state: string;
  readonly file: string;
  readonly line: number;
  readonly offered24h: number;
  readonly refused24h: number;
  readonly lastSeenMs?: number;
  readonly windows: readonly { name: string; used: number; remaining: number }[];
}
interface Recent {
  readonly outcomes: Readonly<Record<string, number>>;
  readonly failuresPerSecond: number;
  readonly addressRefusalsPerSecond: number;
}
interface Page {
  readonly keys: readonly Item[];
  readonly next?: string;
}
interface Usage {
  readonly step: string;
  readonly rows: readonly {
    at: string;
    offered: number;
    admitted: number;
    refused: Record<string, number>;
    banned: number;
    unauthorized?: number;
  }[];
}

function totalOf({ rows }: Usage) {
  let [offered, admitted, banned] = [0, 0, 0];
  const refused: Record<string, number> = {};
  for (const row of rows) {
    offered += row.offered;
    admitted += row.admitted;
    banned += row.banned;
    for (const [window, requests] of Object.entries(row.refused))
      refused[window] = (refused[window] ?? 0) + requests;
  }
  return { offered, admitted, refused, banned };
}

describe.each([
  { where: 'in memory', store: () => ({}) },
  { where: 'in Redis', store: () => onRedis(freshPrefix()) },
])('the record $where', ({ store }) => {
  it('shows every request of a key at once', async () => {
    // The exhausted limit is per day, because a minute limit could start again during the test.
    const key = makeCustomKey(1_000, 7);
    const gateway = await start({ keys: [key.entry], bans: { after: 5, for: '10m' }, ...store() });
    const statuses = await send(gateway, key.secret, 20);
    const usage = totalOf(await ask<Usage>(gateway, `/keys/${key.entry.id}/usage`));
    expect([usage.offered, usage.admitted]).toEqual([20, statuses[200]]);
    expect(usage.banned).toBeGreaterThan(0);
    expect((usage.refused.day ?? 0) + usage.banned).toBe(statuses[429]);
    const { keys } = await ask<Page>(gateway, '/keys');
    expect(keys).toMatchObject([
      { id: key.entry.id, state: 'banned', offered24h: 20, refused24h: statuses[429] },
    ]);
  });
});

describe('the record of several processes', () => {
  it('has the requests to all of them, over a restart too, and each process shows it one flush later', async () => {
    const key = makeCustomKey(1_000_000, 50);
    const config = { keys: [key.entry], bans: { after: 1_000_000 }, ...onRedis(freshPrefix()) };
    const [one, other] = await Promise.all([start(config), start(config)]);
    const sent = [await send(one, key.secret, 40), await send(other, key.secret, 30, '/pets/404')];
    expect(await one.stop()).toBe(0);
    const third = await start(config);
    sent.push(await send(third, key.secret, 10));
    const admitted = sent.reduce((sum, { 200: ok = 0, 404: missing = 0 }) => sum + ok + missing, 0);
    const path = `/keys/${key.entry.id}/usage`;
    for (const gateway of [other, third]) {
      await until('it has everything', async () => totalOf(await ask<Usage>(gateway, path)).offered === 80);
      await sleep(50);
      const { banned, ...total } = totalOf(await ask<Usage>(gateway, path));
      expect([total, banned]).toEqual([{ offered: 80, admitted, refused: { day: 80 - admitted } }, 0]);
      expect(totalOf(await ask<Usage>(gateway, `${path}?step=hour`))).toEqual({ ...total, banned: 0 });
      expect(totalOf(await ask<Usage>(gateway, `${path}?step=day`))).toEqual({ ...total, banned: 0 });
    }
    interface Callers {
      readonly callers: readonly { id: string; requests: number; clientErrors: number }[];
    }
    const { callers } = await ask<Callers>(third, '/operations/listPets/callers');
    expect(callers).toMatchObject([{ id: key.entry.id, requests: 50 }]);
    interface Operations {
      readonly operations: readonly {
        operationId: string;
        requests: number;
        statuses: Record<string, number>;
      }[];
    }
    const { operations } = await ask<Operations>(third, '/operations');
    const getPet = operations.find(({ operationId }) => operationId === 'getPet');
    expect(getPet).toMatchObject({ requests: 30, statuses: sent[1] });
  });
});

it('every process shows when each secret of a key was last used', async () => {
  const key = makeCustomKey(1_000, 1_000);
  const second = makeKey({ id: 'second' });
  const third = makeKey({ id: 'third' });
  const entry = {
    ...key.entry,
    secrets: [...key.entry.secrets, ...second.entry.secrets, ...third.entry.secrets],
  };
  const overrides = { ...onRedis(freshPrefix()), keys: [entry] };
  const [one, other] = [await start(overrides), await start(overrides)];
  interface Detail {
    readonly secrets: readonly { readonly digestStart: string; readonly lastUsedAt?: string }[];
  }
  const used = async (gateway: RunningGateway) => {
    const { secrets } = await ask<Detail>(gateway, `/keys/${key.entry.id}`);
    return new Map(secrets.map(({ digestStart, lastUsedAt }) => [digestStart, Date.parse(lastUsedAt ?? '')]));
  };
  const [firstStart = '', secondStart = '', thirdStart = ''] = entry.secrets.map(({ sha256 }) =>
    sha256.slice(0, 8),
  );
  await send(one, key.secret, 1);
  const betweenMs = Date.now();
  await send(one, second.secret, 1);
  await send(other, second.secret, 1);
  for (const gateway of [one, other]) {
    await until('both processes have told the store', async () => {
      const at = await used(gateway);
      return (
        (at.get(firstStart) ?? Number.NaN) <= betweenMs && (at.get(secondStart) ?? Number.NaN) >= betweenMs
      );
    });
    expect((await used(gateway)).get(thirdStart)).toBeNaN();
  }
});

it('requests with an expired or revoked secret count for the key, apart from its other requests', async () => {
  const key = makeCustomKey(1_000, 1_000);
  const revoked = makeKey({ disabled: true });
  const old = makeKey({ id: 'old' });
  const prefix = freshPrefix();
  const [first = { sha256: '' }] = old.entry.secrets;
  const entry = {
    ...key.entry,
    secrets: [...key.entry.secrets, { ...first, expires: new Date(Date.now() - 60_000).toISOString() }],
  };
  const directory = await directoryOf({ url: redisUrl(), prefix });
  onTestFinished(() => directory.close());
  await directory.issue('issued', ['a secret of the directory'], { disabled: true });
  const overrides = {
    ...onRedis(prefix),
    keys: { file: './keys.yaml', directory: true },
  };
  const files = { 'keys.yaml': [entry, revoked.entry] };
  const [one, other] = [await start(overrides, files), await start(overrides, files)];
  await send(one, key.secret, 2);
  expect(await send(one, old.secret, 3)).toEqual({ 401: 3 });
  expect(await send(one, revoked.secret, 131)).toEqual({ 401: 131 });
  await send(one, 'a secret of the directory', 4);
  await send(one, 'nobody', 1);

  interface Detail {
    readonly offered24h: number;
    readonly lastSeenMs?: number;
    readonly secrets: readonly { digestStart: string; unauthorized?: { requests: number } }[];
    readonly why: { readonly sentence: string };
    readonly recentRefusals: Usage['rows'];
  }
  for (const gateway of [one, other]) {
    const detailOf = (id: string) => ask<Detail>(gateway, `/keys/${id}`);
    // Each key has its own batches, so the counts of one key may arrive before the counts of another key.
    const isRecorded = async (id: string, requests: number) =>
      (await detailOf(id)).why.sentence.includes(` ${requests} req`);
    await until(
      'both processes know',
      async () => (await isRecorded('issued', 4)) && (await isRecorded(revoked.entry.id, 131)),
    );
    await until('the ended secret is recorded', async () =>
      (await detailOf(key.entry.id)).secrets.some(({ unauthorized }) => unauthorized?.requests === 3),
    );
    const rotated = await detailOf(key.entry.id);
    expect(rotated.offered24h).toBe(2);
    expect(rotated.secrets.map(({ unauthorized }) => unauthorized?.requests)).toEqual([3, undefined]);
    const dead = await detailOf(revoked.entry.id);
    expect([dead.offered24h, dead.lastSeenMs]).toEqual([0, undefined]);
    expect(dead.why.sentence).toMatch(
      /131 requests used its secrets and got 401, or 429 after too many from their address, last at/,
    );
    const refused = dead.recentRefusals.map(({ unauthorized = 0 }) => unauthorized);
    expect(refused.reduce((sum, requests) => sum + requests, 0)).toBe(131);
    for (const step of ['minute', 'hour', 'day']) {
      const { rows } = await ask<Usage>(gateway, `/keys/${revoked.entry.id}/usage?step=${step}`);
      expect(rows.reduce((sum, { unauthorized = 0 }) => sum + unauthorized, 0)).toBe(131);
      expect(rows.every(({ offered }) => offered === 0)).toBe(true);
    }
  }
});

it('the traffic counts each request once, by its outcome', async () => {
  const key = makeCustomKey(1_000, 5);
  const gateway = await start({ keys: [key.entry], bans: { after: 4 } });
  const sent = await send(gateway, key.secret, 12);
  await send(gateway, 'nobody', 3);
  interface Traffic {
    readonly rows: readonly Record<string, number>[];
  }
  const { rows } = await ask<Traffic>(gateway, '/traffic');
  const sum = (ending: string) => rows.reduce((all, row) => all + (row[ending] ?? 0), 0);
  expect([sum('requests'), sum('served'), sum('rejected')]).toEqual([15, sent[200], 3]);
  expect(sum('refused') + sum('banned')).toBe(sent[429]);
  expect(sum('banned')).toBeGreaterThan(0);
  expect((await ask<Traffic>(gateway, '/traffic?step=hour')).rows.length).toBeLessThanOrEqual(2);
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  const byDay = await ask<Traffic>(gateway, `/traffic?step=day&from=${daysAgo(14.9)}`);
  expect(byDay.rows.reduce((all, { requests = 0 }) => all + requests, 0)).toBe(15);
  expect(byDay.rows[0]?.at).toMatch(/T00:00:00Z$/);
  for (const [step, days] of [
    ['day', 15],
    ['minute', 8],
  ] as const) {
    expect(await ask(gateway, `/traffic?step=${step}&from=${daysAgo(days + 0.1)}`, 400)).toMatchObject({
      message: expect.stringContaining(`more than ${days} days apart`),
    });
  }
});

it('a 5xx that the client caused is no failure of the gateway, and a body that was not forwarded adds no upstream time', async () => {
  const key = makeCustomKey(1_000, 1_000);
  const gateway = await start({ keys: [key.entry], bodyBytesMax: 10 });
  const url = `${gateway.baseUrl}/pets`;
  const headers = { authorization: `Bearer ${key.secret}` };
  await withinOneMinute(10_000);
  expect((await fetch(url, { method: 'BREW', headers })).status).toBe(501);
  expect((await fetch(url, { method: 'POST', headers, body: 'x'.repeat(11) })).status).toBe(413);
  const { rows } = await ask<{ readonly rows: readonly object[] }>(gateway, '/traffic?step=hour');
  expect(rows).toEqual([
    expect.objectContaining({ requests: 2, rejected: 1, served: 1, failedByGateway: 0, upstreamTime: {} }),
  ]);
  const { figures } = await readMetrics(gateway.adminUrl);
  expect(figures.get('tollgate_upstream_duration_seconds_count')).toBe(0);
  expect(figures.get('tollgate_request_duration_seconds_count')).toBe(2);
});

it('a response that the upstream cuts off is a failure of the upstream, and a 429 from the upstream is no refusal', async () => {
  const key = makeCustomKey(1_000, 1_000);
  const gateway = await start({ keys: [key.entry] });
  const headers = { authorization: `Bearer ${key.secret}` };
  await withinOneMinute(10_000);
  const cut = fetch(`${gateway.baseUrl}/pets?/cut`, { headers }).then((response) => response.text());
  await expect(cut).rejects.toThrow();
  expect(await send(gateway, key.secret, 2, '/pets?/429')).toEqual({ 429: 2 });
  expect(await send(gateway, key.secret, 1, '/pets?/503')).toEqual({ 503: 1 });
  const { rows } = await ask<{ readonly rows: readonly object[] }>(gateway, '/traffic?step=hour');
  expect(rows).toEqual([
    expect.objectContaining({ requests: 4, served: 2, refused: 0, failedByUpstream: 2, failedByGateway: 0 }),
  ]);
  const { processes } = await ask<{ readonly processes: readonly Recent[] }>(gateway, '/state');
  const [{ outcomes, failuresPerSecond } = { outcomes: {}, failuresPerSecond: 0 }] = processes;
  expect(outcomes).toMatchObject({ '429': 0, '4xx': failuresPerSecond });
  expect(failuresPerSecond).toBeGreaterThan(0);
  const { figures } = await readMetrics(gateway.adminUrl);
  expect(figures.get('tollgate_failures_total{fault="upstream"}')).toBe(2);
  expect(figures.get('tollgate_failures_total{fault="gateway"}')).toBe(0);
});

it('a 429 of the limit of an address is told apart from a 429 of the limits of a key', async () => {
  const key = makeCustomKey(1_000, 1);
  const gateway = await start({ keys: [key.entry], addressBucket: { perMinute: 2 } });
  await withinOneMinute(10_000);
  expect(await send(gateway, key.secret, 3)).toEqual({ 200: 1, 429: 2 });
  expect(await send(gateway, 'nobody', 6)).toEqual({ 401: 2, 429: 4 });
  const { verdict, processes } = await ask<{
    readonly verdict: { readonly sentence: string };
    readonly processes: readonly Recent[];
  }>(gateway, '/state');
  const [{ outcomes: { '429': all = 0 } = {}, addressRefusalsPerSecond } = {}] = processes;
  expect(addressRefusalsPerSecond).toBeCloseTo((all * 4) / 6);
  expect(verdict.sentence).toMatch(
    /Refused: 22 % over a limit or banned, 44 % over the limit of their address and 22 % without a valid key\.$/,
  );
});

describe('the list of keys', () => {
  const limited = makeCustomKey(1_000, 1);
  const calm = makeCustomKey(1_000, 1_000);
  const near = makeCustomKey(1_000, 10);
  const banned = makeCustomKey(1_000, 1);
  const unused = makeKey({ id: 'unused' });
  const disabled = makeKey({ id: 'disabled', disabled: true });
  const expired = makeKey({ id: 'expired' });
  const past = { ...expired.entry, secrets: [{ ...expired.entry.secrets[0], expires: '2020-01-01' }] };
  const bare = { ...makeKey({ id: 'bare' }).entry, secrets: [] };
  const keys = [...[limited, calm, near, banned, unused, disabled].map(({ entry }) => entry), past, bare];

  it('shows the line of each key and when its secrets were issued, also after an edit above the line', async () => {
    const created = '2026-11-22T10:31:00.000Z';
    const dated = { ...expired.entry, secrets: [{ ...expired.entry.secrets[0], created }] };
    const gateway = await start({ keys: [unused.entry, dated] });
    const text = readFileSync(join(gateway.configDir, 'gateway.yaml'), 'utf8');
    const lineOf = (id: string) => text.split('\n').findIndex((line) => line.endsWith(`- id: ${id}`)) + 1;
    const places = async () =>
      (await ask<Page>(gateway, '/keys')).keys.map(({ id, file, line }) => [id, file, line]);
    const expected = (shift: number) =>
      ['expired', 'unused'].map((id) => [id, 'gateway.yaml', lineOf(id) + shift]);
    expect((await places()).toSorted()).toEqual(expected(0));
    const { line, secrets } = await ask<Item & { secrets: object[] }>(gateway, '/keys/expired');
    expect([line, secrets]).toEqual([lineOf('expired'), [expect.objectContaining({ createdAt: created })]]);

    await gateway.editConfig(`# one\n# two\n${text}`);
    await expect.poll(async () => (await places()).toSorted()).toEqual(expected(2));
  });

  it('shows each state, sorted by severity, in pages, and filtered', async () => {
    const gateway = await start({ keys, bans: { after: 5, for: '10m' } });
    await send(gateway, banned.secret, 12);
    await send(gateway, calm.secret, 3);
    await send(gateway, near.secret, 9);
    await send(gateway, limited.secret, 4);
    const { keys: all } = await ask<Page>(gateway, '/keys');
    const idle = ['bare', 'disabled', 'expired', 'unused'];
    expect(all.map(({ id }) => id)).toEqual(
      [banned, limited, ...[calm, near].sort((a, b) => (a.entry.id < b.entry.id ? -1 : 1))]
        .map(({ entry }) => entry.id)
        .concat(idle),
    );
    const states = Object.fromEntries(all.map(({ id, state }) => [id, state]));
    expect(states).toMatchObject({
      ...{ [banned.entry.id]: 'banned', [calm.entry.id]: 'ok', [near.entry.id]: 'near' },
      ...{ disabled: 'disabled', expired: 'expired', unused: 'unused', bare: 'no_secret' },
    });

    const paged: string[] = [];
    let after = '';
    do {
      const { keys: page, next = '' } = await ask<Page>(
        gateway,
        `/keys?limit=2${after && `&after=${after}`}`,
      );
      paged.push(...page.map(({ id }) => id));
      after = next;
    } while (after !== '');
    expect(paged).toEqual(all.map(({ id }) => id));

    for (const [query, ids] of [
      ['state=near', [near.entry.id]],
      ['state=unused', ['unused']],
      ['state=near,unused', [near.entry.id, 'unused']],
      ['plan=free&sort=id', idle],
      ['q=DISABL', ['disabled']],
      ['q=nobody', []],
      ['sort=id', all.map(({ id }) => id).sort()],
    ] as const) {
      expect((await ask<Page>(gateway, `/keys?${query}`)).keys.map(({ id }) => id)).toEqual(ids);
    }
    const [first] = (await ask<Page>(gateway, '/keys?sort=lastSeen&limit=1')).keys;
    expect(first?.id).toBe(limited.entry.id);
  });

  it('is also available without a usage record', async () => {
    const gateway = await start({ keys, usage: { keepDays: 0 } });
    await send(gateway, near.secret, 9);
    const { keys: all } = await ask<Page>(gateway, '/keys');
    expect(all.map(({ id }) => id)).toEqual(keys.map(({ id }) => id).sort());
    expect(all.find(({ id }) => id === near.entry.id)).toMatchObject({ state: 'near' });
    expect(all.some((item) => 'offered24h' in item)).toBe(false);
    expect(await ask<Usage>(gateway, `/keys/${near.entry.id}/usage`)).toEqual({ step: 'minute', rows: [] });
  });

  it('refuses an invalid query and names the problem', async () => {
    const gateway = await start({ keys });
    for (const [path, status, text] of [
      ['/keys?state=happy', 400, '`state` must be one or more of ok, near'],
      ['/keys?limit=0', 400, '`limit` must be a whole number from 1 to 500'],
      ['/keys?sort=colour', 400, '`sort` must be one of'],
      ['/keys/nobody', 404, 'There is no key with this id.'],
      ['/keys/nobody/usage', 404, 'There is no key with this id.'],
      ['/keys/unused/usage?from=yesterday', 400, '`from` must be a date such as'],
      ['/keys/unused/usage?from=2026-02-30', 400, '`from` must be a date such as'],
      ['/keys/unused/usage?from=2026-11-22&to=2026-11-21', 400, '`from` must not be later than `to`'],
      ['/keys/unused/usage?from=2026-01-01&to=2026-03-01', 400, 'at most 11520'],
      ['/keys/unused/usage?from=2020-01-01&step=day', 400, 'more than 400 days'],
      ['/operations/nothing/callers', 404, 'There is no operation nothing; operations are: '],
    ] as const) {
      const error = await ask<{ status: number; message: string }>(gateway, path, status);
      expect([path, error.status, error.message]).toEqual([path, status, expect.stringContaining(text)]);
    }
  });

  it('does not read days that are no longer kept, for any query', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const gateway = await start({ keys, usage: { keepDays: 3 }, ...onRedis(freshPrefix(), server.url) });
    await send(gateway, near.secret, 1);
    const inspector = inspect(server.url);
    onTestFinished(() => inspector.disconnect());
    const from = new Date(Date.now() - 399 * 86_400_000).toISOString();
    for (const path of ['/operations', '/operations/listPets/callers', '/deprecated']) {
      await inspector.config('RESETSTAT');
      await ask(gateway, `${path}?from=${from}`);
      const stats = await inspector.info('commandstats');
      const calls = [...stats.matchAll(/^cmdstat_(?:hmget|hgetall):calls=(\d+)/gm)].map(([, count]) =>
        Number(count),
      );
      const reads = calls.reduce((sum, count) => sum + count, 0);
      expect(reads).toBeGreaterThan(0);
      expect(reads).toBeLessThan(20);
    }
  });
});
