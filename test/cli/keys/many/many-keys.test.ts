import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { makeToken } from '../../../support/admin-client.ts';
import { startGatewayHere } from '../../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { bareEnvironment, runTollgate } from '../../../support/run-tollgate.ts';
import { patientStore } from '../../../support/tuning.ts';
import { until } from '../../../support/until.ts';

const writer = makeToken('write', 'ada');
const ofFile = ['f1', 'f2'].map((id) => makeKey({ id, plan: 'free' }));
const issued = ['d1', 'd2', 'd3'];

let folder: string;
let keysFile: string;
let gateway: RunningGateway;
let secretOf: Map<string, string>;

/** A gateway with two keys of a file and three of the directory, all on the plan free. */
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-many-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  keysFile = join(folder, 'keys.yaml');
  writeFileSync(keysFile, `# Ours.\n${stringify(ofFile.map(({ entry }) => entry))}# The end.\n`);
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('{}')) });
  onTestFinished(() => backend.close());
  const config = testConfig({
    upstream: { url: backend.url },
    redis: { url: redisUrl(), prefix: freshPrefix() },
    plans: {
      free: { perMinute: 60, perDay: 1000 },
      pro: { perMinute: 600, perDay: 1000 },
      enterprise: 'custom',
    },
    keys: { file: keysFile, directory: true },
    admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry] },
  });
  writeFileSync(join(folder, 'tollgate.yaml'), stringify(config));
  gateway = await startGatewayHere(config, { tuning: { bounds: patientStore } });
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  secretOf = new Map(ofFile.map(({ entry, secret }) => [entry.id, secret]));
  await until(
    'the directory is there',
    async () => (await run('create', 'd1', '--plan', 'free', '--directory')).exitCode === 0,
  );
  for (const id of issued.slice(1)) await run('create', id, '--plan', 'free', '--directory');
});

function environment() {
  return {
    TOLLGATE_ADMIN: gateway.adminUrl,
    TOLLGATE_ADMIN_TOKEN: writer.token,
    TOLLGATE_CONFIG: join(folder, 'tollgate.yaml'),
  };
}

function run(...args: string[]) {
  return runTollgate(['keys', ...args], environment());
}

async function keyOf(id: string) {
  return JSON.parse((await run('show', id, '--json')).stdout);
}

async function changesOf(action: string): Promise<(string | undefined)[]> {
  const { stdout } = await runTollgate(['changes', '--json', '--limit', '500'], environment());
  return JSON.parse(stdout)
    .changes.filter((change: { action: string }) => change.action === action)
    .map((change: { key?: string }) => change.key)
    .sort();
}

const all = ['d1', 'd2', 'd3', 'f1', 'f2'];

