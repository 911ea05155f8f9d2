import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createLimiter } from '../../gateway/request/limit/limiter.ts';
import { bans, keyNamed } from '../faults/limiters.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { createAuthority } from '../support/certificates.ts';
import { connectRedis, type RedisPlace } from '../support/connect-redis.ts';
import { readiness } from '../support/fleet.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { testConfig } from '../support/gateway-process.ts';
import { inspect } from '../support/inspect.ts';
import { makeRedisTls } from '../support/redis-tls.ts';
import { startCluster } from '../support/start-cluster.ts';
import { tagsOf } from '../support/start-form.ts';
import { startRedis } from '../support/start-redis.ts';
import { startSentinel } from '../support/start-sentinel.ts';
import { type StoreProcess, startStoreHere } from '../support/store-process.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientGateway, patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const password = 'a-word-that-no-log-shows';
const page = readFileSync(new URL('../../config/guide/redis.md', import.meta.url), 'utf8');
/** The ACL is copied literally from `config/guide/redis.md`, which describes the ACL for operators. */
const [, allowed = '', allowedOnCluster = ''] =
  /ACL SETUSER tollgate .* resetchannels (-@all[\s\S]*?)\n\n[\s\S]*? with `(\+cluster[^`]*)`/.exec(page) ??
  [];
const [, allowedAtSentinel = ''] = /ACL SETUSER watcher on '>change-me' ([\s\S]*?)\n\n/.exec(page) ?? [];
for (const commands of [allowed, allowedOnCluster, allowedAtSentinel])
  if (commands === '') throw new Error('the page does not name the commands where this test looks for them');
const rulesOf = (text: string) => text.split(/[\s\\']+/).filter((word) => word !== '');
const user = (name: string, ...rules: readonly string[]) => [
  ...['--user', name, 'on', `>${password}`, '~test:*', ...rules],
];
const users = [
  ...user('gateway', 'resetchannels', ...rulesOf(allowed), ...rulesOf(allowedOnCluster)),
  ...user('narrow', '+@all', '-hset', '-zmscore'),
];

const tls = makeRedisTls(['127.0.0.1']);
const own = { file: 'cert.pem', notAfterMs: 0, cert: tls.client.cert, key: tls.client.key };

interface Started {
  readonly place: RedisPlace;
  /** The clients with which the tests inspect Redis. There is one client for each server that stores keys. */
  readonly inspectors: readonly Redis[];
  stop(): Promise<void>;
}

const forms: readonly { readonly name: string; readonly start: () => Promise<Started> }[] = [
  {
    name: 'one server',
    async start() {
      const server = await startRedis(users, undefined, tls);
      const inspector = inspect(server.url, tls);
      const stop = async () => {
        inspector.disconnect();
        await server.stop();
      };
      return { place: { url: server.url }, inspectors: [inspector], stop };
    },
  },
  {
    name: 'a Cluster',
    async start() {
      const { urls, masters, stop } = await startCluster({ options: users, hasReplicas: false, tls });
      const inspectors = masters.map(({ inspector }) => inspector);
      return { place: { cluster: urls.slice(0, 1) }, inspectors, stop };
    },
  },
  {
    name: 'Sentinel',
    async start() {
      const sentinelLines = [`user watcher on >${password} ${rulesOf(allowedAtSentinel).join(' ')}`];
      const { name, hosts, servers, stop } = await startSentinel({ options: users, sentinelLines, tls });
      const sentinel = { name, hosts, username: 'watcher', password };
      const inspectors = servers.slice(0, 1).map(({ inspector }) => inspector);
      return { place: { sentinel }, inspectors, stop };
    },
  },
];

let folder: string;
let store: StoreProcess;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-access-'));
  await writeFile(join(folder, 'password'), `${password}\n`);
  store = await startStoreHere();
});
afterAll(async () => {
  await store.stop();
  await tls.remove();
  await rm(folder, { recursive: true, force: true });
});

/** The address of Redis as the setting `redis` of a configuration. */
function configOf({ sentinel, ...place }: RedisPlace): Record<string, unknown> {
  if (sentinel === undefined) return place;
  const { password: _, ...rest } = sentinel;
  return { sentinel: { ...rest, tls: true, passwordFile: join(folder, 'password') } };
}

/** On a busy machine, a TLS handshake with a server of a Cluster may take longer than the default timeout. */
const storeSlotsTimeoutMs = 20_000;

async function startWith(redis: Record<string, unknown>, config: Record<string, unknown> = {}) {
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: store.url, health: '/healthz' },
      redis: { prefix: 'test', passwordFile: join(folder, 'password'), ...redis },
      ...config,
    }),
    {
      tuning: {
        bounds: {
          ...patientGateway,
          storeSlotsTimeoutMs,
          storeAclRetryMs: 100,
          usageFlushIntervalMs: 1_000,
        },
      },
    },
  );
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

for (const form of forms) {
  describe(`on ${form.name}`, { tags: tagsOf(form) }, () => {
    let started: Started;
    beforeAll(async () => {
      started = await form.start();
    });
    afterAll(() => started.stop());

    const valueIn = async (command: string, ...args: readonly string[]) => {
      const values = await Promise.all(
        started.inspectors.map((inspector) => inspector.call(command, ...args).catch(() => null)),
      );
      return values.find((value) => value !== null && value !== 0);
    };

    it('TLS, a client certificate and the ACL of the page are sufficient for all counts and records', async () => {
      const token = makeToken('write');
      const gateway = await startWith(
        { ...configOf(started.place), username: 'gateway', ...tls.files },
        { keys: { directory: true }, admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] } },
      );
      const port = Number(new URL(gateway.adminUrl).port);
      const json = { id: 'acme', plan: 'pro' };
      let secret = '';
      // The gateway may still be connecting to Redis.
      await until('the key is issued', async () => {
        const { status, body } = await askAdmin(port, '/api/v1/keys', {
          method: 'POST',
          token: token.token,
          json,
        });
        if (status === 201) secret = body.secret;
        return status === 201;
      });
      const headers = { authorization: `Bearer ${secret}` };
      const response = await fetch(`${gateway.baseUrl}/store/orders`, { headers });
      expect(response.status).toBe(200);
      expect(await valueIn('HGET', 'test:{acme}', 'dayUsed')).toBe('1');
      const today = Math.floor(Date.now() / 86_400_000);
      await until('its usage is recorded', async () => {
        return (await valueIn('EXISTS', `test:{acme}:usage:${today}`)) === 1;
      });
      await until('the process is in the list', async () => {
        return (await valueIn('ZCARD', 'test:fleet:{processes}:seen')) === 1;
      });
      await until(
        'the change is recorded',
        async () => (await valueIn('XLEN', 'test:fleet:{changes}')) === 1,
      );
      // The gateway reports no problem with Redis, and the ACL has refused no command.
      expect((await readiness(gateway)).body.reasons).toEqual([]);
      for (const inspector of started.inspectors) expect(await inspector.acl('LOG')).toEqual([]);
      expect(gateway.output()).not.toContain(password.slice(0, 8));
    });

    const secured = { username: 'gateway', password, tls: { ca: tls.client.ca, clientCertificate: own } };
    const named = ({ url, cluster, sentinel }: RedisPlace): RedisPlace => {
      const byName = (place: string) => place.replace('127.0.0.1', 'localhost');
      if (url !== undefined) return { url: byName(url) };
      if (cluster !== undefined) return { cluster: cluster.map(byName) };
      return sentinel === undefined ? {} : { sentinel: { ...sentinel, hosts: sentinel.hosts.map(byName) } };
    };

    // Each case waits until the start fails. The cases run at the same time, so the waits overlap.
    it.concurrent.for<[string, RegExp, (place: RedisPlace) => RedisPlace]>([
      [
        'another authority than that of the servers',
        /self-signed certificate in certificate chain/,
        (place) => ({ ...place, ...secured, tls: { ca: createAuthority().cert, clientCertificate: own } }),
      ],
      [
        'a name that is not in the certificate of the servers',
        /Hostname.IP does not match certificate's altnames: Host: localhost/,
        (place) => ({ ...named(place), ...secured }),
      ],
      [
        'no client certificate',
        /certificate required|ECONNRESET|EPIPE/,
        (place) => ({ ...place, ...secured, tls: { ca: tls.client.ca } }),
      ],
      ['a wrong password', /WRONGPASS/, (place) => ({ ...place, ...secured, password: 'wrong' })],
    ])(
      '%s makes Redis unreachable, with the reason, and requests are served',
      async ([_what, reason, access], { expect, onTestFinished }) => {
        const reasons: unknown[] = [];
        const limiter = createLimiter({
          redis: { ...access(started.place), prefix: 'test', onFailure: 'local' },
          log: pino({ base: null }, { write: (line: string) => void reasons.push(JSON.parse(line).reason) }),
          nowMs: Date.now,
          planOf: () => undefined,
          bounds: tunedBounds({ ...patientStore, storeSlotsTimeoutMs, storeStartTimeoutMs: 4_000 }),
        });
        onTestFinished(() => limiter.close());
        expect(await limiter.decide(keyNamed('acme', 10), { bans }, { units: 1 })).toMatchObject({
          kind: 'admitted',
          source: 'local',
        });
        expect(reasons[0]).toMatch(reason);
        expect(limiter.state()).toMatchObject({ available: false, reason: expect.stringMatching(reason) });
      },
    );
  });
}

it('servers of a Cluster that announce host names are reached and verified by these names', async () => {
  const byName = makeRedisTls(['localhost']);
  onTestFinished(byName.remove);
  const cluster = await startCluster({ hasReplicas: false, hostname: 'localhost', tls: byName });
  onTestFinished(cluster.stop);
  const { ca, cert, key } = byName.client;
  const place = { cluster: cluster.urls.slice(0, 1), tls: { ca, clientCertificate: { ...own, cert, key } } };
  const redis = await connectRedis({ prefix: 'test', place });
  onTestFinished(() => redis.close());
  expect(redis.nodes().map(({ name }) => name?.split(':')[0])).toEqual(Array(3).fill('localhost'));
});

it('the start names a command that the ACL refuses, and /readyz drops it once it is allowed', async () => {
  const server = await startRedis(users);
  const inspector = inspect(server.url);
  onTestFinished(async () => {
    inspector.disconnect();
    await server.stop();
  });
  const gateway = await startWith({ url: server.url, username: 'narrow' });
  const line = await gateway.line(({ msg }) => String(msg).startsWith('the Redis user may not run'));
  expect(line).toMatchObject({ level: 50, commands: ['HSET', 'ZMSCORE'] });
  const { body, httpStatus } = await readiness(gateway);
  expect([httpStatus, body.reasons]).toEqual([
    200,
    expect.arrayContaining(['the Redis user may not run HSET, ZMSCORE']),
  ]);
  await inspector.acl('SETUSER', 'narrow', '+hset', '+zmscore');
  await until('it is allowed', async () => (await readiness(gateway)).body.reasons.length === 0);
});
