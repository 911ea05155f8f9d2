import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { until } from '../../support/until.ts';

const token = makeToken('write', 'alice');
const acme = makeKey({ id: 'acme', plan: 'free' });
const guard = { refusedAtMost: '50 %', until: '2100-01-01' };
let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await startGatewayHere(
    testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      plans: {
        free: { perDay: 1, guard: { before: { perDay: 100, perMonth: 900 }, ...guard } },
        spare: { perDay: 1, guard: { before: { perDay: 2 }, ...guard } },
        over: { perDay: 1, guard: { before: { perDay: 2 }, ...guard, until: '2001-01-01' } },
        idle: { perDay: 3, guard: { before: { perDay: 2 }, ...guard } },
        enterprise: 'custom',
      },
      keys: [acme.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      redis: { url: redisUrl(), prefix: freshPrefix() },
    }),
    { tuning: { bounds: { guardRequestsMin: 2, guardIntervalMs: 20 } } },
  );
});
afterAll(() => gateway.stop('SIGKILL'));

const run = (...args: string[]) =>
  runTollgate(args, { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token, COLUMNS: '200' });

const linesOf = async () =>
  (await run('plans')).stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().replaceAll(/ {2,}/g, ' | '));

it('plans lists the state of each guard, and retry lets a reverted plan try its edit again', async () => {
  expect(await linesOf()).toEqual([
    'PLAN | LIMITS | KEYS | GUARD',
    'free | 1 a day | 1 | refused 0 % of 0 requests, at most 50 %',
    'spare | 1 a day | 0 | refused 0 % of 0 requests, at most 50 %',
    'over | 1 a day | 0 | ended',
    'idle | 3 a day | 0 | watches no limit now',
    'enterprise | of each key | 0',
  ]);
  const early = await run('plans', 'retry', 'free');
  expect([early.exitCode, early.stderr]).toEqual([
    1,
    expect.stringContaining('The plan free is not reverted.'),
  ]);

  for (let request = 0; request < 2; request++) {
    const headers = { authorization: `Bearer ${acme.secret}` };
    await (await fetch(`${gateway.baseUrl}/nothing`, { headers })).arrayBuffer();
  }
  await until('the guard reverts the plan', async () => (await linesOf())[1]?.endsWith('reverted') === true);
  const lines = await linesOf();
  expect(lines[1]).toBe('free | 100 a day, 900 a month | 1 | reverted');
  expect(lines.at(-1)).toMatch(
    /^The guard reverted free at [\d :-]+ UTC \(1 → 100 a day, no limit → 900 a month\), because the edit refused 1 of 2 requests \(50 %\) in ten minutes\.$/,
  );
  const { changes } = JSON.parse((await run('changes', '--json')).stdout);
  expect(changes[0]).toMatchObject({
    action: 'plan.reverted',
    by: 'guard',
    plan: 'free',
    before: { perDay: 1 },
    after: { perDay: 100, perMonth: 900 },
    figures: { requests: 2, refused: 1 },
  });

  const unknown = await run('plans', 'retry', 'fre');
  expect([unknown.exitCode, unknown.stderr]).toEqual([1, expect.stringContaining('did you mean `free`?')]);
  const retried = await run('plans', 'retry', 'free');
  expect([retried.exitCode, retried.stdout]).toEqual([0, 'The plan free tries its edit again: 1 a day.\n']);
  expect((await linesOf())[1]).toBe('free | 1 a day | 1 | refused 0 % of 0 requests, at most 50 %');
  expect((await run('changes')).stdout).toMatch(
    /alice +alice let plan free try its edit again \(100 → 1 a day, 900 → no limit a month\)\. \(run by \S+ on \S+\)\n/,
  );
});
