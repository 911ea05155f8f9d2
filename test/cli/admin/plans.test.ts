import { expect, it, onTestFinished } from 'vitest';
import { makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, testConfig } from '../../support/gateway-process.ts';
import { runTollgate } from '../../support/run-tollgate.ts';

it('plans lists each plan with its limits and the number of its keys', async () => {
  const token = makeToken('read');
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      plans: { free: { perDay: 1, perMonth: 9 }, spare: { perMinute: 1_000 }, enterprise: 'custom' },
      keys: [makeKey({ plan: 'free' }).entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    }),
  );
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  const env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
  const { exitCode, stdout } = await runTollgate(['plans'], env);
  const lines = stdout.trimEnd().split('\n');
  expect([exitCode, lines.map((line) => line.trim().replaceAll(/ {2,}/g, ' | '))]).toEqual([
    0,
    [
      'PLAN | LIMITS | KEYS',
      'free | 1 a day, 9 a month | 1',
      'spare | 1,000 a minute | 0',
      'enterprise | of each key | 0',
    ],
  ]);
});
