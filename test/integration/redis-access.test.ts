import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createAuthority } from '../support/certificates.ts';
import { readiness } from '../support/fleet.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { inspect } from '../support/inspect.ts';
import { freePort, type RedisServer, startRedis } from '../support/start-redis.ts';
import { type StoreProcess, startStore } from '../support/store-process.ts';
import { steadyStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const authority = createAuthority();
const ofServer = authority.issue({ names: ['127.0.0.1', 'localhost'] });
const ofGateway = authority.issue({ names: ['gateway.test'] });
const password = 'a-word-that-no-log-shows';

let folder: string;
let server: RedisServer;
let store: StoreProcess;
let tlsPort: number;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-access-'));
  const files = { 'ca.pem': authority.cert, 'server.pem': ofServer.cert, 'server-key.pem': ofServer.key };
  const own = { 'cert.pem': ofGateway.cert, 'key.pem': ofGateway.key, password: `${password}\n` };
  for (const [name, text] of Object.entries({ ...files, ...own })) await writeFile(join(folder, name), text);
  tlsPort = await freePort();
  server = await startRedis([
    ...[
      '--tls-port',
      `${tlsPort}`,
      '--tls-auth-clients',
      'yes',
      '--tls-ca-cert-file',
      join(folder, 'ca.pem'),
    ],
    ...['--tls-cert-file', join(folder, 'server.pem'), '--tls-key-file', join(folder, 'server-key.pem')],
    ...['--user', 'gateway', 'on', `>${password}`, '~test:*', '+@all', '-@dangerous', '+info'],
    ...['--user', 'narrow', 'on', `>${password}`, '~test:*', '+@all', '-hset', '-zmscore'],
  ]);
  store = await startStore();
});
afterAll(async () => {
  await Promise.all([server.stop(), store.stop()]);
  await rm(folder, { recursive: true, force: true });
});

async function start(redis: Record<string, string>) {
  const key = makeCustomKey(1_000, 1_000);
  const gateway = await startGateway(
    testConfig({
      upstream: { url: store.url, health: '/healthz' },
      keys: [key.entry],
      redis: { prefix: 'test', passwordFile: join(folder, 'password'), ...redis },
    }),
    { tuning: { bounds: { ...steadyStore, storeStartTimeoutMs: 3_000, storeAclRetryMs: 100 } } },
  );
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  const request = async () => {
    const headers = { authorization: `Bearer ${key.secret}` };
    const response = await fetch(`${gateway.baseUrl}/store/orders`, { headers });
    await response.text();
    return response.status;
  };
  return { gateway, key, request };
}

const files = () => ({
  ca: join(folder, 'ca.pem'),
  cert: join(folder, 'cert.pem'),
  key: join(folder, 'key.pem'),
});

it('over TLS, with a client certificate and an ACL user whose password is in a file, requests are counted in Redis', async () => {
  const { gateway, key, request } = await start({ url: `rediss://gateway@127.0.0.1:${tlsPort}`, ...files() });
  expect(await request()).toBe(200);
  const inspector = inspect(server.url);
  onTestFinished(() => inspector.disconnect());
  expect(await inspector.hget(`test:{${key.entry.id}}`, 'dayUsed')).toBe('1');
  // Nothing is missing that the parts beside the limiter need, and nothing was sent without permission.
  await until('the usage of the key is recorded', async () => {
    return (
      (await inspector.exists(`test:{${key.entry.id}}:usage:${Math.floor(Date.now() / 86_400_000)}`)) === 1
    );
  });
  expect((await readiness(gateway)).body.reasons).toEqual([]);
  expect(await inspector.acl('LOG')).toEqual([]);
  expect(gateway.output()).not.toContain(password.slice(0, 8));
});

it.each([
  [
    'an authority that did not sign the server’s certificate',
    () => ({ ...files(), ca: undefined }),
    /certificate|self.signed/,
  ],
  ['no client certificate', () => ({ ca: join(folder, 'ca.pem') }), /.+/],
])('with %s Redis is away, and the reason is told', async (_what, given, reason) => {
  const stated = Object.entries(given()).filter(([, path]) => path !== undefined);
  const { gateway, request } = await start({
    url: `rediss://gateway@127.0.0.1:${tlsPort}`,
    ...(Object.fromEntries(stated) as Record<string, string>),
  });
  const line = await gateway.line(({ msg }) => msg === 'Redis is away');
  expect(line.reason).toMatch(reason);
  expect(await request()).toBe(200);
});

it('a command that the ACL refuses is named at the start, and gone from /readyz once it is allowed', async () => {
  const { gateway } = await start({ url: server.url, username: 'narrow' });
  const line = await gateway.line(({ msg }) => String(msg).startsWith('the Redis user may not run'));
  expect(line).toMatchObject({ level: 50, commands: ['HSET', 'ZMSCORE'] });
  const { body, httpStatus } = await readiness(gateway);
  expect([httpStatus, body.reasons]).toEqual([
    200,
    expect.arrayContaining(['the Redis user may not run HSET, ZMSCORE']),
  ]);
  const inspector = inspect(server.url);
  onTestFinished(() => inspector.disconnect());
  await inspector.acl('SETUSER', 'narrow', '+hset', '+zmscore');
  await until('it is allowed', async () => (await readiness(gateway)).body.reasons.length === 0);
});
