import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { configFolder, keysDocument, mainDocument } from '../../support/config-folder.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { okResponse, startRecordingBackend } from '../../support/recording-backend.ts';
import { runTollgateProcess, runTollgate as tollgate } from '../../support/run-tollgate.ts';
import { until } from '../../support/until.ts';

const secretPattern = /^tg_[0-9A-Za-z]{46}\n$/;

/**
 * A keys file with comments and formatting. An edit must preserve every byte of the comments and the
 * formatting.
 */
const commentedKeys = `# Our keys; ask Ada before you edit.

-   id:   acme      # the first customer
    plan: 'free'


    secrets:
    - sha256: "${'a'.repeat(64)}"   # laptop
    # - sha256: the old one

# the end
`;

/** Returns the text of a file, with `(now)` in place of each time within the last minute. */
function withoutTimes(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (at) =>
    Math.abs(Date.parse(at) - Date.now()) < 60_000 ? '(now)' : at,
  );
}

test('keys create prints only the secret on standard output and keeps every byte of the file', async () => {
  const { file, pathOf } = configFolder({ 'keys.yaml': commentedKeys });
  chmodSync(pathOf('keys.yaml'), 0o640);
  const created = await tollgate([
    ...['keys', 'create', '--config', file, '--plan', 'enterprise', '--id', 'big', '--name', 'Big: "Co"'],
    ...['--per-minute', '5000', '--per-day', '1000000', '--expires', '2027-01-31'],
  ]);
  expect(created).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(secretPattern) });
  expect(created.stderr).not.toContain('tg_');

  const added = `- id: big
  plan: enterprise
  name: 'Big: "Co"'
  limits:
    perMinute: 5000
    perDay: 1000000
  secrets:
    - sha256: ${digestSecret(created.stdout.trim())}
      created: (now)
      expires: 2027-01-31
`;
  const [before, after] = commentedKeys.split(/(?<=the old one\n)/);
  expect(withoutTimes(readFileSync(pathOf('keys.yaml'), 'utf8'))).toBe(before + added + after);
  expect(statSync(pathOf('keys.yaml')).mode & 0o777).toBe(0o640);
  expect(readdirSync(pathOf('.')).toSorted()).toEqual(['keys.yaml', 'openapi.yaml', 'tollgate.yaml']);

  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && loaded.settings.keys.get('big')?.limits).toEqual(
    limitsOf({ perMinute: 5000, perDay: 1_000_000 }),
  );
});

test.each([
  ['a file of comments only', '# none yet', '# none yet\n- id: new\n'],
  ['an empty file', '', '- id: new\n'],
  ['an empty list', '[] # none\n', '[{ id: new, plan: free, secrets: [ { sha256: '],
])('keys create adds the first key to %s', async (_, keys, beginning) => {
  const { file, pathOf } = configFolder({ 'keys.yaml': keys });
  const { exitCode } = await tollgate(['keys', 'create', '--config', file, '--plan', 'free', '--id', 'new']);
  expect(exitCode).toBe(0);
  expect(readFileSync(pathOf('keys.yaml'), 'utf8').startsWith(beginning)).toBe(true);
});

test('keys create writes the addresses of --address, and names the option if a range is wrong', async () => {
  const { file, pathOf } = configFolder({ 'keys.yaml': '[]\n' });
  const create = (id: string, ...ranges: string[]) =>
    tollgate(['keys', 'create', id, '--config', file, '--plan', 'free', '--address', ...ranges]);
  expect((await create('wrong', '203.0.113.7/24')).stderr).toContain(
    '--address has bits set behind its prefix; write 203.0.113.0/24 for the network',
  );
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe('[]\n');
  expect((await create('office', '203.0.113.0/24', '2001:db8::/32')).exitCode).toBe(0);
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && loaded.settings.keys.get('office')?.addresses).toEqual([
    '203.0.113.0/24',
    '2001:db8::/32',
  ]);
});

