import { expect, it } from 'vitest';
import { runTollgate } from '../../support/run-tollgate.ts';
import { startStubAdmin } from '../../support/stub-admin.ts';

const acme = {
  ...{ id: 'acme', name: 'Acme \u202e Ltd', requests: 410, refused: 101, refusedNow: 0 },
  refusedBy: { minute: 99, banned: 2 },
  firstRefusedAt: '2026-11-26T02:14:00Z',
  lastRefusedAt: '2026-11-26T10:02:00Z',
};
const globex = {
  ...{ id: 'globex', requests: 1_318, refused: 12, refusedNow: 12, refusedBy: { minute: 12 } },
  firstRefusedAt: '2026-11-26T09:15:00Z',
  lastRefusedAt: '2026-11-26T09:15:00Z',
};

/** The response about the trial of a plan, with the keys acme and globex. */
const trialOf = (plan: string) => ({
  plan,
  limits: { perMinute: 40, perDay: 1_000 },
  limitsNow: { perMinute: 60, perDay: 1_000 },
  ...{
    fromAt: '2026-11-25T10:31:00.000Z',
    toAt: '2026-11-26T10:30:20.000Z',
    firstAt: '2026-11-26T02:10:00Z',
  },
  sentence: `Trial of ${plan}: a sentence.`,
  ...{ requests: 4_100, refused: 113, refusedNow: 12, refusedBy: { minute: 111, banned: 2 } },
  firstRefusedAt: acme.firstRefusedAt,
  lastRefusedAt: acme.lastRefusedAt,
  ...{ triedKeys: 40, refusedKeys: 2, newlyRefusedKeys: 1, activeKeys: 40, examinedKeys: 40 },
  keys: [acme, globex],
});

const plan = (name: string, trial?: object) => ({
  ...{ name, isCustom: false, windows: [{ name: 'minute', limit: 60 }], keys: 1, disabledKeys: 0 },
  ...(trial && { trial }),
});

async function runWith(args: readonly string[], plans: readonly object[], more: object = {}) {
  const admin = await startStubAdmin((path) => {
    if (path === '/api/v1/flush') return { body: { isComplete: true, behind: [] } };
    const [, name] = /^\/api\/v1\/plans\/(\w+)\/trial/.exec(path) ?? [];
    if (name === undefined) return { body: { plans, isComplete: true } };
    if (plans.some((one) => 'name' in one && one.name === name && 'trial' in one))
      return { body: { ...trialOf(name), ...more } };
    const message = plans.some((one) => 'name' in one && one.name === name)
      ? 'There is no trial in this plan.'
      : 'There is no plan with this name.';
    return { status: 404, body: { code: 'not_found', message, status: 404 } };
  });
  const env = { TOLLGATE_ADMIN: admin.url, TOLLGATE_ADMIN_TOKEN: 'tga_test' };
  const done = await runTollgate(['trial', ...args], env);
  // Without `--to`, the command asks for the time until now.
  return { ...done, asked: admin.asked.map((path) => path.replace(/to=[\d-]+T[^&]+/, 'to=now')) };
}

const trial = { perMinute: 40, perDay: 1_000 };

it('trial prints the sentence about a plan and the keys that the trial would have refused, the most harmed key first', async () => {
  const { stdout, stderr, exitCode, asked } = await runWith(['free'], [plan('free', trial)]);
  expect([exitCode, stderr]).toEqual([0, '']);
  expect(stdout.split('\n')).toEqual([
    'free (60 a minute, 1,000 a day), from 2026-11-25 10:31 to 2026-11-26 10:30 UTC',
    'Trial of free: a sentence. The trial decided its first request at 2026-11-26 02:10 UTC.',
    'KEY     REQUESTS  REFUSED NOW  BY THE TRIAL  SHARE  FIRST (UTC)       LAST (UTC)        REFUSED BY        NAME',
    'acme         410            0           101   24 %  2026-11-26 02:14  2026-11-26 10:02  minute 99, ban 2  Acme \\u{202e} Ltd',
    'globex     1,318           12            12  0.9 %  2026-11-26 09:15  2026-11-26 09:15  minute 12',
    '',
  ]);
  // All processes send their counts before the command reads them.
  expect(asked).toEqual(['/api/v1/flush', '/api/v1/plans/free/trial?to=now&limit=20']);
});

it('trial states that not all keys are counted or listed', async () => {
  const { stdout } = await runWith(['free', '--limit', '2'], [plan('free', trial)], {
    ...{ activeKeys: 1_000, examinedKeys: 40, more: 7 },
  });
  expect(stdout).toContain('Only the 40 most recently active of 1,000 keys are counted.');
  expect(stdout).toMatch(/\nand 7 keys more: --limit N shows up to 10,000\n$/);
});

it('trial without a plan prints the trial of every plan that has one', async () => {
  const plans = [plan('free', trial), plan('pro'), plan('business', trial)];
  const { stdout, asked } = await runWith(['--from', '2026-11-25'], plans);
  expect(stdout.split('\n').filter((line) => /^Trial of/.test(line))).toHaveLength(2);
  expect(asked).toEqual([
    '/api/v1/flush',
    '/api/v1/plans',
    '/api/v1/plans/free/trial?from=2026-11-25&to=now&limit=20',
    '/api/v1/plans/business/trial?from=2026-11-25&to=now&limit=20',
  ]);
  const json = JSON.parse((await runWith(['--json'], plans)).stdout);
  expect(json).toEqual({ trials: [trialOf('free'), trialOf('business')] });
  expect(JSON.parse((await runWith(['free', '--json'], plans)).stdout)).toEqual(trialOf('free'));
});

it('trial states that no plan has a trial, and how to write one', async () => {
  const { stdout, exitCode } = await runWith([], [plan('free')]);
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(/^No plan has a trial\. To try other limits/),
  ]);
  expect(JSON.parse((await runWith(['--json'], [plan('free')])).stdout)).toEqual({ trials: [] });
});

it('trial suggests a similar name for an unknown plan, and fails for a plan without a trial', async () => {
  const unknown = await runWith(['fre'], [plan('free', trial)]);
  expect([unknown.exitCode, unknown.stderr]).toEqual([
    1,
    expect.stringMatching(/There is no plan fre.*free/),
  ]);
  const untried = await runWith(['pro'], [plan('free', trial), plan('pro')]);
  expect([untried.exitCode, untried.stderr]).toEqual([
    1,
    expect.stringContaining('There is no trial in this plan.'),
  ]);
});
