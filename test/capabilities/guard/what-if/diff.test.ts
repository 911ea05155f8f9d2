import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { makeToken } from '../../../support/admin-client.ts';
import { startGatewayHere } from '../../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { runTollgate } from '../../../support/run-tollgate.ts';

const token = makeToken('read');
const acme = makeKey({ id: 'acme', plan: 'free' });
const config = testConfig({
  upstream: { url: 'http://127.0.0.1:1' },
  keys: [acme.entry],
  admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
  redis: { url: redisUrl(), prefix: freshPrefix() },
});
const { plans: _, ...rest } = config;
let gateway: RunningGateway;
let env: Record<string, string>;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  gateway = await startGatewayHere({ ...config, plans: { free: { perDay: 400 } } });
  env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
  for (let request = 0; request < 120; request++) {
    const headers = { authorization: `Bearer ${acme.secret}` };
    await (await fetch(`${gateway.baseUrl}/nothing`, { headers })).arrayBuffer();
  }
});
afterAll(async () => {
  await gateway.stop('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** Writes a draft whose plan is written in block style, as an operator writes it. */
async function draft(members: readonly string[], changed: object = {}): Promise<string> {
  const file = join(folder, `draft-${Math.random().toString(36).slice(2)}.yaml`);
  const plan = members.map((member) => `    ${member}\n`).join('');
  await writeFile(file, `${stringify({ ...rest, ...changed })}plans:\n  free:\n${plan}`);
  return file;
}

const run = (...args: string[]) => runTollgate(args, env);
const oneLine = (text: string) => text.replaceAll(/\n +/g, ' ');

it('diff warns of a smaller plan without a guard, and proposes a guard that check accepts below the plan', async () => {
  const edited = await draft(['perDay: 100']);
  const { stdout } = await run('diff', edited);
  const proposed = /^ +(guard: .*)$/m.exec(stdout)?.[1] ?? '';
  expect(proposed).toMatch(
    /^guard: \{ before: \{ perDay: 400 \}, refusedAtMost: 21 %, until: \d{4}-\d\d-\d\d \}$/,
  );
  expect(oneLine(stdout)).toContain('! the plan free becomes smaller (400 → 100 a day) without a guard.');
  const json = JSON.parse((await run('diff', edited, '--json')).stdout);
  expect(json.unguarded).toEqual([
    {
      plan: 'free',
      windows: ['day'],
      before: { perDay: 400 },
      why: 'no_guard',
      warning: 'the plan free becomes smaller (400 → 100 a day) without a guard',
      guard: proposed,
    },
  ]);
  expect(json.verdicts).toMatchObject([{ plan: 'free', window: 'day', guardShare: 20 / 120 }]);

  const checked = await run('check', edited);
  expect([checked.exitCode, checked.stderr]).toEqual([
    0,
    `warning: the plan free becomes smaller (400 → 100 a day) without a guard; "tollgate diff ${edited}" proposes a guard\n`,
  ]);

  const guarded = await draft(['perDay: 100', proposed]);
  const accepted = await run('check', guarded);
  expect([accepted.exitCode, accepted.stderr]).toEqual([0, '']);
  const after = await run('diff', guarded);
  expect(after.stdout).toContain('guard: nothing → back to 400 a day at 21 % refused');
  expect(after.stdout).not.toContain('!');
  expect(JSON.parse((await run('diff', guarded, '--json')).stdout).unguarded).toEqual([]);
});

it('diff warns of a guard that the recorded requests would have triggered, also for the limits of a scheduled change', async () => {
  const guard = (percent: number) =>
    `guard: { before: { perDay: 400 }, refusedAtMost: ${percent} %, until: 9001-01-01 }`;
  const change = 'changes: [{ from: 9000-01-01, perDay: 40 }]';
  const [now, later] = [
    await run('diff', await draft(['perDay: 100', guard(16)])),
    await run('diff', await draft(['perDay: 400', change, guard(16)])),
  ].map(({ stdout }) => oneLine(stdout));
  expect(now).toContain(
    '! the plan free becomes smaller (400 → 100 a day), but its guard may soon return it to its present limits: the new limits would have refused 16 % of its requests in the worst ten minutes on record, and its guard allows less than 16 %.',
  );
  expect(later).toContain(
    '! the plan free becomes smaller on 9000-01-01 (400 → 40 a day), but its guard may soon',
  );
  expect(later).toContain('refusedAtMost: 84 %, until: 9000-01-11');
  expect((await run('check', await draft(['perDay: 100', guard(16)]))).stderr).toBe('');
});

it('neither diff nor check proposes a guard to a configuration without Redis', async () => {
  const edited = await draft(['perDay: 100'], { redis: undefined });
  const { verdicts, unguarded } = JSON.parse((await run('diff', edited, '--json')).stdout);
  expect([verdicts.length, unguarded]).toEqual([1, []]);
  expect((await run('check', edited)).stderr).toBe('');
});

it('diff of two files warns without a proposal, and check does not compare with a gateway of another environment', async () => {
  const edited = await draft(['perDay: 100']);
  const files = await runTollgate(['diff', edited, '--against', await draft(['perDay: 400'])]);
  expect(oneLine(files.stdout)).toContain(
    '! the plan free becomes smaller (400 → 100 a day) without a guard. A comparison with a running gateway proposes a guard.',
  );
  expect((await run('check', await draft(['perDay: 100'], { environment: 'other' }))).stderr).toBe('');
  const unreachable = await runTollgate(['check', edited], { ...env, TOLLGATE_ADMIN: 'http://127.0.0.1:1' });
  expect([unreachable.exitCode, unreachable.stderr.match(/warning:/g)]).toEqual([0, ['warning:']]);
  expect(unreachable.stderr).toContain(
    'no gateway could be asked whether a secret has leaked, or whether a plan becomes smaller.',
  );
});

it('diff proposes no guard for a new group, because the share of its refusals is not on record', async () => {
  const group = 'groups: { gets: { operations: [getPet], perDay: 1 } }';
  const { stdout } = await run('diff', await draft(['perDay: 400', group]));
  expect(oneLine(stdout)).toContain(
    'without a guard. The share for a guard of the group is not on record: try it first.',
  );
  expect(stdout).not.toContain('refusedAtMost');
});