test('keys create adds to a list in the main file', async () => {
  const inline = mainDocument.replace(
    'keys: keys.yaml',
    'keys:\n  - { id: acme, plan: free, secrets: [] } # first\n\n# What is offered.',
  );
  const { file } = configFolder({ 'tollgate.yaml': inline });
  const { stdout } = await tollgate(['keys', 'create', '--config', file, '--plan', 'free', '--id', 'new']);
  const added = `  - id: new\n    plan: free\n    secrets:\n      - sha256: ${digestSecret(stdout.trim())}\n        created: (now)\n`;
  expect(withoutTimes(readFileSync(file, 'utf8'))).toBe(inline.replace('# first\n', `# first\n${added}`));
});

test('a file behind a link is locked under its own name, so that no command edits it under that name meanwhile', async () => {
  const { file, pathOf } = configFolder();
  mkdirSync(pathOf('data'));
  renameSync(pathOf('keys.yaml'), pathOf('data/k.yaml'));
  symlinkSync('data/k.yaml', pathOf('keys.yaml'));
  // The lock of a dead process is removed when another process takes the lock.
  const lock = pathOf('data/k.yaml.lock');
  mkdirSync(lock);
  writeFileSync(join(lock, `${spawnSync(process.execPath, ['-e', '']).pid}@${hostname()}`), '');
  const { exitCode } = await tollgate(['keys', 'revoke', 'acme', '--config', file]);
  expect(exitCode).toBe(0);
  expect(readdirSync(pathOf('data'))).toEqual(['k.yaml']);
  expect(readFileSync(pathOf('data/k.yaml'), 'utf8')).toContain('disabled: true');
});

test('a link to a missing keys file stays a link, and the first key creates the file', async () => {
  const { file, pathOf } = configFolder();
  mkdirSync(pathOf('data'));
  renameSync(pathOf('keys.yaml'), pathOf('elsewhere.yaml'));
  symlinkSync('data/k.yaml', pathOf('keys.yaml'));
  const args = ['keys', 'create', 'first', '--plan', 'free', '--config', file];
  expect(await tollgate(args)).toMatchObject({ exitCode: 0 });
  expect(lstatSync(pathOf('keys.yaml')).isSymbolicLink()).toBe(true);
  expect(readFileSync(pathOf('data/k.yaml'), 'utf8')).toContain('- id: first\n');
});

test('keys add-secret gives a key a second secret, and both are valid', async () => {
  const { file } = configFolder({ 'keys.yaml': commentedKeys });
  const { exitCode, stdout } = await tollgate(['keys', 'add-secret', '--config', file, '--id', 'acme']);
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(secretPattern) });
  const loaded = loadSettings({ file, env: {} });
  const expiresMs = Number.POSITIVE_INFINITY;
  expect(loaded.kind === 'valid' && loaded.settings.keys.secretsOf('acme')).toEqual([
    { digest: 'a'.repeat(64), expiresMs },
    { digest: digestSecret(stdout.trim()), expiresMs, createdMs: expect.closeTo(Date.now(), -5) },
  ]);
});

test('keys configured shows each key with its limits and no digest', async () => {
  const { file } = configFolder();
  const { stdout } = await tollgate(['keys', 'configured', '--config', file]);
  expect(stdout).toBe(
    'ID    PLAN  LIMITS              VALID SECRETS  NAME\nacme  free  60/minute 1000/day  1\n',
  );
});

test('keys configured names the limits of groups, of the plan and of the key', async () => {
  const groups = (limit: string) => `groups: { reports: { operations: [listPets], ${limit} } }`;
  const { file } = configFolder({
    'tollgate.yaml': mainDocument.replace('perDay: 1000', groups('perMinute: 5')),
    'keys.yaml': `${keysDocument}- { id: own, plan: free, ${groups('perHour: 9')}, secrets: [] }\n`,
  });
  const { stdout } = await tollgate(['keys', 'configured', '--config', file]);
  expect(stdout.split('\n').slice(1, 3)).toEqual([
    'acme  free  60/minute 5/reports-minute  1',
    'own   free  60/minute 9/reports-hour    0',
  ]);
});

