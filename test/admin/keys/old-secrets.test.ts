import { expect, it } from 'vitest';
import type { OldSecretsShown } from '../../../gateway/admin/wires/keys/old-secrets.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { reader, startGateways } from './change/change-fixture.ts';

type OldSecret = OldSecretsShown['secrets'][number];

it('without an old secret in use, the list says of which time it is, and where secrets are that have ended', async () => {
  const { gateways } = await startGateways(1);
  const env = {
    TOLLGATE_ADMIN: `http://127.0.0.1:${gateways[0]?.adminPort}`,
    TOLLGATE_ADMIN_TOKEN: reader.token,
  };
  const { at } = (await gateways[0]?.ask('GET', '/old-secrets'))?.body ?? {};
  // The list is cached, so it has the time of the first response.
  const { stdout } = await runTollgate(['keys', 'list', '--not-moved'], env);
  expect(stdout.replace(/\s+/g, ' ')).toContain(
    `newest one of its key (as of ${String(at).slice(11, 19)} UTC). "tollgate keys list --dead" lists`,
  );
});

it('lists the owners that still use an old secret after a rotation, the nearest end first', async () => {
  const { gateways } = await startGateways(2, { bounds: { oldSecretsKeptMs: 0 } });
  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('no gateway was started');
  const issue = async (id: string) =>
    (await first.ask('POST', '/keys', { id, plan: 'free' })).body.secret as string;
  const rotate = async (id: string, overlap?: string) =>
    (await first.ask('POST', `/keys/${id}/secrets`, { overlap })).body.secret as string;
  const ids = ['late', 'soon', 'moved', 'ended', 'quiet', 'endless'] as const;
  const old = Object.fromEntries(await Promise.all(ids.map(async (id) => [id, await issue(id)] as const)));
  // These requests come before the rotation, so they do not count.
  for (const id of ids) expect(await first.call(old[id] ?? '')).toBe(200);
  await new Promise((resolve) => setTimeout(resolve, 5));
  const fresh = {
    late: await rotate('late', '14d'),
    soon: await rotate('soon', '1h'),
    moved: await rotate('moved', '14d'),
    ended: await rotate('ended', '0s'),
    quiet: await rotate('quiet', '14d'),
    endless: await rotate('endless'),
  };
  await new Promise((resolve) => setTimeout(resolve, 5));
  for (const id of ['late', 'soon', 'endless'] as const) expect(await second.call(old[id] ?? '')).toBe(200);
  expect(await second.call(fresh.moved)).toBe(200);
  expect(await second.call(fresh.soon)).toBe(200);
  expect(await second.call(old.ended ?? '')).toBe(401);

  const env = { TOLLGATE_ADMIN: `http://127.0.0.1:${second.adminPort}`, TOLLGATE_ADMIN_TOKEN: reader.token };
  const list = (...options: string[]) => runTollgate(['keys', 'list', '--not-moved', ...options], env);
  const { exitCode, stdout, stderr } = await list('--json');
  expect([exitCode, stderr]).toEqual([0, '']);
  const { secrets } = JSON.parse(stdout);
  expect(secrets.map(({ key, newest }: OldSecret) => [key, newest.lastAt !== undefined])).toEqual([
    ['soon', true],
    ['late', false],
    ['endless', false],
  ]);
  expect(secrets[2].endsAt).toBeUndefined();
  const table = (await list()).stdout;
  expect(table.replace(/\s+/g, ' ')).toMatch(
    /^3 old secrets are still in use, although a newer one was issued \(as of \d\d:\d\d:\d\d UTC\)\. .* "tollgate keys list --dead" lists secrets that have ended/,
  );
  expect(table).toMatch(/^endless +[0-9a-f]{8}… .* never +never/m);
  expect((await list('--csv')).stdout).toMatch(
    /^key,name,plan,secret,last,ends,issued,newest_last\nsoon,,free,/,
  );
  expect((await list('--dead')).exitCode).toBe(1);

  await first.ask('PATCH', '/keys/late', { disabled: true });
  expect((await second.ask('GET', '/old-secrets')).body.secrets.map(({ key }: OldSecret) => key)).toEqual([
    'soon',
    'endless',
  ]);
});
