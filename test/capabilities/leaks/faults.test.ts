import { generateKeyPairSync } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { createSigningKeys } from '../../../gateway/capabilities/leaks/github/signing-keys.ts';
import { issueSecret } from '../../../gateway/shared/secrets.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { type DirectoryOfTest, directoryOf } from '../../support/directory-of.ts';
import { fetchOnce } from '../../support/fetch-once.ts';
import { type Fleet, readiness, startFleetHere } from '../../support/fleet.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { entryFor, labelOf, makeReporter, sendReport } from '../../support/leak-report.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientGateway, steadyStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

const reporter = makeReporter();
const token = makeToken('write', 'ops');

describe('while Redis is away', () => {
  const inFile = makeKey({ id: 'in-file', plan: 'pro' }, issueSecret());
  const other = makeKey({ id: 'other', plan: 'pro' }, issueSecret());
  const issued = issueSecret();
  let fleet: Fleet<RunningGateway>;
  let directory: DirectoryOfTest;

  beforeAll(async () => {
    const tuning = {
      bounds: { ...steadyStore, storePatientDeadlineMs: 1_000, leakRenewalMs: 200, leakBlockKeptMs: 500 },
    };
    fleet = await startFleetHere({
      starts: [{ tuning }, { tuning }],
      config: {
        keys: { file: './keys.yaml', directory: true },
        admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
        leaksPath: '/leaks',
        leaks: { github: { keysFile: './github-keys.json' } },
      },
      files: { 'keys.yaml': [inFile.entry, other.entry], 'github-keys.json': reporter.publicKeys },
    });
    directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
    await directory.issue('issued', [issued]);
  });
  afterAll(async () => {
    directory?.close();
    await fleet?.stop();
  });

  const statusesOf = (secret: string) =>
    Promise.all(
      fleet.origins.map(async (origin) => {
        return (await fetchOnce(`${origin}/v1/pets`, { authorization: `Bearer ${secret}` })).status;
      }),
    );

  it('a report gets 503, and the same report ends the secrets when Redis is back', async () => {
    expect([await statusesOf(inFile.secret), await statusesOf(issued)]).toEqual([
      [200, 200],
      [200, 200],
    ]);
    const entries = [entryFor(inFile.secret), entryFor(issued)];
    fleet.redis.freeze();
    const { status, body, headers } = await sendReport(fleet.origins[0] ?? '', reporter, entries);
    expect([status, body.code, headers['retry-after']]).toEqual([503, 'store_unavailable', '1']);
    fleet.redis.thaw();
    const answered = async () => (await sendReport(fleet.origins[0] ?? '', reporter, entries)).status === 200;
    await until('the report is accepted', answered);
    await until('every process refuses both secrets', async () => {
      const all = [await statusesOf(inFile.secret), await statusesOf(issued)].flat();
      return all.every((one) => one === 401);
    });
    const { port } = new URL(fleet.gateways[0]?.adminUrl ?? '');
    const { changes } = (await askAdmin(Number(port), '/api/v1/changes', { token: token.token })).body;
    const keys = changes.filter(({ action }: { action: string }) => action === 'leak');
    expect(new Set(keys.map(({ key }: { key: string }) => key))).toEqual(new Set(['in-file', 'issued']));
  });

  it('a process that starts later refuses the blocked secret', async () => {
    const late = await startGatewayHere(
      { ...fleet.config, redis: { url: fleet.redis.url, prefix: fleet.prefix } },
      {
        files: { 'keys.yaml': [inFile.entry, other.entry], 'github-keys.json': reporter.publicKeys },
        tuning: { bounds: patientGateway },
      },
    );
    onTestFinished(async () => void (await late.stop('SIGINT')));
    const statusOf = async (secret: string) =>
      (await fetchOnce(`${late.baseUrl}/pets`, { authorization: `Bearer ${secret}` })).status;
    expect([await statusOf(inFile.secret), await statusOf(other.secret)]).toEqual([401, 200]);
  });

  it('the block ends when no gateway has the secret in its file any more', async () => {
    const blocked = () => fleet.inspector.hkeys(`${fleet.prefix}:leaked-secrets`);
    const withoutLeaked = async (gateway: RunningGateway) => {
      const file = join(gateway.configDir, 'keys.yaml');
      const keys = parse(await readFile(file, 'utf8'));
      await writeFile(file, stringify(keys.filter(({ id }: { id: string }) => id !== 'in-file')));
      await until('the gateway does not report a leaked secret', async () => {
        const { reasons } = (await readiness(gateway)).body;
        return !reasons.some((reason) => reason.includes('leaked'));
      });
    };
    const [first, second] = fleet.gateways;
    if (first === undefined || second === undefined) throw new Error('there are two gateways');
    expect((await readiness(first)).body.reasons).toContain('the configuration still has 1 leaked secret');
    await withoutLeaked(first);
    await withoutLeaked(second);
    await until('the block has ended', async () => (await blocked()).length === 0);
  });
});

