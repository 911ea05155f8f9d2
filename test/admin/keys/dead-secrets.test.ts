import { expect, it } from 'vitest';
import { makeKey } from '../../support/gateway-process.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { reader, startGateways } from './change/change-fixture.ts';

/** `GET /dead-secrets` and `keys list --dead`, with real requests with secrets that are not valid. */

it('names why each used secret of the key directory is not valid, and omits secrets that are valid again', async () => {
  const { gateways } = await startGateways(2);
  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('no gateway was started');
  const issue = async (id: string) =>
    (await first.ask('POST', '/keys', { id, plan: 'free' })).body.secret as string;
  const revoked = await issue('revoked');
  const restored = await issue('restored');
  const rotated = await issue('rotated');
  const removed = await issue('removed');
  const unused = await issue('unused');
  for (const id of ['revoked', 'restored', 'unused'])
    expect((await first.ask('PATCH', `/keys/${id}`, { disabled: true })).status).toBe(200);
  expect((await first.ask('POST', '/keys/rotated/secrets', { overlap: '0s' })).status).toBe(201);
  expect((await first.ask('PATCH', '/keys/removed', { disabled: true })).status).toBe(200);
  for (const gateway of [first, second])
    for (const secret of [revoked, revoked, restored, rotated, removed])
      expect(await gateway.call(secret)).toBe(401);
  expect(await first.call('nobody')).toBe(401);
  expect((await first.ask('PATCH', '/keys/restored', { disabled: false })).status).toBe(200);
  expect((await first.ask('DELETE', '/keys/removed')).status).toBe(200);
  expect(unused).toBeTruthy();

  const env = { TOLLGATE_ADMIN: `http://127.0.0.1:${second.adminPort}`, TOLLGATE_ADMIN_TOKEN: reader.token };
  const { exitCode, stdout, stderr } = await runTollgate(['keys', 'list', '--dead', '--json'], env);
  expect([exitCode, stderr]).toEqual([0, '']);
  const { secrets, unknown, others } = JSON.parse(stdout);
  const shown = secrets.map(({ key, state, requests, addresses }: Record<string, unknown>) => {
    return [key, state, requests, addresses];
  });
  expect(shown[0]).toEqual(['revoked', 'revoked', 4, 1]);
  expect(shown.slice(1).sort()).toEqual([
    ['removed', 'removed', 2, 1],
    ['rotated', 'expired', 2, 1],
  ]);
  expect([unknown, others]).toEqual([expect.objectContaining({ requests: 1, addresses: 1 }), undefined]);

  const table = (await runTollgate(['keys', 'list', '--dead'], env)).stdout;
  expect(table).toMatch(/^3 secrets of keys are refused but still in use\./);
  expect(table).toMatch(/^revoked +[0-9a-f]{8}… +revoked +4 +1 /m);
  expect(table).toMatch(/^unknown secrets +1 +1 /m);
  const csv = (await runTollgate(['keys', 'list', '--dead', '--csv'], env)).stdout;
  expect(csv).toMatch(/^key,name,plan,secret,state,requests,addresses,first,last\nrevoked,,free,/);
  const refused = await runTollgate(['keys', 'list', '--dead', '--plan', 'free'], env);
  expect([refused.exitCode, refused.stderr]).toEqual([
    1,
    '--dead lists all secrets that are not valid but in use. It has no --state, --plan, --q, --older-than, --sort or --all.\n',
  ]);
});

it('names expired secrets and disabled keys of the configuration, and nothing while no dead secret is used', async () => {
  const off = makeKey({ id: 'off', name: 'Ada', disabled: true });
  const old = makeKey({ id: 'old' });
  const expired = { ...old.entry, secrets: [{ ...old.entry.secrets[0], expires: '2026-01-31' }] };
  const { gateways } = await startGateways(1, { keys: [off.entry, expired] });
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('no gateway was started');
  expect((await gateway.ask('GET', '/dead-secrets')).body).toEqual({ secrets: [] });
  const env = { TOLLGATE_ADMIN: `http://127.0.0.1:${gateway.adminPort}`, TOLLGATE_ADMIN_TOKEN: reader.token };
  expect((await runTollgate(['keys', 'list', '--dead'], env)).stdout).toBe(
    'No secret that is not valid was used in the last 24 hours.\n',
  );
  for (const { secret } of [off, off, old]) expect(await gateway.call(secret)).toBe(401);
  expect((await gateway.ask('GET', '/dead-secrets')).body.secrets).toMatchObject([
    { key: 'off', name: 'Ada', plan: 'free', state: 'disabled', requests: 2, addresses: 1 },
    { key: 'old', state: 'expired', requests: 1, digestStart: old.entry.secrets[0]?.sha256.slice(0, 8) },
  ]);
});
