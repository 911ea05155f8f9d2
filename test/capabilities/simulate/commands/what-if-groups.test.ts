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
import { patientStore } from '../../../support/tuning.ts';
import { withinOneMinute } from '../../../support/within-one-minute.ts';

const token = makeToken('read');
const lists = { operations: ['listPets'], perMinute: 5 };
const acme = makeKey({ id: 'acme', plan: 'free' });
const own = makeKey({ id: 'own', plan: 'free', groups: { lists: { ...lists, perMinute: 7 } } });
const free = { perDay: 1_000, groups: { lists } };
const config = testConfig({
  upstream: { url: 'http://127.0.0.1:1' },
  plans: { free },
  keys: [acme.entry, own.entry],
  redis: { url: redisUrl(), prefix: freshPrefix() },
  admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
});
let gateway: RunningGateway;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  gateway = await startGatewayHere(config, { tuning: { bounds: patientStore } });
  // The limits count minutes, so no minute may end during the requests.
  await withinOneMinute(15_000);
  for (const { secret } of [acme, own]) {
    for (const path of [...Array(10).fill('/pets'), '/pets/1', '/pets/1']) {
      const headers = { authorization: `Bearer ${secret}` };
      await (await fetch(`${gateway.baseUrl}${path}`, { headers })).arrayBuffer();
    }
  }
});
afterAll(async () => {
  await gateway.stop('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

async function run(...args: string[]) {
  const env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
  const { exitCode, stdout, stderr } = await runTollgate(args, env);
  return { exitCode, stderr, text: stdout.replaceAll(/\s+/g, ' '), stdout };
}

/** Runs `diff` with an edited file. */
async function diff(changed: Record<string, unknown>) {
  const file = join(folder, `${Math.random().toString(36).slice(2)}.yaml`);
  await writeFile(file, stringify({ ...config, ...changed }));
  const { text, stderr } = await run('diff', file);
  const json = JSON.parse((await run('diff', file, '--json')).stdout);
  return { text, stderr, verdicts: json.verdicts };
}

it('simulate --group replays other limits of a group of a plan, except for keys that state the group themselves', async () => {
  const { exitCode, stderr, text } = await run(
    'simulate',
    '--plan',
    'free',
    '--group',
    'lists',
    '--per-minute',
    '2',
  );
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(text).toContain('3 more requests would have been refused (12.5 % of all): 11 instead of 8.');
  const ofKey = await run('simulate', '--key', 'own', '--group', 'lists', '--per-minute', 'none', '--json');
  expect(JSON.parse(ofKey.stdout).totals).toMatchObject({ offered: 12, refusedNow: 3, refusedThen: 0 });
});

it('simulate states why a result has bounds, and that the groups are a reason', async () => {
  const { text } = await run(
    'simulate',
    '--key',
    'acme',
    '--group',
    'lists',
    '--per-minute',
    '2',
    '--per-day',
    '4',
  );
  expect(text).not.toContain('mixed costs');
  const file = join(folder, 'both.yaml');
  await writeFile(
    file,
    stringify({ ...config, plans: { free: { perDay: 6, groups: { lists: { ...lists, perMinute: 2 } } } } }),
  );
  const both = await run('simulate', '--config', file);
  expect(both.text).toContain(
    'Bans, limits per second, mixed costs and groups depend on the order of requests within a minute, which is not on record: of all 24 requests at least',
  );
});

it('simulate --group needs a limit', async () => {
  for (const args of [['--plan', 'free'], [], ['--config', 'some.yaml']]) {
    const { exitCode, stderr } = await run('simulate', ...args, '--group', 'lists');
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('Which limits has the group?')]);
  }
});

it('diff shows the effect of a limit of a group, and names no key that states the group itself', async () => {
  const { text, verdicts } = await diff({
    plans: { free: { ...free, groups: { lists: { ...lists, perMinute: 2 } } } },
  });
  expect(text).toContain(
    '5 → 2 a minute for the group lists → affects 2 keys; in the last 7 days 1 of them would have been refused 3 more requests',
  );
  expect(verdicts).toHaveLength(1);
});

it('diff proposes a trial for a new group, and shows the effect of the other limits', async () => {
  const gets = { operations: ['getPet'], perMinute: 1 };
  const alone = await diff({ plans: { free: { ...free, groups: { lists, gets } } } });
  expect(alone.text).toContain(
    'The usage record has the operations of the group gets only by the hour, because no group had just these operations until now. A trial counts them to the unit, and refuses nothing. The simulation leaves out 4 requests of its operations, so the group would have refused at most this number of them.',
  );
  expect(alone.text).toContain('gets: { operations: [getPet], perMinute: 1 } } }');
  expect(alone.text).not.toContain('as many requests would have been refused');
  const withDay = await diff({ plans: { free: { perMinute: 1, groups: { lists, gets } } } });
  expect(withDay.text).toContain('group gets only by the hour');
  expect(withDay.text).toMatch(/in the last 7 days 2 of them would have been refused \d+ more requests/);
});

it('diff proposes no effect for a new group of a key, also if the plan gets a group of the same name', async () => {
  const gets = { operations: ['getPet'], perMinute: 3 };
  const keys = [{ ...acme.entry, groups: { gets: { ...gets, perMinute: 1 } } }, own.entry];
  const { text, stderr, verdicts } = await diff({ keys });
  expect(stderr).toBe('');
  expect(text).toContain('The simulation leaves out 2 requests of its operations');
  expect(text).not.toContain('as many requests would have been refused');
  expect(verdicts).toMatchObject([
    { key: 'acme', isLeftOut: true, notReplayed: [{ key: 'acme', group: 'gets' }] },
  ]);
  const both = await diff({ plans: { free: { ...free, groups: { lists, gets } } }, keys });
  expect(both.stderr).toBe('');
  expect(both.verdicts).toMatchObject([
    { plan: 'free', isLeftOut: true, notReplayed: [{ plan: 'free', requests: 4 }] },
    { key: 'acme', isLeftOut: true, notReplayed: [{ key: 'acme', requests: 2 }] },
  ]);
});
