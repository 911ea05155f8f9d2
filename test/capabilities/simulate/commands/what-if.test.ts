import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import {
  sentence,
  simulationLines,
} from '../../../../gateway/capabilities/simulate/commands/simulation-view.ts';
import { changesOf, verdictText } from '../../../../gateway/capabilities/simulate/commands/verdicts.ts';
import { noTotals } from '../../../../gateway/capabilities/simulate/replay/verdict.ts';
import { makeToken } from '../../../support/admin-client.ts';
import { startGatewayHere } from '../../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { runTollgate } from '../../../support/run-tollgate.ts';
import { startStubAdmin } from '../../../support/stub-admin.ts';
import { patientStore } from '../../../support/tuning.ts';
import { withinOneMinute } from '../../../support/within-one-minute.ts';

const at = (minute: number) => `2026-11-22T10:${minute}:00Z`;

const token = makeToken('read');
const acme = makeKey({ id: 'acme', plan: 'free' });
const calm = makeKey({ id: 'calm', plan: 'free' });
const own = makeKey({ id: 'own', plan: 'custom', limits: { perDay: 100 } });
const plans = { free: { perDay: 40 }, spare: { perMinute: 5 }, custom: 'custom' };
const config = testConfig({
  upstream: { url: 'http://127.0.0.1:1' },
  plans,
  keys: [acme.entry, calm.entry, own.entry],
  redis: { url: redisUrl(), prefix: freshPrefix() },
  admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
});
let gateway: RunningGateway;
let env: Record<string, string>;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  gateway = await startGatewayHere(config, {
    tuning: { bounds: patientStore },
  });
  env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
  // One test counts hours, so no hour may end during it.
  await withinOneMinute(15_000);
  for (const [{ secret }, requests] of [
    [acme, 60],
    [calm, 12],
    [own, 30],
  ] as const) {
    for (let request = 0; request < requests; request++) {
      const headers = { authorization: `Bearer ${secret}` };
      await (await fetch(`${gateway.baseUrl}/nothing`, { headers })).arrayBuffer();
    }
  }
});
afterAll(async () => {
  await gateway.stop('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** Writes a draft: the current configuration with some members changed. */
async function draft(changed: Record<string, unknown>): Promise<string> {
  const file = join(folder, `draft-${Math.random().toString(36).slice(2)}.yaml`);
  await writeFile(file, stringify({ ...config, ...changed }));
  return file;
}

const run = (...args: string[]) => runTollgate(args, env);

it('simulate shows that it reproduces the record, and lists the keys that a limit would have refused', async () => {
  const { exitCode, stdout } = await run('simulate', '--plan', 'free', '--per-day', '10');
  expect(exitCode).toBe(0);
  expect(stdout).toContain('reproduced 20 of 20 refusals by limits.');
  expect(stdout.replaceAll('\n', ' ')).toContain(
    '32 more requests would have been refused (44.4 % of all): 52 instead of 20. 1 key would have been refused for the first time.',
  );
  const freed = await run('simulate', '--plan', 'free', '--per-day', '1000');
  expect(freed.stdout.replaceAll('\n', ' ')).toContain(
    '20 fewer requests would have been refused (27.8 % of all): 0 instead of 20. 1 key would have had no refusal.',
  );
  const rows = stdout.split('\n').filter((line) => /^(acme|calm)/.test(line));
  expect(rows.map((row) => row.split(/\s{2,}/).slice(0, 6))).toEqual([
    ['acme', 'free', '60', '20', '50', '83.3 %'],
    ['calm', 'free', '12', '0', '2', '16.7 %'],
  ]);
  const json = JSON.parse(
    (await run('simulate', '--key', 'own', '--per-day', '5', '--days', '2', '--json')).stdout,
  );
  expect(json).toMatchObject({
    source: 'record',
    totals: { keys: 1, offered: 30, refusedNow: 0, refusedThen: 25 },
  });
});

it('simulate states each reason for a difference once, with the minutes that it explains', () => {
  const difference = { keys: 1, recordedRefusals: 3, replayedRefusals: 4 };
  const edited = 'An edit took effect at 2026-11-22 11:00 UTC.';
  const differences = [
    ...Array.from({ length: 12 }, (_, i) => ({ ...difference, at: at(31 + i), of: ['acme'], why: edited })),
    { ...difference, at: at(50), of: ['calm'], why: 'Redis was away.' },
  ];
  const reproduced = { recordedRefusals: 39, replayedRefusals: 52, minutesThatDiffer: 20, differences };
  const all = {
    ...noTotals,
    keys: 1,
    offered: 90,
    refusedNow: 39,
    refusedThen: 39,
    refusedThenMin: 39,
    refusedThenMax: 39,
  };
  const lines = simulationLines(
    {
      ...{ from: at(10), to: at(59), source: 'record', activeKeys: 1, examinedKeys: 1 },
      ...{ reproduced, totals: all, plans: [{ name: 'free', ...all }], keys: [], moreKeys: 0 },
    },
    5,
    { columns: 200, paint: (_, text) => text },
  );
  expect(lines.filter((line) => line.startsWith('  '))).toEqual([
    `  2026-11-22 10:31 to 2026-11-22 10:42 (12 minutes) acme: recorded 36, replayed 48. ${edited}`,
    '  2026-11-22 10:50 calm: recorded 3, replayed 4. Redis was away.',
    '  and 7 minutes more',
  ]);
});

it('simulate does not say that a key sent nothing in a period that only Redis knows', () => {
  const found = {
    ...{ from: at(10), to: at(59), source: 'record' as const, activeKeys: 1, examinedKeys: 1 },
    reproduced: { recordedRefusals: 0, replayedRefusals: 0, minutesThatDiffer: 0, differences: [] },
    ...{ totals: noTotals, plans: [], keys: [], moreKeys: 0 },
  };
  const screen = { columns: 200, paint: (_: unknown, text: string) => text };
  expect(simulationLines(found, 5, screen)).toEqual([
    expect.stringMatching(/^None of these keys sent a request from .* according to the usage record\.$/),
  ]);
  expect(simulationLines({ ...found, minutesSinceAt: '2026-11-25T00:00:00Z' }, 5, screen)).toEqual([
    'The record of minutes begins at 2026-11-25 00:00 UTC. Earlier requests cannot be replayed.',
  ]);
  expect(simulationLines({ ...found, missing: { what: ['requests'] } }, 5, screen)).toEqual([
    'Unknown: Redis is away, and this gateway knows of none.',
  ]);
});

it('simulate and diff state when bans leave open whether more or fewer requests are refused', () => {
  const line = { id: 'spam', plan: 'free', offered: 100, refusedNow: 80, censoredMinutes: 1 };
  const open = { ...line, refusedThen: 60, refusedThenMin: 30, refusedThenMax: 90 };
  const totals = { ...noTotals, keys: 1, ...open, keysRefusedLess: 1 };
  expect(sentence({ totals })).toBe(
    'About 60 requests would have been refused (30 to 90), and 80 were. More or fewer is not certain, because the number depends on the order of the requests.',
  );
  expect(sentence({ totals: { ...totals, refusedThenMax: 70 } })).toMatch(/^About 20 fewer requests would/);
  expect(sentence({ totals: { ...totals, refusedThenMin: 80 } })).toMatch(/ More is not certain, because/);
  expect(sentence({ totals: { ...totals, refusedThenMax: 80 } })).toMatch(/ Fewer is not certain, because/);
  const verdict = { plan: 'free', window: 'day', affectedKeys: 4 };
  expect(verdictText({ ...verdict, ...changesOf([open]), minutesThatDiffer: 6 })).toMatch(
    /; an estimate, because the replay differs from the record in 6 minutes$/,
  );
  expect(verdictText({ ...verdict, ...changesOf([open, { ...line, refusedThen: 82 }]) })).toBe(
    'affects 4 keys; in the last 7 days 1 of them would have been refused 2 more requests, 1 of them more or less often, depending on bans, limits per second or mixed costs',
  );
});

it('diff announces a later change of a plan, with what its limits would have done to the recorded requests', async () => {
  const changes = [{ from: '9000-01-01', perDay: 10 }];
  const edited = await draft({ plans: { ...plans, free: { perDay: 40, changes } } });
  const { stdout, exitCode } = await run('diff', edited);
  expect([exitCode, stdout.replaceAll(/\n +/g, ' ')]).toEqual([
    2,
    expect.stringContaining(
      '~ plan free changes: nothing → from 9000-01-01: 10 a day → from 9000-01-01: affects 2 keys; in the last 7 days 2 of them would have been refused 32 more requests',
    ),
  ]);
});

it('simulate removes a limit with the word none', async () => {
  const { exitCode, stdout, stderr } = await run(
    ...['simulate', '--plan', 'free', '--per-day', 'none', '--per-minute', '1000', '--json'],
  );
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(JSON.parse(stdout).totals).toMatchObject({ keys: 2, refusedNow: 20, refusedThen: 0 });
  const typo = await run('simulate', '--plan', 'free', '--per-day', 'non');
  expect([typo.exitCode, typo.stderr]).toEqual([1, expect.stringContaining('or none')]);
  const misspelt = await run('simulate', '--plan', 'fre', '--per-day', '5');
  expect(misspelt.stderr).toBe('There is no plan "fre"; did you mean `free`?\n');
  const key = await run('simulate', '--key', 'acm', '--per-day', '5');
  expect([key.exitCode, key.stderr]).toEqual([1, 'There is no key acm; did you mean `acme`?\n']);
});

it('simulate --config tries the limits of an edited file, and reports when the file changes none', async () => {
  const file = await draft({ plans: { free: { perDay: 50 }, spare: { perMinute: 5 }, custom: 'custom' } });
  const { stdout } = await run('simulate', '--config', file, '--json');
  expect(JSON.parse(stdout).totals).toMatchObject({ keys: 2, refusedNow: 20, refusedThen: 10 });
  const same = await run('simulate', '--config', await draft({}));
  expect([same.exitCode, same.stderr]).toEqual([
    1,
    expect.stringContaining('has the same limits as the gateway'),
  ]);
  const both = await run('simulate', '--config', file, '--plan', 'free', '--per-day', '1');
  expect([both.exitCode, both.stderr]).toEqual([1, expect.stringContaining('not both')]);
});

it('diff lists what an edit adds, removes and changes, what needs a restart, and which keys each limit would have refused', async () => {
  const fresh = makeKey({ id: 'fresh', plan: 'free' });
  const file = await draft({
    plans: { free: { perDay: 10, perHour: 20 }, custom: 'custom', gold: { perDay: 7 } },
    keys: [acme.entry, calm.entry, { ...own.entry, limits: { perDay: 20 } }, fresh.entry],
    bodyBytesMax: 1_000,
    admin: { host: '0.0.0.0', port: 0, tokens: [token.entry] },
  });
  const { exitCode, stdout } = await run('diff', file);
  expect(exitCode).toBe(2);
  const lines = stdout.trimEnd().split('\n').slice(1);
  const text = lines.map((line) => line.trim()).join(' ');
  expect(lines).toEqual(
    expect.arrayContaining(['+ plan gold', '- plan spare', '~ plan free', '+ key fresh', '~ key own']),
  );
  expect(text).toContain(
    '40 → 10 a day → affects 2 keys; in the last 7 days 2 of them would have been refused 32 more requests',
  );
  expect(text).toContain(
    'no limit → 20 an hour → affects 2 keys; in the last 7 days 1 of them would have been refused 20 more requests',
  );
  expect(text).toContain(
    '→ together: affects 2 keys; in the last 7 days 2 of them would have been refused 32 more requests',
  );
  expect(text).toContain('100 → 20 a day → in the last 7 days it would have been refused 10 more requests');
  expect(text).toContain('~ bodyBytesMax: 1048576 → 1000');
  expect(text).toContain('These changes need a restart of the gateway: admin.');

  const { stdout: json } = await run('diff', file, '--json');
  expect(JSON.parse(json)).toMatchObject({
    differs: true,
    keys: { added: ['fresh'], removed: [], changed: [{ id: 'own' }] },
    plans: { added: ['gold'], removed: ['spare'], changed: [{ id: 'free' }] },
    needsRestart: ['admin'],
    verdicts: expect.arrayContaining([
      {
        plan: 'free',
        window: 'day',
        affectedKeys: 2,
        keysRefusedMore: 2,
        requestsRefusedMore: 32,
        keysRefusedLess: 0,
        requestsRefusedLess: 0,
        keysUncertain: 0,
      },
    ]),
  });
});

it('diff and simulate say that a gateway of an earlier version must be updated first', async () => {
  const body = {
    ...{ version: '0123456789ab', environment: 'test', basePath: '', workers: 1, usage: { keepDays: 8 } },
    ...{ listen: { host: '0.0.0.0', port: 8080 }, admin: { host: '127.0.0.1', port: 9090 } },
    bans: { after: 100, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 },
    ...{ directory: false, plans: [], keys: [], upstreams: [], notify: [] },
  };
  const { url } = await startStubAdmin(() => ({ body }));
  const file = await draft({});
  for (const args of [
    ['diff', file],
    ['simulate', '--config', file],
  ]) {
    const { exitCode, stderr } = await runTollgate([...args, '--admin', url], env);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Update the gateway first')]);
  }
});

it('diff of the present configuration exits with 0, diff of two files needs no gateway, and diff of a broken file prints its problems', async () => {
  const same = await run('diff', await draft({}));
  expect([same.exitCode, same.stdout]).toEqual([
    0,
    expect.stringContaining('has the same settings as the gateway at'),
  ]);
  const file = await draft({ environment: 'other' });
  const files = await runTollgate(['diff', file, '--against', await draft({})]);
  expect([files.exitCode, files.stdout]).toEqual([2, expect.stringContaining('~ environment: test → other')]);
  const broken = await run('diff', await draft({ plans: { free: { perDay: 'many' } } }));
  expect([broken.exitCode, broken.stderr]).toEqual([1, expect.stringContaining('perDay')]);
});
