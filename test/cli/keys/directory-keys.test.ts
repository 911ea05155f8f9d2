import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseExport } from '../../../gateway/cli/keys/transfer/transfer.ts';
import { importToDirectory } from '../../../gateway/cli/keys/transfer/transfer-directory.ts';
import { CommandError } from '../../../gateway/cli/output/command-error.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { makeToken } from '../../support/admin-client.ts';
import { configFolder, keysDocument, mainDocument, redisLine } from '../../support/config-folder.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

const writer = makeToken('write', 'ada');
const written = makeKey({ id: 'written' });
const secretPattern = /^tg_[0-9A-Za-z]{46}\n$/;

let backend: RecordingBackend;
let gateways: RunningGateway[];
beforeAll(async () => {
  backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('{}')) });
  const prefix = freshPrefix();
  const start = () => startGatewayHere(config(prefix), { tuning: { bounds: patientStore } });
  gateways = await Promise.all([start(), start()]);
  // The gateways listen before they are connected to Redis.
  await until('a key is issued', async () => {
    return (await run('create taken --plan free --directory')).exitCode === 0;
  });
});
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
  await backend.close();
});

function config(prefix: string) {
  return testConfig({
    upstream: { url: backend.url },
    redis: { url: redisUrl(), prefix },
    keys: { directory: true },
    admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry] },
  });
}

/** Runs a command against the first gateway. */
function run(command: string, stdin?: string) {
  const env = { TOLLGATE_ADMIN: gateways[0]?.adminUrl ?? '', TOLLGATE_ADMIN_TOKEN: writer.token };
  return runTollgate(['keys', ...command.split(' ')], env, stdin);
}

