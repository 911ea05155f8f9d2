import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createAdminClient } from '../../../gateway/cli/admin/admin-client.ts';
import { type FollowedChanges, followChanges } from '../../../gateway/cli/admin/read/follow-changes.ts';
import { createChanges } from '../../../gateway/fleet/changes.ts';
import { openRedis } from '../../../gateway/redis/open-redis.ts';
import { makeToken } from '../../support/admin-client.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { freePort } from '../../support/free-port.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { bareEnvironment } from '../../support/run-tollgate.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { startRedis } from '../../support/start-redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

const bounds = tunedBounds({
  ...patientStore,
  presenceIntervalMs: 20,
  followIntervalMs: 20,
  followRetryMaxMs: 50,
});
const { token, entry } = makeToken('write', 'ada');

/** A gateway that a test can stop and start on the same port, with a record of changes that the test writes to. */
async function startRecord({ url = redisUrl() }: { url?: string } = {}) {
  const redis = { url, prefix: freshPrefix() };
  const port = await freePort();
  const settings = await settingsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    keys: [],
    admin: { host: '127.0.0.1', port, tokens: [entry] },
    redis,
  });
  const start = async () => {
    const log = { logger: pino({ level: 'silent' }), access: () => {} };
    const gateway = createGateway({ settings, log, bounds: { ...bounds, usageCloseTimeoutMs: 0 } });
    await gateway.start();
    return gateway;
  };
  const records = openRedis(redis, bounds);
  const changes = createChanges({ records, processId: 'writer', nowMs: Date.now, bounds });
  let gateway = await start();
  onTestFinished(async () => {
    await gateway.drain({ graceMs: 0 });
    await changes.close();
    records.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    record(from: number, to: number) {
      for (let number = from; number <= to; number++)
        changes.record({ action: 'revoke', by: 'ada', key: `k${number}` });
    },
    recorded: (key: string) =>
      until('the change is in Redis', async () => {
        const page = await changes.read({ limit: 1 });
        return page.isComplete && page.changes[0]?.action === 'revoke' && page.changes[0].key === key;
      }),
    stop: () => gateway.drain({ graceMs: 0 }),
    async restart() {
      gateway = await start();
    },
  };
}

function follow(url: string, options: { readonly limit: number; readonly after?: string }) {
  const printed: { readonly key?: string | undefined; readonly id: string }[] = [];
  const told: string[] = [];
  const sizes: number[] = [];
  const ended = new AbortController();
  const client = createAdminClient({ url: new URL(url), token }, bounds);
  const print = async ({ changes, jsonChanges }: FollowedChanges) => {
    expect(jsonChanges).toEqual(changes);
    sizes.push(changes.length);
    printed.push(...changes);
  };
  const done = followChanges(client, options, { print, tell: (line) => void told.push(line) }, ended.signal);
  onTestFinished(async () => {
    ended.abort();
    await done;
  });
  const keys = () => printed.map(({ key }) => key);
  return { keys, printed, told, sizes, end: () => ended.abort() };
}

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `k${from + index}`);

it('the last changes are printed with the oldest first, and then each new change once', async () => {
  const { url, record, recorded } = await startRecord();
  record(1, 5);
  await recorded('k5');
  const some = follow(url, { limit: 3 });
  const none = follow(url, { limit: 0 });
  await expect.poll(some.keys).toEqual(range(3, 5));
  let repeated = 0;
  await until('the second command has begun', async () => {
    record(6, 6);
    repeated += 1;
    await recorded('k6');
    return none.keys().includes('k6');
  });
  record(7, 9);
  const news = [...Array(repeated).fill('k6'), ...range(7, 9)];
  await expect.poll(some.keys).toEqual([...range(3, 5), ...news]);
  await expect.poll(() => none.keys().at(-1)).toBe('k9');
  expect(none.keys()).toEqual(news.slice(-none.keys().length));
});