test.each([
  [
    'an id that exists',
    '--id acme --plan free',
    'The key acme exists already; "keys rotate acme" gives it a new secret.',
  ],
  ['an unknown plan', '--id a --plan fre', 'There is no plan fre; did you mean `free`?'],
  [
    'a custom plan without limits',
    '--id a --plan enterprise',
    'The plan enterprise is custom: give at least one of --per-second, --per-minute, --per-hour, --per-day, --per-month.',
  ],
  [
    'limits on another plan',
    '--id a --plan free --per-day 5',
    'The plan free has its own limits: leave out --per-day.',
  ],
  [
    'a bad date',
    '--id a --plan free --expires soon',
    '--expires must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z.',
  ],
  [
    'a date that is past',
    '--id a --plan free --expires 2020-01-31',
    '--expires is in the past: the secret would never be valid.',
  ],
  [
    'an id that cannot be one',
    '--id a/b --plan free',
    'Its id must be 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -.',
  ],
  [
    'a limit of zero',
    '--id a --plan enterprise --per-minute 0 --per-day 1',
    '--per-minute must be a whole number from 1 to 999999999999999.',
  ],
])('keys create refuses %s in one sentence and writes nothing', async (_, args, sentence) => {
  const { file, pathOf } = configFolder();
  const { exitCode, stdout, stderr } = await tollgate([
    'keys',
    'create',
    '--config',
    file,
    ...args.split(' '),
  ]);
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 1, stdout: '', stderr: `${sentence}\n` });
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(keysDocument);
});

test('keys create does not change a configuration that is already invalid', async () => {
  const broken = '- { id: a, plan: fre, secrets: [] }\n';
  const { file, pathOf } = configFolder({ 'keys.yaml': broken });
  const { exitCode, stderr } = await tollgate([
    'keys',
    'create',
    '--config',
    file,
    '--id',
    'b',
    '--plan',
    'free',
  ]);
  expect(exitCode).toBe(1);
  expect(stderr).toContain('names no plan');
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(broken);
});

test('keys rotate issues a secret, and older secrets expire a day later or sooner', async () => {
  const ends = '      expires: 2020-01-01 # long ago\n';
  const { file, pathOf } = configFolder({
    'keys.yaml': `${keysDocument}${ends}    - { sha256: ${'b'.repeat(64)} } # laptop\n`,
  });
  const startMs = Date.now();
  const { exitCode, stdout, stderr } = await tollgate(['keys', 'rotate', 'acme', '--config', file]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(secretPattern) });
  expect(stderr).toMatch(
    /^acme has one more secret, in .*keys\.yaml:2\. 1 older secret stays valid until .* UTC\. .*:\n$/,
  );
  const text = readFileSync(pathOf('keys.yaml'), 'utf8');
  const expires = /expires: (.*) \} # laptop/.exec(text)?.[1] ?? '';
  expect((Date.parse(expires) - startMs) / 3_600_000).toBeCloseTo(24, 1);
  const added = `    - sha256: ${digestSecret(stdout.trim())}\n      created: (now)\n`;
  expect(withoutTimes(text)).toBe(
    `${keysDocument}${ends}    - { sha256: ${'b'.repeat(64)}, expires: ${expires} } # laptop\n${added}`,
  );
});

test('with keys rotate --overlap 0s the older secrets expire at once, and --json prints the key with its new secret', async () => {
  const { file } = configFolder();
  const rotate = ['keys', 'rotate', 'acme', '--overlap', '0s', '--json', '--config', file];
  const { exitCode, stdout, stderr } = await tollgate(rotate);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  const { secret, secrets, ...key } = JSON.parse(stdout);
  expect(key).toEqual({
    ...{ id: 'acme', plan: 'free', disabled: false, source: 'file', file: 'keys.yaml', line: 2 },
  });
  expect(Date.parse(secrets[0].expiresAt)).toBeLessThanOrEqual(Date.now());
  expect(secrets[1]).toEqual({
    digestStart: digestSecret(secret).slice(0, 8),
    createdAt: expect.stringMatching(/^20/),
  });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && loaded.settings.keys.find(digestSecret(secret))?.key.id).toBe('acme');
});