/** Sends a request to the second gateway. @returns the status */
async function statusOf(secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret.trim()}` };
  const response = await fetch(`${gateways[1]?.baseUrl}/pets`, { headers });
  await response.arrayBuffer();
  return response.status;
}

test('a key of the directory is issued, rotated, revoked and restored, with effect on another process', async () => {
  const created = await run('create acme --plan free --directory --name Acme');
  expect(created).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(secretPattern) });
  expect(created.stderr).toMatch(/^Added acme to the key directory\. .*:\n$/);
  expect(await statusOf(created.stdout)).toBe(200);

  const rotated = await run('rotate acme --directory --overlap 0s');
  expect(rotated).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(secretPattern) });
  expect(rotated.stderr).toContain('No older secret is valid any more.');
  expect([await statusOf(created.stdout), await statusOf(rotated.stdout)]).toEqual([401, 200]);

  const { secret, ...more } = JSON.parse((await run('add-secret acme --directory --json')).stdout);
  expect(more).toMatchObject({
    id: 'acme',
    plan: 'free',
    name: 'Acme',
    source: 'directory',
    disabled: false,
  });
  expect([await statusOf(rotated.stdout), await statusOf(secret)]).toEqual([200, 200]);

  const revoked = await run('revoke acme --directory');
  expect(revoked).toMatchObject({ exitCode: 0, stderr: '' });
  expect(revoked.stdout).toMatch(
    /^acme is revoked, in the key directory: .* "keys restore acme --directory" undoes this\.\n$/,
  );
  expect(await statusOf(secret)).toBe(401);
  expect((await run('restore acme --directory')).stdout).toContain('acme is restored, in the key directory');
  // A process that refused the key reads the key again one second later.
  await expect.poll(() => statusOf(secret)).toBe(200);

  const deletion = { method: 'DELETE', headers: { authorization: `Bearer ${writer.token}` } };
  expect((await fetch(`${gateways[0]?.adminUrl}/api/v1/keys/acme`, deletion)).status).toBe(200);
  expect((await run('create acme --plan free --directory')).stderr).toMatch(
    /^Added acme to the key directory\. An earlier key with this id left this state: .*\d used units? in this day\. /,
  );
});

test('a key of the directory may have its own limits and expiry, and unban and grant work for it', async () => {
  const { stdout } = await run(
    'create big --plan enterprise --per-day 3 --expires 2100-01-01 --directory --json',
  );
  const { limits, secrets } = JSON.parse(stdout);
  expect({ limits, ends: secrets[0].expiresAt }).toEqual({
    limits: { perDay: 3 },
    ends: '2100-01-01T00:00:00.000Z',
  });
  expect((await run('grant big --per-day 9 --until +1h')).stdout).toMatch(/^big has a grant: 9 a day until /);
  expect((await run('unban big')).stdout).toMatch(/^big was not banned\.\n/);
});

const withDirectory =
  mainDocument.replace('keys: keys.yaml', 'keys: { file: keys.yaml, directory: true }') + redisLine;

test('a key is sought in the keys file and then in the directory without --directory, and no other key is suggested', async () => {
  await run('create acme2 --plan free --directory');
  const { file, pathOf } = configFolder({ 'tollgate.yaml': withDirectory });
  const env = { TOLLGATE_CONFIG: file, TOLLGATE_ADMIN: gateways[0]?.adminUrl ?? '' };
  const change = (command: string, more = {}) =>
    runTollgate(['keys', ...command.split(' ')], { ...env, TOLLGATE_ADMIN_TOKEN: writer.token, ...more });

  expect((await change('revoke acme2')).stdout).toMatch(/^acme2 is revoked, in the key directory: /);
  expect((await change('restore acme2')).stdout).toContain('acme2 is restored, in the key directory');
  expect((await change('rotate acme2')).stderr).toContain('acme2 has one more secret, in the key directory.');
  expect((await change('add-secret acme2')).stdout).toMatch(secretPattern);
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toBe(keysDocument);
  expect((await change('revoke acme')).stdout).toMatch(/^acme is revoked, in .*keys\.yaml:2: /);

  const nowhere = await change('revoke acme3');
  expect([nowhere.exitCode, nowhere.stderr]).toEqual([
    1,
    expect.stringMatching(/^There is no key acme3, neither in .*keys\.yaml nor in the key directory\.\n$/),
  ]);
  const deletion = { method: 'DELETE', headers: { authorization: `Bearer ${writer.token}` } };
  expect((await fetch(`${env.TOLLGATE_ADMIN}/api/v1/keys/acme2`, deletion)).status).toBe(200);
  const removed = 'acme2 was removed at \\d\\d:\\d\\d:\\d\\d UTC by ada\\.\n$';
  await expect
    .poll(async () => (await change('restore acme2')).stderr)
    .toMatch(
      new RegExp(`^There is no key acme2, neither in .*keys\\.yaml nor in the key directory\\. ${removed}`),
    );
  expect((await change('show acme2')).stderr).toMatch(new RegExp(`^There is no key acme2\\. ${removed}`));
  await run('create acme2 --plan free --directory');

  const unasked = await change('revoke acme2', { TOLLGATE_ADMIN_TOKEN: '' });
  expect([unasked.exitCode, unasked.stderr]).toEqual([
    1,
    expect.stringMatching(/^acme2 is not in .*keys\.yaml\. In the key directory: .*TOLLGATE_ADMIN_TOKEN/),
  ]);
});

test('create and import add no key to the file if the directory has its id, and warn without a reachable gateway', async () => {
  await run('create both --plan free --directory');
  const { file, pathOf } = configFolder({ 'tollgate.yaml': withDirectory });
  const env = { TOLLGATE_CONFIG: file, TOLLGATE_ADMIN: gateways[0]?.adminUrl ?? '' };
  const change = (command: string, token: string, stdin?: string) =>
    runTollgate(['keys', ...command.split(' ')], { ...env, TOLLGATE_ADMIN_TOKEN: token }, stdin);

  expect(await change('create both --plan free', writer.token)).toMatchObject({
    exitCode: 1,
    stdout: '',
    stderr:
      'The key directory has a key both already; "keys rotate both --directory" gives it a new secret.\n',
  });
  const keys = ['both', 'alone'].map((id) => ({ id, plan: 'free', secrets: [{ sha256: digestSecret(id) }] }));
  const imported = await change('import -', writer.token, JSON.stringify({ keys }));
  expect([imported.exitCode, imported.stdout]).toEqual([
    1,
    expect.stringMatching(
      /^1 key added to .*keys\.yaml, 1 refused:\n {2}both: the key directory has a key with this id\n$/,
    ),
  ]);
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).toContain('alone');
  expect(readFileSync(pathOf('keys.yaml'), 'utf8')).not.toContain('both');

  const unasked = await change('create both --plan free', '');
  expect(unasked.exitCode).toBe(0);
  expect(unasked.stderr).toMatch(
    /^warning: the key directory may already have a key both; the command could not check this\. Which token\? .*\nAdded both to /,
  );
});

test.each([
  ['create taken --plan free --directory', 'There is a key with the id taken already.'],
  ['create x --plan fre --directory', 'did you mean `free`?'],
  ['create x --plan enterprise --directory', 'the plan enterprise is custom'],
  ['create x --plan free --expires 2020-01-01 --directory', '--expires is in the past'],
  ['create a/b --plan free --directory', '`id` must be 1 to 100 of the characters'],
  ['rotate takn --directory', 'There is no key takn: "keys list --q TEXT" finds keys'],
  ['revoke \u001b[2J --directory', 'There is no key \\u{1b}[2J'],
  ['rotate taken --overlap soon --directory', '--overlap must be a date such as'],
])('%s prints the problem', async (command, message) => {
  const { exitCode, stdout, stderr } = await run(command);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toContain(message);
});

test('whoami finds the owner of a secret in the directory, and calls a secret unknown if the gateway does', async () => {
  const { stdout: secret } = await run('create whose --plan free --directory --expires 2100-01-01');
  const { exitCode, stdout, stderr } = await run('whoami', secret);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toMatch(/^KEY +whose\nplan +free\nwritten in +the key directory\n/);
  expect(stdout).toContain('"keys rotate whose --overlap 0s --directory" ends it');
  const json = await run('whoami --json', secret);
  expect(JSON.parse(json.stdout)).toEqual({
    ...{ known: true, id: 'whose', plan: 'free', source: 'directory' },
    ...{ expiresAt: '2100-01-01T00:00:00.000Z', isExpired: false, isDisabled: false },
  });
  const unknown = await run('whoami', 'tg_nothing');
  expect(unknown).toMatchObject({
    exitCode: 2,
    stderr: '',
    stdout: expect.stringContaining('No key has this secret.'),
  });
});

test('a whole directory moves to another one and into a file, over several pages, and the secrets work there', async () => {
  const { stdout: secret } = await run('create mover --plan enterprise --per-day 5 --name Mover --directory');
  const many = Array.from({ length: 600 }, (_, index) => ({
    ...{ id: `many-${index}`, plan: 'free', disabled: index % 2 === 0 },
    secrets: [{ sha256: digestSecret(`many-${index}`), expiresAt: '2100-01-01T00:00:00.000Z' }],
  }));
  const first = await run('import - --directory', JSON.stringify({ keys: many }));
  expect(first).toMatchObject({ exitCode: 0, stderr: '' });
  // After a late reply from Redis, the command repeats a part, and counts the keys that the gateway had already added.
  const counts = /^(\d+) keys added to the key directory(?:, (\d+) there already)?\n$/.exec(first.stdout);
  expect(Number(counts?.[1]) + Number(counts?.[2] ?? 0)).toBe(600);
  const again = await run(
    'import - --directory --json',
    JSON.stringify({ keys: [{ ...many[0], plan: 'pro' }, ...many.slice(1)] }),
  );
  expect({ ...JSON.parse(again.stdout), exitCode: again.exitCode }).toEqual({
    exitCode: 1,
    ...{ created: 0, unchanged: 599, refused: [{ id: 'many-0', reason: expect.any(String) }] },
  });
  expect(await statusOf('many-1')).toBe(200);

  const { stdout: moved } = await run('export --directory');
  const { keys } = JSON.parse(moved);
  expect(keys.length).toBeGreaterThan(600);
  expect(moved.split('\n')).toHaveLength(keys.length + 3);
  const elsewhere = await startGatewayHere(config(freshPrefix()), { tuning: { bounds: patientStore } });
  try {
    const env = {
      ...{ TOLLGATE_ADMIN: elsewhere.adminUrl, TOLLGATE_ADMIN_TOKEN: writer.token },
      ...{ TOLLGATE_CONFIG: `${elsewhere.configDir}/gateway.yaml` },
    };
    const imported = await runTollgate(['keys', 'import', '-', '--directory'], env, moved);
    expect(imported).toMatchObject({ exitCode: 0, stderr: '' });
    const headers = { authorization: `Bearer ${secret.trim()}` };
    expect((await fetch(`${elsewhere.baseUrl}/pets`, { headers })).status).toBe(200);
    const exported = await runTollgate(['keys', 'export', '--directory'], env);
    expect(exported.stdout).toBe(moved);

    const { plans, api } = config('x');
    const file = configFolder({
      'gateway.yaml': JSON.stringify({ ...config('x'), plans, api, keys: 'keys.yaml' }),
      'keys.yaml': '',
    });
    const toFile = { TOLLGATE_CONFIG: file.pathOf('gateway.yaml') };
    expect((await runTollgate(['keys', 'import', '-'], toFile, moved)).exitCode).toBe(0);
    const written = JSON.parse((await runTollgate(['keys', 'export'], toFile)).stdout);
    expect(written.keys).toEqual(keys);
  } finally {
    await elsewhere.stop('SIGKILL');
  }
});

test('an import to a keys file keeps from which secret each secret was issued, also for removed secrets', async () => {
  const file = configFolder({
    'gateway.yaml': JSON.stringify({ ...config('x'), keys: 'keys.yaml' }),
    'keys.yaml': '',
  });
  const env = { TOLLGATE_CONFIG: file.pathOf('gateway.yaml') };
  const [first, second, third] = ['first', 'second', 'third'].map(digestSecret);
  const key = {
    ...{ id: 'moved', plan: 'pro', disabled: false },
    secrets: [{ sha256: third, issuedFrom: second }],
    pastSecrets: [{ sha256: first }, { sha256: second, issuedFrom: first }],
  };
  const moved = JSON.stringify({ keys: [key] });
  expect((await runTollgate(['keys', 'import', '-'], env, moved)).exitCode).toBe(0);
  const { keys } = JSON.parse((await runTollgate(['keys', 'export'], env)).stdout);
  const expiresAt = '1970-01-01T00:00:00.000Z';
  expect(keys[0].secrets).toEqual([
    { sha256: first, expiresAt },
    { sha256: second, expiresAt, issuedFrom: first },
    { sha256: third, issuedFrom: second },
  ]);
  const again = await runTollgate(['keys', 'import', '-', '--json'], env, moved);
  expect(JSON.parse(again.stdout)).toMatchObject({ created: 0, unchanged: 1 });
});

test('an import that cannot continue states how far it came', async () => {
  const keys = (index: number) => [{ id: `part-${index}`, plan: 'free', secrets: [] }];
  let parts = 0;
  const client: Parameters<typeof importToDirectory>[0] = {
    async ask() {
      parts += 1;
      if (parts > 2) throw new CommandError('No server answers.', 'passing');
      const json = { created: 1, unchanged: 0, refused: [] };
      return { json, body: json as never };
    },
  };
  const bounds = tunedBounds({
    importKeysMax: 1,
    importBytesMax: 10_000,
    importMembersMax: 100,
    importRetries: 2,
    importRetryMs: 1,
  });
  const all = [1, 2, 3, 4].flatMap((index) => parseExport(JSON.stringify({ keys: keys(index) }), 'x').keys);
  await expect(importToDirectory(client, all, bounds)).rejects.toThrow(
    'No server answers. Before this error, 2 of 4 keys were added. Run the same command again to add the other keys.',
  );
  expect(parts).toBe(5);
});

test('a command for the directory reports a missing directory, and a key that is in a file', async () => {
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: backend.url },
      keys: [written.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry] },
    }),
  );
  try {
    const env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: writer.token };
    const ask = (command: string) => runTollgate(['keys', ...command.split(' '), '--directory'], env);
    expect((await ask('revoke written')).stderr).toMatch(
      /^The key written is defined in gateway\.yaml, line \d+: edit it there\.\n$/,
    );
    const { exitCode, stderr } = await ask('create acme --plan free');
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringContaining('`keys: { …, directory: true }`'),
    });
  } finally {
    await gateway.stop('SIGKILL');
  }
});

test('a command without a response states that the change may have been made, and how to check', async () => {
  const mute = createServer((socket) => socket.once('data', () => socket.destroy()).on('error', () => {}));
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = mute.address() as AddressInfo;
    const ask = (admin: string) => {
      const env = { TOLLGATE_ADMIN: admin, TOLLGATE_ADMIN_TOKEN: writer.token };
      return runTollgate(['keys', 'rotate', 'acme', '--directory'], env);
    };
    const { exitCode, stdout, stderr } = await ask(`http://127.0.0.1:${port}`);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(
      /^No server answers at .* If the gateway made the change, "keys show acme" shows it/,
    );
    expect((await ask('http://127.0.0.1:1')).stderr).not.toContain('done all the same');
  } finally {
    mute.close();
  }
});
