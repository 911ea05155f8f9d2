import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import { bareEnvironment } from '../../support/run-tollgate.ts';
import { startRedis } from '../../support/start-redis.ts';

/** Runs `npm start` until it has printed its instructions. */
async function startDemo(env: Record<string, string>): Promise<string> {
  const [port, adminPort, backendPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const ports = { PORT: `${port}`, ADMIN_PORT: `${adminPort}`, BACKEND_PORT: `${backendPort}` };
  const child = spawn(process.execPath, ['gateway/cli/start/demo.ts'], {
    env: { ...bareEnvironment, ...ports, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    child.kill('SIGINT');
    if (child.exitCode === null) await once(child, 'exit');
  });
  let output = '';
  for await (const chunk of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    output += chunk;
    if (output.includes('Ctrl-C stops everything.')) return output;
  }
  throw new Error(`it ended before its instructions: ${output}`);
}

test('npm start states that counts are in Redis only while Redis is reachable', {
  tags: 'full',
}, async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const remainingOf = async (guide: string) => {
    const [, secret = '', url = ''] = /curl -i -H 'Authorization: Bearer (\S+)' (\S+)/.exec(guide) ?? [];
    const { headers } = await fetch(url, { headers: { authorization: `Bearer ${secret}` } });
    return headers.get('x-ratelimit-remaining');
  };
  // A second run with the same Redis starts with unused keys.
  for (let run = 0; run < 2; run++) {
    const guide = await startDemo({ REDIS_URL: redis.url });
    expect(guide).toContain('Counts are kept in Redis.');
    expect(await remainingOf(guide)).toBe('59');
  }
  await redis.kill();
  const output = await startDemo({ REDIS_URL: redis.url });
  expect(output).not.toContain('in Redis');
  expect(output).toMatch(
    /Counts are kept by this process alone, because Redis is unavailable \(.*ECONNREFUSED/,
  );
  expect(await startDemo({})).toContain('Counts are kept in memory (set REDIS_URL');
});

test('npm start prints first a request that gets a 200, then the loop to the 429, then the pages', async () => {
  const guide = await startDemo({});
  const [, first = ''] = /^ {2}(curl .*)$/m.exec(guide) ?? [];
  const [, loop = ''] = /^ {2}(until .*done)$/m.exec(guide) ?? [];
  const [, pages = ''] = /^ {2}(http:\/\/127\.0\.0\.1:\d+\/)$/m.exec(guide) ?? [];
  expect(guide.indexOf(loop)).toBeGreaterThan(guide.indexOf(first));
  expect(guide.indexOf(pages)).toBeGreaterThan(guide.indexOf(loop));
  const shell = (line: string) => promisify(execFile)('bash', ['-c', line]);
  expect((await shell(first)).stdout).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  // The output goes through `cat`, because Node's own pipe is a socket, which cannot be opened as
  // `/dev/stderr`.
  const statuses = (await shell(`${loop} 2>&1 | cat`)).stdout.trim().split('\n');
  expect([new Set(statuses.slice(0, -1)), statuses.at(-1)]).toEqual([new Set(['200']), '429']);
});

test('npm start prints a line that reads the admin API, with a token of this run or that of TOLLGATE_ADMIN_TOKEN', {
  tags: 'full',
}, async () => {
  const drawn = await startDemo({});
  const [, token = '', url = ''] = /curl -H 'Authorization: Bearer (tga_\w+)' (\S+)/.exec(drawn) ?? [];
  const statusWith = async (url: string, bearer: string) =>
    (await fetch(url, { headers: { authorization: `Bearer ${bearer}` } })).status;
  expect(await statusWith(url, token)).toBe(200);
  // The user types the token into the page, because a token in an address would stay in the browser's history.
  expect(drawn).toContain(`  ${new URL(url).origin}/\n  ${token}\n`);

  const given = await startDemo({ TOLLGATE_ADMIN_TOKEN: 'a-token-of-their-own' });
  const [, otherUrl = ''] = /curl -H "Authorization: Bearer \$TOLLGATE_ADMIN_TOKEN" (\S+)/.exec(given) ?? [];
  expect(await statusWith(otherUrl, 'a-token-of-their-own')).toBe(200);
  expect(await statusWith(otherUrl, token)).toBe(401);
  expect(given).not.toContain('a-token-of-their-own');
});
