import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { digestSecret } from '../../gateway/shared/secrets.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';
import { runTollgateProcess, runTollgate as tollgate } from '../support/run-tollgate.ts';

const secretPattern = /^tg_[0-9A-Za-z]{46}\n$/;

test('check prints OK, with the counts and the version', async () => {
  const { file } = configFolder({ 'tollgate.yaml': mainDocument.replace('backend', 'localhost') });
  const { exitCode, stdout, stderr } = await tollgate(['check', '--config', file]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(/: OK \(test, 2 plans, 1 key, 3 operations, version [0-9a-f]{12}\)\n$/);
});

test('check warns about upstreams whose host names cannot be resolved, with their places, and prints OK', async () => {
  const upstreams = `upstreams:
  a: { url: http://localhost:3000 }
  b: { url: "http://[::1]:3000" }
  c: { url: https://orders.invalid }
`;
  const { file } = configFolder({ 'tollgate.yaml': mainDocument.replace(/upstream: .*\n/, upstreams) });
  const { exitCode, stdout, stderr } = await tollgate(['check', '--config', file]);
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/: OK /);
  const warnings = stderr.split('\n').filter((line) => line.includes('looked up'));
  expect(warnings).toHaveLength(1);
  const warning = `warning: ${file}:6:13: the host \`orders.invalid\` cannot be looked up here (`;
  expect(warnings[0]?.startsWith(warning)).toBe(true);
});

test('check accepts a draft in any folder, with keys and API document relative to it', async () => {
  const { file, pathOf } = configFolder();
  const draft = configFolder();
  draft.write('draft.yaml', mainDocument.replace('60', '61'));
  const inForce = await tollgate(['check'], { TOLLGATE_CONFIG: file });
  const checked = await tollgate(['check', draft.pathOf('draft.yaml')], { TOLLGATE_CONFIG: file });
  expect([inForce.exitCode, checked.exitCode]).toEqual([0, 0]);
  expect(checked.stdout).toContain(`${draft.pathOf('draft.yaml')}: OK (test, 2 plans, 1 key, 3 operations`);
  expect(checked.stdout.slice(-20)).not.toBe(inForce.stdout.slice(-20));

  draft.write('keys.yaml', '- { id: a, plan: fre, secrets: [] }\n');
  const alone = await tollgate(['check', draft.pathOf('draft.yaml')], { TOLLGATE_CONFIG: file });
  expect(alone).toMatchObject({ exitCode: 1, stdout: '' });
  expect(alone.stderr).toContain(draft.pathOf('keys.yaml'));
  expect(alone.stderr).not.toContain(pathOf('keys.yaml'));
});

test('check needs exactly one configuration, and refuses a draft together with --config, or neither', async () => {
  const { file } = configFolder();
  const both = await tollgate(['check', file, '--config', file]);
  const neither = await tollgate(['check']);
  for (const { exitCode, stdout, stderr } of [both, neither]) {
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/^Which configuration\? /);
  }
});

test('--version is the version of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(await runTollgateProcess(['--version'])).toEqual({
    exitCode: 0,
    stdout: `${version}\n`,
    stderr: '',
  });
});

test('check prints every problem and exits 1', async () => {
  const { file, write } = configFolder({ 'keys.yaml': '- { id: a, plan: fre, secrets: [] }\n' });
  write('tollgate.yaml', mainDocument.replace('60', '-60'));
  const { exitCode, stdout, stderr } = await tollgate(['check'], { TOLLGATE_CONFIG: file });
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain('tollgate.yaml:5:22: `plans.free.perMinute` must be');
  expect(stderr).toContain('keys.yaml:1:18: `[0].plan` names no plan; did you mean `free`?');
});

test('the first key creates the keys file, and every other command without that file fails with one sentence', async () => {
  const { file, pathOf } = configFolder();
  rmSync(pathOf('keys.yaml'));
  const missing = await tollgate(['check', '--config', file]);
  expect(missing.exitCode).toBe(1);
  expect(missing.stderr).toContain('this file does not exist: the command `keys create` makes it');

  const created = await tollgate(['keys', 'create', '--id', 'acme', '--plan', 'free', '--config', file]);
  expect(created.stdout).toMatch(secretPattern);
  expect((await tollgate(['check', '--config', file])).stdout).toContain('1 key,');
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toContain(digestSecret(created.stdout.trim()));
});

test('admin token prints the line for the configuration, and last the token, whose digest is in the line', async () => {
  const { exitCode, stdout, stderr } = await tollgate(['admin', 'token', '--name', '42', '--may', 'write']);
  const [line = '', token = '', ...rest] = stdout.split('\n');
  expect({ exitCode, rest }).toEqual({ exitCode: 0, rest: [''] });
  expect(token).toMatch(/^tga_[0-9A-Za-z]{46}$/);
  expect(stderr).not.toContain(token);
  expect(stderr).toContain('`admin: { tokens: [ … ] }`');
  // The tokens are written on one line as in `config/production.yaml`, and as a block list as in `config/local.yaml`.
  for (const tokens of [`[${line}]`, `\n    - ${line}`]) {
    const { file } = configFolder({ 'tollgate.yaml': `${mainDocument}admin:\n  tokens: ${tokens}\n` });
    const loaded = loadSettings({ file, env: {} });
    expect(loaded.kind === 'valid' && loaded.settings.admin.tokens).toEqual([
      { name: '42', may: 'write', sha256: digestSecret(token) },
    ]);
  }
});

test('admin token --json prints one object, and the token may only read unless --may allows more', async () => {
  const { stdout } = await tollgate(['admin', 'token', '--name', 'alice', '--json']);
  const { token, sha256, ...rest } = JSON.parse(stdout);
  expect(rest).toEqual({ name: 'alice', may: 'read' });
  expect(sha256).toBe(digestSecret(token));
});

test.each([
  [['--name', 'al ice'], /^--name must be 1 to 64 of the characters/],
  [['--name', 'alice', '--may', 'all'], /--may <what>.*Allowed choices are read, write/],
  [[], /--name <name>.* not specified/],
])('admin token %j prints the problem and no token', async (args, message) => {
  const { exitCode, stdout, stderr } = await tollgate(['admin', 'token', ...args]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(message);
});

test('a command without a configuration prints what to do', async () => {
  const { exitCode, stderr } = await tollgate(['check']);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: 'Which configuration? Give --config FILE or set TOLLGATE_CONFIG.\n',
  });
});

for (const [command, tags] of [
  ['schema', []],
  ['check', ['full']],
  ['keys create --help', ['full']],
  ['--version', ['full']],
] as const)
  test(`${command} fails with a sentence when the disk has no room for its output`, {
    tags: [...tags],
  }, () => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const { file } = configFolder({ 'tollgate.yaml': mainDocument.replace('backend', 'localhost') });
    const args = ['gateway/cli/tollgate.ts', ...command.split(' ')];
    const env = { ...process.env, TOLLGATE_CONFIG: file };
    const { status, stderr } = spawnSync(process.execPath, args, { env, stdio: ['ignore', full, 'pipe'] });
    expect({ status, stderr: `${stderr}` }).toEqual({
      status: 1,
      stderr: 'Standard output cannot be written: ENOSPC: no space left on device, write.\n',
    });
  });