test('with keys rotate --overlap 2036-12-15 the older secrets stay valid until the end of that day', async () => {
  const { file } = configFolder();
  const rotate = ['keys', 'rotate', 'acme', '--overlap', '2036-12-15', '--json', '--config', file];
  const { secrets } = JSON.parse((await tollgate(rotate)).stdout);
  expect(secrets[0].expiresAt).toMatch(/^2036-12-16T00:/);
});

test('keys revoke and keys restore together leave the file unchanged, and report when there is nothing to do', async () => {
  const { file, pathOf } = configFolder({ 'keys.yaml': commentedKeys });
  const run = (command: string) => tollgate(['keys', command, 'acme', '--config', file]);
  const revoked = await run('revoke');
  expect(revoked).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: expect.stringContaining('acme is revoked, in '),
  });
  const written = readFileSync(pathOf('keys.yaml'), 'utf8');
  expect(written).toBe(commentedKeys.replace("    plan: 'free'\n", "    plan: 'free'\n    disabled: true\n"));
  expect((await run('revoke')).stdout).toContain('was revoked already');
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(written);
  expect((await run('restore')).stdout).toContain('acme is restored, in ');
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(commentedKeys);
  expect(await run('restore')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('was not revoked, in '),
  });
});

test('a broken API document or certificate does not block keys revoke and keys rotate, and keys create needs the operations', async () => {
  const tls = 'listen: { tls: { cert: tls.pem, key: missing.key } }';
  const { file, pathOf } = configFolder({
    'tollgate.yaml': `${mainDocument}${tls}\n`,
    'openapi.yaml': 'paths: {',
    'tls.pem': 'x',
  });
  const run = (...args: string[]) => tollgate(['keys', ...args, '--config', file]);
  expect(await run('rotate', 'acme')).toMatchObject({ exitCode: 0 });
  expect(await run('revoke', 'acme')).toMatchObject({ exitCode: 0, stderr: '' });
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toContain('disabled: true');
  expect((await run('create', '--plan', 'free', '--id', 'new')).stderr).toContain(
    'openapi.yaml:1:9: this is not valid YAML',
  );
});

test.each(['revoke a', 'rotate a', 'add-secret a', 'create b --plan free'])(
  'keys %s waits for another process that edits the keys, and keeps its edit',
  async (command) => {
    const { file, pathOf } = configFolder({ 'keys.yaml': '- { id: a, plan: free, secrets: [] }\n' });
    const lock = pathOf('keys.yaml.lock');
    mkdirSync(lock);
    writeFileSync(join(lock, '1@elsewhere'), '');
    const running = tollgate(['keys', ...command.split(' '), '--config', file]);
    const waits = () => readdirSync(pathOf('.')).some((name) => name.startsWith('keys.yaml.lock.'));
    await Promise.race([running, until('the command waits', waits)]);
    expect(waits()).toBe(true);
    appendFileSync(pathOf('keys.yaml'), '- { id: other, plan: free, secrets: [] }\n');
    rmSync(join(lock, '1@elsewhere'));
    expect(await running).toMatchObject({ exitCode: 0 });
    const text = readFileSync(pathOf('keys.yaml'), 'utf8');
    expect(text).toContain('{ id: other, plan: free, secrets: [] }');
    expect(text).toMatch(/disabled: true|sha256|id: b/);
  },
);