describe('with the setting onLeak: report', () => {
  it('a leak is recorded and the secret stays valid, until a report after the change to revoke', async () => {
    const inFile = makeKey({ id: 'in-file', plan: 'pro' });
    const config = { keys: [inFile.entry], admin: { port: 0, tokens: [token.entry] } };
    const settings = await settingsOf({
      upstream: { url: 'http://127.0.0.1:1' },
      ...config,
      redis: { url: redisUrl(), prefix: freshPrefix() },
      leaks: { onLeak: 'report' },
    });
    const gateway = createGateway({
      settings: { ...settings, directory: true },
      log: { logger: pino({ level: 'silent' }), access: () => {} },
      bounds: tunedBounds(patientGateway),
    });
    const { listen, admin } = await gateway.start();
    onTestFinished(() => gateway.drain({ graceMs: 0 }));
    const ask = (path: string, json?: unknown) =>
      askAdmin(admin.port, `/api/v1${path}`, {
        token: token.token,
        ...(json ? { method: 'POST', json } : {}),
      });
    const { secret } = (await ask('/keys', { id: 'issued', plan: 'pro' })).body;
    const statusOf = async (one: string) =>
      (await fetchOnce(`http://127.0.0.1:${listen.port}/v1/pets`, { authorization: `Bearer ${one}` })).status;
    const json = [{ token: inFile.secret }, { token: secret }];
    const recorded = (await ask('/leaks', json)).body;
    expect(recorded.map(({ label, ended }: Record<string, unknown>) => [label, ended])).toEqual([
      ['true_positive', false],
      ['true_positive', false],
    ]);
    expect([await statusOf(inFile.secret), await statusOf(secret)]).not.toContain(401);
    for (const id of ['in-file', 'issued']) {
      expect((await ask(`/keys/${id}`)).body.secrets[0].leak).toMatchObject({ by: 'ops', ended: false });
    }

    gateway.reload({ ...settings, directory: true, leaks: { onLeak: 'revoke' } });
    expect([await statusOf(inFile.secret), await statusOf(secret)]).not.toContain(401);
    await ask('/leaks', json);
    expect([await statusOf(inFile.secret), await statusOf(secret)]).toEqual([401, 401]);
    const { changes } = (await ask('/changes')).body;
    expect(changes.filter(({ action }: { action: string }) => action === 'leak')).toHaveLength(4);
  });
});

describe('without Redis', () => {
  it('a leak is recorded and listed once, and the secret stays valid until it leaves the file', async () => {
    const [leaked, other] = [makeKey({ id: 'leaked' }), makeKey({ id: 'other' })];
    const config = testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      keys: [leaked.entry, other.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    });
    const gateway = await startGatewayHere(config, { tuning: { bounds: { leakRenewalMs: 20 } } });
    onTestFinished(async () => void (await gateway.stop('SIGKILL')));
    const port = Number(new URL(gateway.adminUrl).port);
    const ask = (path: string, json?: unknown) =>
      askAdmin(port, `/api/v1${path}`, { token: token.token, ...(json ? { method: 'POST', json } : {}) });
    const report = () => ask('/leaks', [{ token: leaked.secret }]);
    const statusOf = async () =>
      (await fetchOnce(`${gateway.baseUrl}/pets`, { authorization: `Bearer ${leaked.secret}` })).status;
    for (let times = 0; times < 2; times++) {
      const { status, body } = await report();
      expect([status, body[0].key, body[0].ended]).toEqual([200, 'leaked', false]);
    }
    expect(await statusOf()).not.toBe(401);
    expect((await ask('/leaks')).body.secrets).toMatchObject([{ key: 'leaked', leak: { ended: false } }]);
    expect((await readiness(gateway)).body.reasons).toContain('the configuration still has 1 leaked secret');
    const { changes } = (await ask('/changes')).body;
    expect(changes.filter(({ action }: { action: string }) => action === 'leak')).toHaveLength(1);

    // With `redis`, a leaked secret ends. The gateway connects to Redis only when it starts again, so the reporter must retry.
    const redis = { url: redisUrl(), prefix: freshPrefix() };
    await gateway.editConfig({ ...config, redis });
    await until('the reporter must retry', async () => (await report()).status === 503);
    expect(await statusOf()).not.toBe(401);

    await gateway.editConfig({ ...config, redis, keys: [other.entry] });
    await until('no leak is listed', async () => (await ask('/leaks')).body.secrets.length === 0);
  });
});