describe('keys of a plan', () => {
  it('are listed by --dry-run, and without a terminal are changed only with --yes', async () => {
    const dry = await run('grant', '--of-plan', 'free', '--per-minute', '90', '--until', '+6h', '--dry-run');
    expect(dry).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(
        /^d1\nd2\nd3\nf1\nf2\nWithout --dry-run, this command would grant other limits to 5 keys: 90 a minute until 20\S+ \d\d:\d\d(:\d\d)? UTC\.\n$/,
      ),
    });
    const asked = await run('revoke', '--of-plan', 'free');
    expect(asked).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(
        'would revoke 5 keys (2 in the keys file, 3 in the key directory). Give --yes',
      ),
    });
    expect([await changesOf('grant'), await changesOf('revoke')]).toEqual([[], []]);
  });

  it('get a grant, once', async () => {
    const grant = [
      'grant',
      '--of-plan',
      'free',
      '--per-minute',
      '90',
      '--until',
      '2027-01-01T00:00:00Z',
      '--yes',
    ];
    const granted = await run(...grant);
    expect(granted).toMatchObject({
      exitCode: 0,
      stdout: '5 keys have the grant: 90 a minute until 2026-12-31 24:00 UTC.\n',
    });
    expect((await keyOf('d2')).grant).toMatchObject({ limits: { perMinute: 90 } });
    expect((await keyOf('f1')).grant).toMatchObject({ limits: { perMinute: 90 } });
    expect(await run(...grant)).toMatchObject({
      stdout: '0 keys have the grant.\n5 keys had this grant already.\n',
    });
    expect(await changesOf('grant')).toEqual(all);

    expect((await run('ungrant', '--ids', 'd1,f1', '--yes')).stdout).toBe('2 keys had their grants ended.\n');
    expect((await run('ungrant', '--ids', 'd1,d2', '--yes')).stdout).toBe(
      '1 key had their grants ended.\n1 key had no grant.\n',
    );
  });

  it('are banned and unbanned', async () => {
    const banned = await run(
      'ban',
      '--of-plan',
      'free',
      '--for',
      '2h',
      '--reason',
      'asked by mail',
      '--yes',
      '--json',
    );
    expect(JSON.parse(banned.stdout)).toEqual({
      changed: expect.arrayContaining(all),
      unchanged: [],
      failed: [],
    });
    expect((await run('list', '--state', 'banned', '--json')).stdout).toContain('"f2"');
    expect((await run('unban', '--state', 'banned', '--yes')).stdout).toBe('5 keys had their bans lifted.\n');
  });

  it('are revoked in the file by one write that keeps its comments, and in the directory, and restored', async () => {
    writeFileSync(join(folder, 'ids.txt'), '# leaving\nf1\nd3\n\nf2\nnobody\n');
    const revoked = await run('revoke', '--file', join(folder, 'ids.txt'), '--yes');
    expect(revoked.exitCode).toBe(1);
    expect(revoked.stdout).toMatch(/^3 keys revoked\.\n1 key failed:\n {2}nobody: There is no key nobody/);
    const text = readFileSync(keysFile, 'utf8');
    expect([
      text.startsWith('# Ours.\n'),
      text.endsWith('# The end.\n'),
      text.match(/disabled: true/g)?.length,
    ]).toEqual([true, true, 2]);
    expect(await changesOf('revoke')).toEqual(['d3', 'f1', 'f2']);
    expect((await run('disable', '--ids', 'd3,f1', '--yes')).stdout).toBe(
      '0 keys revoked.\n2 keys revoked already.\n',
    );
    expect((await run('enable', '--ids', 'd3,f1,f2', '--yes')).stdout).toBe('3 keys restored.\n');
    expect(readFileSync(keysFile, 'utf8')).not.toContain('disabled');
  });

  it('get a later plan, which is withdrawn', async () => {
    const edited = await run('edit', '--ids', 'd1,f1', '--plan', 'pro', '--from', '2099-01-01', '--yes');
    expect([edited.stderr, edited.stdout]).toEqual([
      '',
      '2 keys edited: plan pro from 2099-01-01 00:00 UTC.\n',
    ]);
    await until('the file is loaded', async () => (await keyOf('f1')).upcoming !== undefined);
    for (const id of ['d1', 'f1'])
      expect(await keyOf(id)).toMatchObject({
        plan: 'free',
        upcoming: [{ fromAt: '2099-01-01T00:00:00.000Z', plan: 'pro' }],
      });
    expect(
      (await run('edit', '--ids', 'd1,f1', '--plan', 'pro', '--from', '2099-01-01', '--yes')).stdout,
    ).toBe('0 keys edited.\n2 keys as wanted already.\n');
    expect((await run('edit', 'd1', '--withdraw')).stdout).toContain('d1 is edited');
    expect((await run('edit', 'f1', '--withdraw', '2099-01-01')).stdout).toContain('f1 is edited');
    expect(readFileSync(keysFile, 'utf8')).not.toContain('changes');
    expect((await keyOf('d1')).upcoming).toBeUndefined();
    expect(await run('edit', 'd1', '--withdraw')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('no later change'),
    });
  });

  it('get another plan, name, addresses and expiry at once', async () => {
    const members = [
      '--plan',
      'enterprise',
      '--per-day',
      '7',
      '--name',
      'it’s: "new"',
      '--address',
      '192.0.2.0/24',
      '--expires',
      '2099-01-01',
    ];
    expect((await run('edit', '--ids', 'd1,f1', ...members, '--yes')).stdout).toBe(
      '2 keys edited: plan enterprise, 7 a day, name it’s: "new", only the client addresses 192.0.2.0/24, the newest secret expires 2099-01-01 00:00 UTC.\n',
    );
    await until('the file is loaded', async () => (await keyOf('f1')).plan === 'enterprise');
    for (const id of ['d1', 'f1']) {
      const { definition, secrets } = await keyOf(id);
      expect(definition).toMatchObject({
        plan: 'enterprise',
        limits: { perDay: 7 },
        name: 'it’s: "new"',
        addresses: ['192.0.2.0/24'],
      });
      expect(secrets.at(-1).expiresAt).toBe('2099-01-01T00:00:00.000Z');
    }
    expect(
      (
        await run(
          'edit',
          '--ids',
          'd1,f1',
          '--plan',
          'free',
          '--name',
          'none',
          '--address',
          'none',
          '--expires',
          'none',
          '--yes',
        )
      ).stdout,
    ).toBe('2 keys edited: plan free, no name, every client address, the newest secret expires never.\n');
    await until('the file is loaded', async () => (await keyOf('f1')).plan === 'free');
    for (const id of ['d1', 'f1']) {
      const { definition, secrets } = await keyOf(id);
      expect(Object.keys(definition).sort()).toEqual(['disabled', 'id', 'plan', 'secrets']);
      expect(secrets.at(-1).expiresAt).toBeUndefined();
    }
  });

  it('are taken from the CSV of the lists of keys', async () => {
    const file = join(folder, 'keys.csv');
    const { stdout } = await run('list', '--all', '--csv');
    expect(stdout).toMatch(/^id,/);
    for (const text of [stdout, `\uFEFF"id","name"\r\n"d1","One"\r\n`, 'key,name\nd1,One\n']) {
      writeFileSync(file, text);
      const ids = text === stdout ? all : ['d1'];
      const dry = await run('unban', '--file', file, '--dry-run', '--json');
      expect([dry.exitCode, JSON.parse(dry.stdout).keys.toSorted()]).toEqual([0, ids]);
    }
    writeFileSync(file, 'id\n');
    expect((await run('unban', '--file', file, '--dry-run')).stdout).toContain('There is no key id');
  });

  it('are read by --dry-run, which names each key that is missing or for which the change would fail', async () => {
    const before = readFileSync(keysFile, 'utf8');
    await run('create', 'hourly', '--plan', 'enterprise', '--per-hour', '5', '--directory');
    await run('grant', '--ids', 'd2', '--per-day', '5', '--until', '2027-01-01T00:00:00Z');
    await run('ban', 'f2', '--until', '2027-01-01T00:00:00Z');
    const dry = (...args: string[]) => run(...args, '--dry-run');
    const grant = ['grant', '--per-day', '5', '--until', '2027-01-01T00:00:00Z'];
    expect(await dry(...grant, '--ids', 'nosuch,d1,d2,f1,hourly')).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(
        /^d1\nf1\nWithout --dry-run, this command would grant other limits to 2 keys: 5 a day until 2026-12-31 24:00 UTC\.\nIt would not change 1 key \(had this grant already\): d2\.\nIt would fail for 2 keys:\n(?=[\s\S]* {2}nosuch: There is no key nosuch)(?=[\s\S]* {2}hourly: hourly \(enterprise\) has no limit a day\. Its limits are 5 an hour\.\n)/,
      ),
    });
    const later = ['grant', '--ids', 'd1,d2', '--per-day', '5', '--from', '2098-01-01', '--until'];
    expect((await dry(...later, '2098-12-31')).stdout).toContain('days ahead');
    expect(
      (await dry('grant', '--ids', 'd2', '--per-day', '5', '--from', '+1h', '--until', '+2h')).stdout,
    ).toContain('d2 has a grant until 2026-12-31 24:00 UTC, which the new grant would replace now');
    expect((await dry('ban', '--ids', 'd1,f2', '--for', '1h')).stdout).toMatch(
      /^d1\nWithout --dry-run, this command would ban 1 key: until 20.* UTC\.\nIt would fail for 1 key:\n {2}f2: f2 is banned until 2026-12-31 24:00 UTC already, which is later\.\n$/,
    );
    expect((await dry('unban', '--ids', 'd1,f2')).stdout).toContain('f2\nWithout');
    expect((await dry('ungrant', '--ids', 'd1,d2')).stdout).toMatch(
      /^d2\nWithout [\s\S]* 1 key \(had no grant\): d1/,
    );
    expect(await dry('edit', '--ids', 'd1,f1,nosuch', '--plan', 'pro', '--from', '2099-01-01')).toMatchObject(
      {
        exitCode: 1,
        stdout: expect.stringMatching(
          /^d1\nf1\nWithout --dry-run, this command would edit 2 keys: plan pro from 2099-01-01 00:00 UTC\.\nIt would fail for 1 key:\n {2}nosuch: There is no key nosuch/,
        ),
      },
    );
    expect((await dry('edit', '--ids', 'd1', '--plan', 'gold')).stdout).toContain('There is no plan gold');
    expect((await dry('edit', '--ids', 'd1', '--plan', 'enterprise')).stdout).toContain(
      'give at least one of',
    );
    expect((await dry('edit', '--ids', 'd1,f1', '--withdraw')).stdout).toContain(
      'It would fail for 2 keys:\n  f1, d1: There is no later change of this key to withdraw: it has none.',
    );
    expect((await dry('edit', '--ids', 'd1,f1', '--plan', 'free')).stdout).toContain('would edit 0 keys.');
    expect((await dry('restore', '--ids', 'd1,f1')).stdout).toContain('would not change 2 keys');
    expect((await dry('revoke', '--ids', 'f1', '--directory')).stdout).toContain('f1 is in the keys file');
    expect((await dry('revoke', '--ids', 'd1,f1', '--json')).stdout).toContain('"changed"');
    expect([await changesOf('update'), await changesOf('revoke')]).toEqual([[], []]);
    expect(readFileSync(keysFile, 'utf8')).toBe(before);
  });

  it.each([
    [['edit', 'd1'], 'Which change?'],
    [['edit', 'd1', '--from', '2099-01-01'], '--from needs --plan'],
    [['edit', 'd1', '--plan', 'pro', '--from', '2020-01-01'], 'in the past'],
    [['edit', 'd1', '--plan', 'gold'], 'names no plan'],
    [['edit', 'f1', '--plan', 'gold'], 'names no plan'],
    [['edit', 'd1', '--plan', 'pro', '--if-match', '"1-1"'], 'changed'],
    [['edit', 'f1', '--plan', 'pro', '--if-match', '"1-1"'], 'has no version'],
    [['grant', '--per-day', '5', '--until', '+1h'], 'Which keys?'],
    [['unban', 'd1', '--of-plan', 'free'], 'only one of these'],
    [['unban', '--ids', 'a b'], '"a b" is no id'],
    [['rotate', '--ids', 'd1,f1', '--yes'], '--out FILE'],
  ])('%j is refused, and nothing is changed', async (args, message) => {
    const before = readFileSync(keysFile, 'utf8');
    expect(await run(...args)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(message) });
    expect(readFileSync(keysFile, 'utf8')).toBe(before);
    expect((await keyOf('d1')).definition).toMatchObject({ plan: 'free' });
  });
});

