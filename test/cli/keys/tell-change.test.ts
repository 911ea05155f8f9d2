import { hostname, userInfo } from 'node:os';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { runTollgate } from '../../support/run-tollgate.ts';

const writer = makeToken('write', 'ada');
const reader = makeToken('read', 'bob');

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGatewayHere(
    testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      keys: [makeKey({ id: 'acme' }).entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry, reader.entry] },
    }),
  );
});
afterAll(() => gateway.stop('SIGKILL'));

function run(command: string, token: string | undefined, admin = gateway.adminUrl) {
  const env = {
    TOLLGATE_CONFIG: `${gateway.configDir}/gateway.yaml`,
    TOLLGATE_ADMIN: admin,
    ...(token !== undefined && { TOLLGATE_ADMIN_TOKEN: token }),
  };
  return runTollgate(command.split(' '), env);
}

interface Changes {
  readonly changes: readonly { readonly action: string; readonly by: string; readonly ranBy?: string }[];
}

async function toldChanges() {
  const { stdout } = await run('changes --json', reader.token);
  const { changes } = JSON.parse(stdout) as Changes;
  return changes.filter(({ action }) => !/reload/.test(action)).toReversed();
}

test('changes of commands in the file are in the record of changes, with the name of the token and no secret', async () => {
  const secrets: string[] = [];
  for (const command of [
    'keys create new --plan free --name New',
    'keys rotate acme --overlap 1h --expires 2027-01-31',
    'keys add-secret acme',
    'keys revoke acme',
    'keys revoke acme',
    'keys restore acme',
    'keys edit acme --plan pro',
    'keys edit acme --plan free --from 2100-01-01',
    'keys edit acme --plan enterprise --per-minute 5 --from 2100-02-01T10:00:00Z',
    'keys edit acme --withdraw 2100-01-01',
    'keys edit acme --withdraw',
    'keys edit acme --name Acme --address 10.0.0.1 --expires 2100-01-01',
  ]) {
    const { exitCode, stdout, stderr } = await run(command, writer.token);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 0,
      stderr: expect.not.stringContaining('record of changes'),
    });
    secrets.push(stdout.trim());
  }
  const told = await toldChanges();
  const by = 'ada';
  expect(new Set(told.map(({ ranBy }) => ranBy))).toEqual(
    new Set([`${userInfo().username} on ${hostname()}`]),
  );
  const start = expect.stringMatching(/^[0-9a-f]{8}$/);
  expect(told).toMatchObject([
    { by, action: 'create', key: 'new', after: { plan: 'free', name: 'New', secret: start } },
    { by, action: 'rotate', key: 'acme', after: { secret: start, expiresAt: '2027-01-31T00:00:00.000Z' } },
    { by, action: 'secret', key: 'acme', after: { secret: start } },
    { by, action: 'revoke', key: 'acme', before: { disabled: false }, after: { disabled: true } },
    { by, action: 'restore', key: 'acme', before: { disabled: true }, after: { disabled: false } },
    {
      text: 'ada changed acme: plan free → pro (60 → 300 a minute, 1,000 → 10,000 a day).',
      before: { plan: 'free' },
      after: { plan: 'pro' },
    },
    { text: 'ada changed acme: plan free from 2100-01-01.', before: {} },
    { text: 'ada changed acme: plan enterprise from 2100-02-01 10:00 UTC.' },
    { text: 'ada changed acme: later plan withdrawn.' },
    { text: 'ada changed acme: later plan withdrawn.', after: {} },
    {
      text: 'ada changed acme: name, addresses, expiresAt.',
      after: { name: 'Acme', addresses: ['10.0.0.1'], expiresAt: '2100-01-01T00:00:00.000Z' },
    },
  ]);
  // The gateway stops loading when the files change, and starts again. The last loaded settings therefore contain every
  // edit.
  const shownKey = async () => (await run('keys show new', reader.token)).stdout;
  await expect.poll(shownKey).toMatch(/^written in +gateway\.yaml:\d+$/m);
  const { stdout: table } = await run('changes', reader.token);
  expect(table).toMatch(/ ada +ada revoked acme\. \(run by \S+ on \S+ · disabled false → true\)$/m);
  expect(table).toMatch(
    / ada +ada created the key new \(free\)\. \(run by \S+ on \S+ · plan free · name New · secret [0-9a-f]{8}\)$/m,
  );
  // A gateway may load several of the edits together.
  const seen = `owner ${userInfo().username}, changed \\d\\d:\\d\\d:\\d\\d UTC`;
  expect(table).toMatch(new RegExp(` gateway\\.yaml +(?:.*; k|K)ey new added\\. \\(${seen}.*\\)$`, 'm'));
  expect(await shownKey()).toMatch(
    /^secret +[0-9a-f]{8}… \(of its SHA-256\), issued 20\d\d-\d\d-\d\d, never expires$/m,
  );
  for (const secret of secrets.slice(0, 3)) expect(JSON.stringify(told)).not.toContain(secret);
});

test('a change without a reachable gateway is made, and the command states that it is not in the record', async () => {
  const before = await toldChanges();
  const outcomes = [
    await run('keys revoke acme', reader.token),
    await run('keys restore acme', writer.token, 'http://127.0.0.1:1'),
    await run('keys revoke acme', undefined),
  ];
  expect(outcomes.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  expect(outcomes.map(({ stderr }) => stderr)).toEqual([
    expect.stringMatching(
      /^The change was made, but it is not in the record of changes: .* may only read\. .* --may write" makes a token that may change keys/,
    ),
    expect.stringMatching(
      /^The change was made, but it is not in the record of changes: No server answers at http:\/\/127\.0\.0\.1:1 /,
    ),
    '',
  ]);
  expect((await run('keys restore acme', undefined)).stdout).toContain('acme is restored');
  expect(await toldChanges()).toEqual(before);
});