describe('the public keys of GitHub at a URL', () => {
  const settings = (keysUrl: string) => ({ leaks: { onLeak: 'revoke', github: { keysUrl } } }) as const;
  const signingKeys = (more = {}) =>
    createSigningKeys({
      log: pino({ level: 'silent' }),
      bounds: tunedBounds({ leakKeysTimeoutMs: 60_000, ...more }),
    });

  /** Starts a server that counts its requests. */
  async function serve(react: (index: number) => string | undefined) {
    let requests = 0;
    const server = createServer((_, res) => {
      const body = react(requests++);
      if (body !== undefined) res.end(body);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    await until('the server listens', () => server.listening);
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}/keys`, requests: () => requests };
  }

  it('are fetched once for many reports, also for invented identifiers', async () => {
    const server = await serve(() => reporter.publicKeys);
    const keys = signingKeys();
    const names = [reporter.identifier, ...Array.from({ length: 20 }, (_, index) => `invented-${index}`)];
    const found = await Promise.all(names.map((name) => keys.find(name, settings(server.url))));
    expect(found.map(({ kind }) => kind)).toEqual(['found', ...Array(20).fill('away')]);
    expect((await keys.find('later', settings(server.url))).kind).toBe('away');
    expect(server.requests()).toBe(1);
  });

  it('are fetched once more before a report with a new identifier is refused, also after an invented one', async () => {
    const next = makeReporter('next');
    const server = await serve((index) => (index === 0 ? reporter.publicKeys : next.publicKeys));
    let nowMs = 0;
    const keys = createSigningKeys({
      log: pino({ level: 'silent' }),
      bounds: tunedBounds({ leakKeysTimeoutMs: 60_000 }),
      nowMs: () => nowMs,
    });
    const kindOf = async (name: string) => (await keys.find(name, settings(server.url))).kind;
    expect(await kindOf('invented')).toBe('unknown');
    expect([await kindOf('next'), await kindOf('other')]).toEqual(['away', 'away']);
    expect(await kindOf('invented')).toBe('unknown');
    nowMs = 59_999;
    expect(await keys.find('next', settings(server.url))).toEqual({ kind: 'away', retryMs: 1 });
    nowMs = 60_000;
    expect(await kindOf('next')).toBe('found');
    expect(await kindOf('other')).toBe('unknown');
    expect(server.requests()).toBe(2);
  });

  it('are fetched again for a new identifier when a minute has passed', async () => {
    const next = makeReporter('next');
    const server = await serve((index) => (index === 0 ? reporter.publicKeys : next.publicKeys));
    const keys = signingKeys({ leakKeysFetchedMs: 1 });
    expect((await keys.find(reporter.identifier, settings(server.url))).kind).toBe('found');
    await until(
      'the new key is found',
      async () => (await keys.find('next', settings(server.url))).kind === 'found',
    );
    await until(
      'the keys were fetched again, and the old key is unknown',
      async () => (await keys.find(reporter.identifier, settings(server.url))).kind === 'unknown',
    );
  });

  it('are used although the list also has a key on another curve', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
    const key = publicKey.export({ type: 'spki', format: 'pem' });
    const { public_keys } = JSON.parse(reporter.publicKeys);
    const list = [{ key_identifier: 'other-curve', key, is_current: true }, ...public_keys];
    const server = await serve(() => JSON.stringify({ public_keys: list }));
    const keys = signingKeys();
    expect((await keys.find(reporter.identifier, settings(server.url))).kind).toBe('found');
    expect((await keys.find('other-curve', settings(server.url))).kind).toBe('away');
  });

  it.each([
    ['hangs', () => undefined],
    ['sends no list of keys', () => '{}'],
    ['sends no end', () => 'x'.repeat(1_000_000)],
    ['sends a key of another curve', () => reporter.publicKeys.replace('BEGIN PUBLIC', 'BEGIN RSA PUBLIC')],
  ])('cannot be read while the server %s, so the reporter must retry', async (_, react) => {
    const server = await serve(react);
    const keys = signingKeys({ leakKeysTimeoutMs: 500 });
    expect((await keys.find(reporter.identifier, settings(server.url))).kind).toBe('away');
    expect((await keys.find('another', settings(server.url))).kind).toBe('away');
    expect(server.requests()).toBe(1);
  });
});

it('a signed report with a body above the limit gets 413, and a flood of bodies gets 429', async () => {
  const key = makeKey({ id: 'in-file', plan: 'pro' });
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      keys: [key.entry],
      leaksPath: '/leaks',
      leaks: { onLeak: 'report', github: { keysFile: './github-keys.json' } },
    }),
    {
      files: { 'github-keys.json': reporter.publicKeys },
      tuning: { bounds: { leakReportBytesMax: 1_000, leakReportsPerMinuteMax: 5 } },
    },
  );
  onTestFinished(async () => void (await gateway.stop('SIGINT')));
  const origin = `http://127.0.0.1:${gateway.port}`;
  const large = await sendReport(origin, reporter, [entryFor(key.secret, { url: 'x'.repeat(2_000) })]);
  expect([large.status, large.body.code]).toEqual([413, 'payload_too_large']);
  expect((await sendReport(origin, reporter, [entryFor(key.secret)])).body).toEqual([
    labelOf(key.secret, 'true_positive'),
  ]);
  const statuses = [];
  for (let sent = 0; sent < 5; sent++) statuses.push((await sendReport(origin, reporter, [])).status);
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
});