test('no edit of several simultaneous processes is lost, for all kinds of edits', {
  tags: 'full',
}, async () => {
  const ids = ['a', 'b'];
  const entry = (id: string) =>
    `- { id: ${id}, plan: free, secrets: [{ sha256: ${id.repeat(64)} }] } # of ${id}\n`;
  const { file, pathOf } = configFolder({ 'keys.yaml': ids.map(entry).join('') });
  const commands = ['revoke a', 'rotate a', 'add-secret b', 'create e --plan free'];
  const outcomes = await Promise.all(
    commands.map((command) => runTollgateProcess(['keys', ...command.split(' '), '--config', file])),
  );
  expect(outcomes.map(({ exitCode }) => exitCode)).toEqual(commands.map(() => 0));
  const loaded = loadSettings({ file, env: {} });
  if (loaded.kind === 'invalid') throw new Error('the file was broken');
  const { keys } = loaded.settings;
  const state = [...keys.ids()].map((id) => [id, keys.get(id)?.disabled, keys.secretsOf(id).length]);
  expect(state).toEqual([
    ['a', true, 2],
    ['b', false, 2],
    ['e', false, 1],
  ]);
  expect(readFileSync(pathOf('keys.yaml'), 'utf8').match(/# of [ab]\n/g)).toHaveLength(2);
});

test.each([
  ['rotate acm', 'There is no key acm in '],
  ['revoke somebody-else', 'keys.yaml; "keys configured" shows its keys.'],
  ['add-secret', 'Which key? Give its id, as in "keys create acme --plan free".'],
  ['create acme --id other --plan free', 'Which key, acme or other? Give its id once.'],
  ['rotate acme --overlap soon', /^--overlap must be a date .*, or a duration such as 24h, 30m, 7d or 0s\.$/],
  [
    'rotate acme --overlap 2020-01-01',
    '--overlap 2020-01-01 is in the past. 0s ends the older secrets at once.',
  ],
  ['rotate acme --expires 2020-01-01', '--expires is in the past: the secret would never be valid.'],
  ['revoke \u001b[2Jacme', 'There is no key \\u{1b}[2Jacme in '],
])('keys %s prints the problem, and writes nothing', async (command, message) => {
  const { file, pathOf } = configFolder();
  const { exitCode, stdout, stderr } = await tollgate(['keys', ...command.split(' ')], {
    TOLLGATE_CONFIG: file,
  });
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr.trimEnd()).toMatch(message);
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(keysDocument);
});

test('a key that shares YAML with other keys stays unchanged, and a sentence explains why', async () => {
  const shared = `- id: acme\n  plan: free\n  disabled: &off false\n  secrets: []\n- { id: b, plan: free, disabled: *off, secrets: [] }\n`;
  const { file, pathOf } = configFolder({ 'keys.yaml': shared });
  const { exitCode, stderr } = await tollgate(['keys', 'revoke', 'acme', '--config', file]);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(
    /keys\.yaml stays as it is: the value `&off` may be used elsewhere too\. Edit it by hand\.\n$/,
  );
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(shared);
});

test('a running gateway follows commands that revoke, restore, rotate and issue', async () => {
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('{}')) });
  // The test repeats a request until each change takes effect, so the plan needs high limits.
  const acme = makeKey({ id: 'acme', plan: 'business' });
  const gateway = await startGatewayHere(testConfig({ upstream: { url: backend.url }, keys: [acme.entry] }));
  try {
    const config = { TOLLGATE_CONFIG: `${gateway.configDir}/gateway.yaml` };
    const run = async (command: string) =>
      (await tollgate(['keys', ...command.split(' ')], config)).stdout.trim();
    await run('revoke acme');
    await expect.poll(() => statusOf(gateway, acme.secret)).toBe(401);
    await run('restore acme');
    await expect.poll(() => statusOf(gateway, acme.secret)).toBe(200);
    const next = await run('rotate acme --overlap 0s');
    await expect.poll(() => statusOf(gateway, next)).toBe(200);
    expect(await statusOf(gateway, acme.secret)).toBe(401);
    const other = await run('create other --plan free');
    await expect.poll(() => statusOf(gateway, other)).toBe(200);
  } finally {
    await gateway.stop('SIGKILL');
    await backend.close();
  }
});

async function statusOf(gateway: RunningGateway, secret: string): Promise<number> {
  const response = await fetch(`${gateway.baseUrl}/pets`, { headers: { authorization: `Bearer ${secret}` } });
  await response.arrayBuffer();
  return response.status;
}
