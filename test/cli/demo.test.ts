import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { bareEnvironment } from '../support/run-tollgate.ts';
import { startRedis } from '../support/start-redis.ts';

/** Runs `npm start` until it has printed its instructions. */
async function startDemo(env: Record<string, string>): Promise<string> {
  const [port, adminPort, backendPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const ports = { PORT: `${port}`, ADMIN_PORT: `${adminPort}`, BACKEND_PORT: `${backendPort}` };
  const child = spawn(process.execPath, ['gateway/cli/demo.ts'], {
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
    if (output.includes('do :; done')) return output;
  }
  throw new Error(`it ended before its instructions: ${output}`);
}

test('npm start says that counts are in Redis only while Redis is there', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  expect(await startDemo({ REDIS_URL: redis.url })).toContain('Counts are kept in Redis.');
  await redis.kill();
  const output = await startDemo({ REDIS_URL: redis.url });
  expect(output).not.toContain('in Redis');
  expect(output).toMatch(/Counts are kept by this process alone: Redis is away \(.*ECONNREFUSED/);
  expect(await startDemo({})).toContain('Counts are kept in memory (set REDIS_URL');
});

test('npm start prints a line that reads the admin API, with a token of this run or that of ADMIN_TOKEN', async () => {
  const drawn = await startDemo({});
  const [, token = '', url = ''] = /curl -H 'Authorization: Bearer (tga_\w+)' (\S+)/.exec(drawn) ?? [];
  const statusWith = async (url: string, bearer: string) =>
    (await fetch(url, { headers: { authorization: `Bearer ${bearer}` } })).status;
  expect(await statusWith(url, token)).toBe(200);
  // The same token is in the link to the pages, in the fragment, which no browser sends.
  expect(drawn).toContain(`${new URL(url).origin}/#token=${token}\n`);

  const given = await startDemo({ ADMIN_TOKEN: 'a-token-of-their-own' });
  const [, otherUrl = ''] = /curl -H "Authorization: Bearer \$ADMIN_TOKEN" (\S+)/.exec(given) ?? [];
  expect(await statusWith(otherUrl, 'a-token-of-their-own')).toBe(200);
  expect(await statusWith(otherUrl, token)).toBe(401);
  expect(given).not.toContain('a-token-of-their-own');
});
