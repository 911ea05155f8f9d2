import { expect, test } from 'vitest';
import { digestSecret, issueAdminToken, issueSecret } from '../../../gateway/shared/secrets.ts';
import { configFolder, mainDocument, redisLine } from '../../support/config-folder.ts';
import { runInTerminal } from '../../support/pseudo-terminal.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { startStubAdmin } from '../../support/stub-admin.ts';
import { until } from '../../support/until.ts';

const secret = issueSecret();
const entries = (more = '', ofSecret = '') => `# The keys.
- { id: other, plan: free, secrets: [] }

- id: acme
  plan: free
  name: "Acme \\u202e Ltd"
${more}  secrets:
    - sha256: ${digestSecret(secret)}
${ofSecret}`;

function whoami(keys: string, input: string, ...args: string[]) {
  const { file } = configFolder({ 'keys.yaml': keys });
  return runTollgate(['keys', 'whoami', ...args], { TOLLGATE_CONFIG: file }, input);
}

test.each([
  ['valid', '', '', /^state +valid: "keys rotate acme --overlap 0s" ends it$/m],
  ['revoked', '  disabled: true\n', '', /^state +revoked: /m],
  ['expired', '', '      expires: 2020-01-31\n', /^state +expired: /m],
])(
  'whoami prints the owner of a secret, file and line, and that the secret is %s',
  async (_, more, ofSecret, state) => {
    // The input ends with a line break, as editors and `echo` write it.
    const { exitCode, stdout, stderr } = await whoami(entries(more, ofSecret), `${secret}\r\n`);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^KEY +acme\n/);
    expect(stdout).toMatch(/^written in +keys\.yaml:4$/m);
    expect(stdout).toMatch(state);
    expect(stdout).not.toContain(secret);
    expect(stdout).not.toContain(digestSecret(secret));
  },
);

test('whoami --json has the members of the admin API', async () => {
  const { stdout } = await whoami(entries('', '      expires: 2027-01-31\n'), secret, '--json');
  expect(JSON.parse(stdout)).toEqual({
    ...{ known: true, id: 'acme', plan: 'free', source: 'file', file: 'keys.yaml', line: 4 },
    ...{ expiresAt: '2027-01-31T00:00:00.000Z', isExpired: false, isDisabled: false },
  });
});

test.each([
  ['of nobody', issueSecret(), /^No key has this secret\.\n$/],
  ['cut off', secret.slice(0, -1), /It is incomplete or was changed/],
  ['that is a token', issueAdminToken(), /token of the admin API/],
])('whoami of a secret %s reports it and exits with 2', async (_, input, sentence) => {
  const { exitCode, stdout, stderr } = await whoami(entries(), input);
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: '' });
  expect(stdout).toMatch(sentence);
  expect(JSON.parse((await whoami(entries(), input, '--json')).stdout)).toEqual({ known: false });
});

test.each([
  ['nothing', ''],
  ['two lines', `${secret}\n${secret}\n`],
  ['a file that is no secret', 'x'.repeat(100_000)],
])('whoami of %s prints how to pass a secret, and exits with 1', async (_, input) => {
  const { exitCode, stdout, stderr } = await whoami(entries(), input);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(/^Which secret\? It is read from standard input/);
});

test('whoami does not repeat a secret from its arguments, and prints how to pass it', async () => {
  const { exitCode, stdout, stderr } = await whoami(entries(), '', secret);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(
    /^Do not give a secret as an argument: .*printf %s "\$SECRET" \| tollgate keys whoami\.\n$/,
  );
  expect(stderr).not.toContain(secret);
});

test('whoami without a configuration and a gateway prints which options it needs', async () => {
  const { exitCode, stderr } = await runTollgate(['keys', 'whoami'], { TOLLGATE_ADMIN_TOKEN: 'x' }, secret);
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^Which gateway\? /) });
});

test('whoami does not call a secret unknown without a gateway, if there may be a directory', async () => {
  const main = mainDocument.replace('keys: keys.yaml', 'keys: { file: keys.yaml, directory: true }');
  const { file } = configFolder({ 'keys.yaml': entries(), 'tollgate.yaml': main + redisLine });
  const run = (input: string) => runTollgate(['keys', 'whoami', '--config', file], {}, input);
  expect(await run(secret)).toMatchObject({ exitCode: 0, stderr: '' });
  const { exitCode, stdout, stderr } = await run(issueSecret());
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(
    /^No key in .*keys\.yaml has this secret\. The key directory could not be searched: Which token\?/,
  );
});

test.each([
  ['id_in_configuration', 'the configuration has another key with this id, which takes precedence'],
  ['no_plan', 'the configuration gives this key no limits on its plan'],
  ['of a later version', 'of a later version'],
])(
  'whoami calls a secret refused, and not valid, if the gateway refuses it for %s',
  async (refusedFor, reason) => {
    const owner = { known: true, id: 'acme', plan: 'pro', source: 'directory' };
    const { url } = await startStubAdmin(() => ({
      body: { ...owner, isExpired: false, isDisabled: false, refusedFor },
    }));
    const env = { TOLLGATE_ADMIN: url, TOLLGATE_ADMIN_TOKEN: 'x' };
    const { exitCode, stdout } = await runTollgate(['keys', 'whoami'], env, secret);
    expect(exitCode).toBe(0);
    expect(stdout.replace(/\s+/g, ' ')).toContain(`state refused: ${reason}`);
  },
);

test('whoami at a terminal prompts for the secret without an echo, and Ctrl-C and Ctrl-D end the prompt', async () => {
  const { file } = configFolder({ 'keys.yaml': entries() });
  const ask = async (typed: string) => {
    const terminal = await runInTerminal(['keys', 'whoami', '--config', file], {}, { columns: 80, rows: 24 });
    await until('it asks', () => terminal.output().includes('The secret, then Enter'));
    terminal.type(typed);
    return { ...(await terminal.ended()), output: terminal.output() };
  };
  const found = await ask(`${secret}\r`);
  expect(found).toMatchObject({
    exitCode: 0,
    isRestored: true,
    output: expect.stringContaining('keys.yaml:4'),
  });
  expect(found.output).not.toContain(secret.slice(3, 11));
  for (const key of ['\u0003', '\u0004']) {
    const ended = await ask(key);
    expect(ended).toMatchObject({
      exitCode: 1,
      isRestored: true,
      output: expect.stringContaining('Which secret?'),
    });
  }
});