it('500 changes during a restart of the gateway are printed once and in order, a page at a time', async () => {
  const { url, record, recorded, stop, restart } = await startRecord();
  record(1, 2);
  await recorded('k2');
  const following = follow(url, { limit: 50 });
  await expect.poll(following.keys).toEqual(range(1, 2));
  await stop();
  record(3, 502);
  await recorded('k502');
  await expect.poll(() => following.told.length).toBe(1);
  expect(following.told[0]).toMatch(/^No server answers at .* This command tries again until the record/);
  await restart();
  await expect.poll(following.keys, { timeout: 20_000 }).toEqual(range(1, 502));
  record(503, 503);
  await expect.poll(() => following.keys().at(-1)).toBe('k503');
  expect(following.keys()).toEqual(range(1, 503));
  expect(following.told.slice(1)).toEqual(['The record of changes can be read again.']);
  expect(Math.max(...following.sizes)).toBeLessThanOrEqual(bounds.changesPerPageMax);
});

it('a command that begins after the last printed change continues with the next change', async () => {
  const { url, record, recorded } = await startRecord();
  record(1, 3);
  await recorded('k3');
  const first = follow(url, { limit: 2 });
  await expect.poll(first.keys).toEqual(range(2, 3));
  const after = first.printed.at(-1)?.id ?? '';
  first.end();
  record(4, 450);
  await recorded('k450');
  const second = follow(url, { limit: 50, after });
  await expect.poll(second.keys, { timeout: 20_000 }).toEqual(range(4, 450));
  expect(second.told).toEqual([]);
});

it('a change that the record has lost is told once, and the command continues', async () => {
  const { url, record, recorded } = await startRecord();
  record(1, 2);
  await recorded('k2');
  const following = follow(url, { limit: 0, after: '1000-0' });
  await expect.poll(following.keys).toEqual(range(1, 2));
  record(3, 3);
  await expect.poll(following.keys).toEqual(range(1, 3));
  expect(following.told).toEqual([
    'The record no longer has the change 1000-0, so changes after it may be missing here.',
  ]);
});

it('while Redis is away, the own changes of the gateway are not printed, and afterwards each change is printed once', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const { url, record } = await startRecord({ url: server.url });
  const following = follow(url, { limit: 50 });
  record(1, 1);
  await expect.poll(following.keys).toEqual(['k1']);
  await server.kill();
  await expect.poll(() => following.told[0]).toMatch(/^Redis is away from http/);
  const reported = await fetch(`${url}/api/v1/changes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ action: 'restore', key: 'late' }),
  });
  expect(reported.status).toBe(204);
  await server.restart();
  await expect.poll(following.keys, { timeout: 20_000 }).toEqual(['k1', 'late']);
  await expect.poll(() => following.told.at(-1)).toBe('The record of changes can be read again.');
});

it('a wrong token ends the command', async () => {
  const { url } = await startRecord();
  const client = createAdminClient({ url: new URL(url), token: 'wrong' }, bounds);
  const follower = { print: async () => {}, tell: () => {} };
  await expect(followChanges(client, { limit: 1 }, follower)).rejects.toThrow('does not know the token');
});

it('the command prints one JSON object a line, and a signal or a closed pipe ends it without an error', async () => {
  const { url, record, recorded } = await startRecord();
  record(1, 3);
  await recorded('k3');
  const run = () => {
    const child = spawn(
      process.execPath,
      ['gateway/cli/tollgate.ts', 'changes', '--follow', '--json', '--limit', '2'],
      {
        env: { ...bareEnvironment, TOLLGATE_ADMIN: url, TOLLGATE_ADMIN_TOKEN: token },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      errors += chunk;
    });
    return {
      child,
      exited: once(child, 'exit'),
      lines: () => output.split('\n').slice(0, -1),
      errors: () => errors,
    };
  };
  const signalled = [run(), run()];
  const piped = run();
  for (const { lines } of [...signalled, piped])
    await expect.poll(() => lines().length, { timeout: 20_000 }).toBe(2);
  expect(piped.lines().map((line) => JSON.parse(line).key)).toEqual(range(2, 3));
  signalled[0]?.child.kill('SIGTERM');
  signalled[1]?.child.kill('SIGINT');
  piped.child.stdout.destroy();
  record(4, 4);
  for (const { exited, errors } of [...signalled, piped])
    expect([await exited, errors()]).toEqual([[0, null], '']);
});
