import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { runTollgate } from '../../support/run-tollgate.ts';

const token = makeToken('write', 'alice');
const acme = makeKey({ id: 'acme', plan: 'free' });
const config = {
  upstream: { url: 'http://127.0.0.1:1' },
  keys: [acme.entry],
  limitsPath: '/limits',
  admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
};
let gateway: RunningGateway;
let withoutRedis: RunningGateway;

beforeAll(async () => {
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const baseUrl = 'https://api.example.com/v1';
  [gateway, withoutRedis] = await Promise.all([
    startGatewayHere(testConfig({ ...config, baseUrl, redis })),
    startGatewayHere(testConfig({ ...config, environment: 'local' })),
  ]);
});
afterAll(() => Promise.all([gateway.stop('SIGKILL'), withoutRedis.stop('SIGKILL')]));

const run = (args: readonly string[], of = gateway) =>
  runTollgate(args, { TOLLGATE_ADMIN: of.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token, COLUMNS: '200' });

it('link prints the public URL once, the list and keys show name its digest, and unlink ends it', async () => {
  const made = await run(['keys', 'link', 'acme', '--for', '7d']);
  expect(made.stdout).toMatch(/^https:\/\/api\.example\.com\/limits#tgl_[0-9A-Za-z]{46}\.YWNtZQ\n$/);
  expect(made.stderr.trimEnd()).toMatch(
    /^The link opens the page of acme until \S+ \S+ UTC, .*"keys unlink acme (\w{8})" ends it\.$/,
  );
  const [, start = ''] = /unlink acme (\w{8})/.exec(made.stderr) ?? [];
  const { stdout: json } = await run(['keys', 'link', 'acme', '--for', '1h', '--json']);
  const { link } = JSON.parse(json);
  const list = (await run(['keys', 'link', 'acme', '--list'])).stdout;
  expect(list.split('\n').slice(0, 3)).toEqual([
    '2 links open the page of acme:',
    expect.stringContaining(`  ${link.digestStart}, made by alice, until `),
    expect.stringContaining(`  ${start}, made by alice, until `),
  ]);
  expect((await run(['keys', 'show', 'acme'])).stdout).toMatch(
    new RegExp(`^link +${start}, made by alice, until`, 'm'),
  );
  const ended = await run(['keys', 'unlink', 'acme', start]);
  expect(ended.stdout.split('\n').slice(0, 2)).toEqual([
    `1 link of acme ended: ${start}.`,
    '1 link opens the page of acme:',
  ]);
  expect((await run(['keys', 'unlink', 'acme', '--all'])).stdout).toBe(
    `1 link of acme ended: ${link.digestStart}.\n`,
  );
  expect((await run(['keys', 'unlink', 'acme', '--all'])).stdout).toBe('acme has no links.\n');
  expect((await run(['changes'])).stdout).toMatch(
    /alice made a link to the page of acme until .*\(run by .* · link \w{8}/,
  );
});

it.each([
  [['keys', 'link', 'acme'], 'How long? Give --for, such as --for 7d, or --list.'],
  [['keys', 'link', 'acme', '--for', '31d'], 'The member `for` must be at most 30 days.'],
  [['keys', 'link', 'acme', '--for', 'week'], 'It must be a duration such as 7d, 12h or 30m.'],
  [['keys', 'link', 'nobody', '--for', '7d'], 'There is no key nobody'],
  [['keys', 'unlink', 'acme'], 'Which link?'],
  [['keys', 'unlink', 'acme', '1a2b3c4d', '--all'], 'Which link?'],
  [
    ['keys', 'unlink', 'acme', '1a2b3c4d'],
    'acme has no link 1a2b3c4d: "keys link acme --list" lists its links.',
  ],
  [['keys', 'unlink', 'nobody', '--all'], 'There is no key nobody'],
])('%j fails with a reason', async (args, reason) => {
  const { exitCode, stdout, stderr } = await run(args);
  expect([exitCode, stdout]).toEqual([1, '']);
  expect(stderr).toContain(reason);
});

it('without Redis, no link can be made, and a key has none', async () => {
  const { exitCode, stderr } = await run(['keys', 'link', 'acme', '--for', '7d'], withoutRedis);
  expect([exitCode, stderr]).toEqual([
    1,
    'Links are in Redis: write `redis` into the configuration, and restart the gateway.\n',
  ]);
  expect((await run(['keys', 'link', 'acme', '--list'], withoutRedis)).stdout).toBe('acme has no links.\n');
  expect((await run(['keys', 'unlink', 'acme', '--all'], withoutRedis)).stdout).toBe('acme has no links.\n');
  const response = await fetch(`http://127.0.0.1:${withoutRedis.port}/limits`, {
    headers: { authorization: `Bearer tgl_${'0'.repeat(40)}2kaqcA.YWNtZQ` },
  });
  expect(response.status).toBe(401);
});