describe('new secrets of many keys', () => {
  it('are in a file that only its owner can read, and each works; the same command changes nothing more', async () => {
    const out = join(folder, 'secrets.csv');
    const rotate = ['rotate', '--of-plan', 'free', '--overlap', '14d', '--out', out, '--yes'];
    expect(await run(...rotate)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(
        /^5 keys rotated: their older secrets end about 20\S+ \d\d:\d\d UTC, or earlier if they expire earlier\.\n$/,
      ),
    });
    expect(statSync(out).mode & 0o777).toBe(0o600);
    const rows = readFileSync(out, 'utf8').trim().split('\n');
    expect([
      rows[0],
      rows
        .slice(1)
        .map((row) => row.split(',')[0])
        .sort(),
    ]).toEqual(['id,secret', all]);
    for (const row of rows.slice(1)) {
      const headers = { authorization: `Bearer ${row.split(',')[1]}` };
      await until(
        'the new secret is valid',
        async () => (await fetch(`${gateway.baseUrl}/pets`, { headers })).status === 200,
      );
    }
    const old = { authorization: `Bearer ${secretOf.get('f1')}` };
    expect((await fetch(`${gateway.baseUrl}/pets`, { headers: old })).status).toBe(200);

    const again = await run(...rotate);
    expect(again).toMatchObject({
      exitCode: 0,
      stdout: '0 keys rotated.\n5 keys had their new secret already.\n',
    });
    expect((await run(...rotate, '--dry-run')).stdout).toMatch(
      /^Without --dry-run, this command would rotate 0 keys\.\nIt would not change 5 keys \(had their new secret already\): /,
    );
    expect(readFileSync(out, 'utf8').trim().split('\n')).toEqual(rows);
    expect(await changesOf('rotate')).toEqual(all);
    expect((await keyOf('d1')).secrets.length).toBe(2);
    expect((await run('rotate', '--older-than', '1h', '--dry-run')).stdout).toContain('would rotate 0 keys');
  });

  it('are continued after a crash: every key has exactly one new secret, and the file has it', async () => {
    const many = Array.from({ length: 60 }, (_, index) => `m${index}`);
    for (const id of many) await run('create', id, '--plan', 'pro', '--directory');
    const out = join(folder, 'secrets.csv');
    const args = ['keys', 'rotate', '--of-plan', 'pro', '--overlap', '1h', '--out', out, '--yes'];
    const child = spawn(process.execPath, ['gateway/cli/tollgate.ts', ...args], {
      env: { ...bareEnvironment, ...environment() },
      stdio: 'ignore',
    });
    await until('some keys are rotated', async () => (await changesOf('rotate')).length > 3);
    child.kill('SIGKILL');
    await once(child, 'exit');
    // A crash of the machine may cut off the last line.
    writeFileSync(out, 'm0,tg_cut', { flag: 'a' });

    expect(await runTollgate(args, environment())).toMatchObject({ exitCode: 0 });
    expect(await changesOf('rotate')).toEqual(many.toSorted());
    const rows = readFileSync(out, 'utf8').trim().split('\n').slice(1);
    expect(rows.map((row) => row.split(',')[0]).sort()).toEqual(many.toSorted());
    for (const row of rows) {
      const [id = '', secret] = row.split(',');
      const headers = { authorization: `Bearer ${secret}` };
      expect([id, (await fetch(`${gateway.baseUrl}/pets`, { headers })).status]).toEqual([id, 200]);
      expect([id, (await keyOf(id)).secrets.length]).toEqual([id, 2]);
    }
  });

  it.each([
    ['a file with something else', 'notes\n', 0o600, 'is no list of secrets'],
    ['a file that others can read', '', 0o644, 'only you can read'],
  ])('do not overwrite %s', async (_, text, mode, message) => {
    const out = join(folder, 'notes.txt');
    writeFileSync(out, text);
    chmodSync(out, mode);
    const refused = await run('rotate', '--of-plan', 'free', '--out', out, '--yes');
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(message) });
    expect(readFileSync(out, 'utf8')).toBe(text);
    expect(await changesOf('rotate')).toEqual([]);
  });

  it('are not made by a dry run', async () => {
    const out = join(folder, 'secrets.csv');
    expect((await run('rotate', '--of-plan', 'free', '--out', out, '--dry-run')).stdout).toContain(
      'would rotate 5 keys',
    );
    expect(existsSync(out)).toBe(false);
  });
});

it('a digest that a client sends is added once, and never if another key has it', async () => {
  const ask = (id: string, sha256: string) =>
    fetch(`${gateway.adminUrl}/api/v1/keys/${id}/secrets`, {
      method: 'POST',
      headers: { authorization: `Bearer ${writer.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ sha256, overlap: '1h' }),
    });
  const digest = 'a1'.repeat(32);
  for (let attempt = 0; attempt < 2; attempt++) {
    const reply = await ask('d1', digest);
    expect([reply.status, Object.keys(await reply.json()).includes('secret')]).toEqual([200, false]);
  }
  expect((await keyOf('d1')).secrets.length).toBe(2);
  expect((await ask('d2', digest)).status).toBe(409);
  expect((await ask('d2', ofFile[0]?.entry.secrets[0]?.sha256 ?? '')).status).toBe(409);
  expect((await ask('d2', 'short')).status).toBe(400);
  expect((await keyOf('d2')).secrets.length).toBe(1);
});
