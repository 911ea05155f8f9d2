import { chmodSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { digestSecret } from '../../gateway/secrets.ts';
import { configFolder, keysDocument, mainDocument } from '../support/config-folder.ts';
import { limitsOf } from '../support/limits-of.ts';
import { runTollgate as tollgate } from '../support/run-tollgate.ts';

const secretPattern = /^tg_[0-9A-Za-z]{46}\n$/;

/** A keys file with comments and formatting, of which every byte must be kept. */
const commentedKeys = `# Our keys; ask Ada before you edit.

-   id:   acme      # the first customer
    plan: 'free'


    secrets:
    - sha256: "${'a'.repeat(64)}"   # laptop
    # - sha256: the old one

# the end
`;

test('check says OK, with the counts and the version', async () => {
  const { file } = configFolder({ 'tollgate.yaml': mainDocument.replace('backend', 'localhost') });
  const { exitCode, stdout, stderr } = await tollgate(['check', '--config', file]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(/: OK \(test, 2 plans, 1 key, 3 operations, version [0-9a-f]{12}\)\n$/);
});

test('check warns of upstreams whose host names cannot be looked up, with their places, and says OK', async () => {
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

test('check takes a draft beside the configuration in force, or anywhere, with keys and API relative to it', async () => {
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

test('check wants one configuration: a draft and --config together are refused, and so is neither', async () => {
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
  expect(await tollgate(['--version'])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' });
});

test('check prints every problem and exits 1', async () => {
  const { file, write } = configFolder({ 'keys.yaml': '- { id: a, plan: fre, secrets: [] }\n' });
  write('tollgate.yaml', mainDocument.replace('60', '-60'));
  const { exitCode, stdout, stderr } = await tollgate(['check'], { TOLLGATE_CONFIG: file });
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain('tollgate.yaml:5:22: `plans.free.perMinute` must be');
  expect(stderr).toContain('keys.yaml:1:18: `[0].plan` names no plan; did you mean `free`?');
});

test('the first key creates the keys file; without it every other command fails with one sentence', async () => {
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
  const { file } = configFolder({ 'tollgate.yaml': `${mainDocument}admin:\n  tokens:\n    ${line}\n` });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && loaded.settings.admin.tokens).toEqual([
    { name: '42', may: 'write', sha256: digestSecret(token) },
  ]);
});

test('admin token --json prints one object, and a token may only read unless --may says more', async () => {
  const { stdout } = await tollgate(['admin', 'token', '--name', 'alice', '--json']);
  const { token, sha256, ...rest } = JSON.parse(stdout);
  expect(rest).toEqual({ name: 'alice', may: 'read' });
  expect(sha256).toBe(digestSecret(token));
});

test.each([
  [['--name', 'al ice'], /^--name must be 1 to 64 of the characters/],
  [['--name', 'alice', '--may', 'all'], /--may <what>.*Allowed choices are read, write/],
  [[], /--name <name>.* not specified/],
])('admin token %j says what is wrong with it, and prints no token', async (args, message) => {
  const { exitCode, stdout, stderr } = await tollgate(['admin', 'token', ...args]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(message);
});

test('a command without a configuration says what to do', async () => {
  const { exitCode, stderr } = await tollgate(['check']);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: 'Which configuration? Say --config FILE or set TOLLGATE_CONFIG.\n',
  });
});

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
      expires: 2027-01-31
`;
  const [before, after] = commentedKeys.split(/(?<=the old one\n)/);
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(before + added + after);
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

test('keys create adds to a list in the main file', async () => {
  const inline = mainDocument.replace(
    'keys: keys.yaml',
    'keys:\n  - { id: acme, plan: free, secrets: [] } # first\n\n# What is offered.',
  );
  const { file } = configFolder({ 'tollgate.yaml': inline });
  const { stdout } = await tollgate(['keys', 'create', '--config', file, '--plan', 'free', '--id', 'new']);
  const added = `  - id: new\n    plan: free\n    secrets:\n      - sha256: ${digestSecret(stdout.trim())}\n`;
  expect(readFileSync(file, 'utf8')).toBe(inline.replace('# first\n', `# first\n${added}`));
});

test('when many keys are created at once none is lost', async () => {
  const { file } = configFolder();
  const ids = Array.from({ length: 8 }, (_, i) => `customer-${i}`);
  const outcomes = await Promise.all(
    ids.map((id) => tollgate(['keys', 'create', '--config', file, '--plan', 'free', '--id', id])),
  );
  expect(outcomes.map(({ exitCode }) => exitCode)).toEqual(ids.map(() => 0));
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && [...loaded.settings.keys.keys()].toSorted()).toEqual(['acme', ...ids]);
});

test('keys add-secret gives a key a second secret, and both are valid', async () => {
  const { file } = configFolder({ 'keys.yaml': commentedKeys });
  const { exitCode, stdout } = await tollgate(['keys', 'add-secret', '--config', file, '--id', 'acme']);
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(secretPattern) });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && [...loaded.settings.secrets]).toEqual([
    ['a'.repeat(64), { keyId: 'acme', expiresMs: Number.POSITIVE_INFINITY }],
    [digestSecret(stdout.trim()), { keyId: 'acme', expiresMs: Number.POSITIVE_INFINITY }],
  ]);
});

test('keys configured shows each key with its limits and no digest', async () => {
  const { file } = configFolder();
  const { stdout } = await tollgate(['keys', 'configured', '--config', file]);
  expect(stdout).toBe(
    'ID    PLAN  LIMITS              VALID SECRETS  NAME\nacme  free  60/minute 1000/day  1\n',
  );
});

test.each([
  [
    'an id that exists',
    '--id acme --plan free',
    'The key acme exists already; use "keys add-secret" to rotate its secret.',
  ],
  ['an unknown plan', '--id a --plan fre', 'There is no plan fre; did you mean `free`?'],
  [
    'a custom plan without limits',
    '--id a --plan enterprise',
    'The plan enterprise is custom: say at least one of --per-second, --per-minute, --per-hour, --per-day, --per-month.',
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
    '--id must be 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -.',
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
