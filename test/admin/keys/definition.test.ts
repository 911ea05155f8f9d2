import { expect, it } from 'vitest';
import { digestOf } from '../../support/config-folder.ts';
import { startGateways } from './change/change-fixture.ts';

const groups = { reports: { operations: ['listPets'], perMinute: 3 } };
const secrets = [
  { sha256: digestOf('a'), created: '2026-01-31', expires: '2036-01-31' },
  { sha256: digestOf('b') },
];
const stated = { addresses: ['192.0.2.0/24'], disabled: true, groups, name: 'Acme Ltd', plan: 'free' };

it('a key of a file shows its definition, and beside it the effective values of its plan, its grant and its state', async () => {
  const keys = [{ id: 'acme', ...stated, secrets }];
  const { gateways } = await startGateways(1, { keys });
  const [gateway] = gateways;
  const definition = {
    id: 'acme',
    ...stated,
    secrets: [
      {
        digestStart: digestOf('a').slice(0, 8),
        createdAt: '2026-01-31T00:00:00.000Z',
        expiresAt: '2036-01-31T00:00:00.000Z',
      },
      { digestStart: digestOf('b').slice(0, 8) },
    ],
  };
  const before = await gateway?.ask('GET', '/keys/acme');
  expect(before?.body).toMatchObject({ state: 'disabled', definition });

  await gateway?.reload({
    plans: {
      free: { perMinute: 7, perDay: 70, concurrent: 2, operations: ['listPets'] },
      enterprise: 'custom',
    },
  });
  const untilAt = new Date(Date.now() + 300_000).toISOString();
  await gateway?.ask('POST', '/keys/acme/grant', { limits: { perMinute: 40 }, untilAt });
  const { body } = (await gateway?.ask('GET', '/keys/acme')) ?? {};
  expect(body.definition).toEqual(definition);
  expect(body).toMatchObject({ state: 'disabled', concurrent: 2, operations: ['listPets'] });
  expect(body.grant).toMatchObject({ limits: { perMinute: 40 } });
  expect(body.windows.map(({ name, limit }: Window) => [name, limit])).toEqual([
    ['minute', 40],
    ['day', 70],
    ['reports-minute', 3],
  ]);
});

interface Window {
  readonly name: string;
  readonly limit: number;
}

it('a key of the directory shows its definition in the spelling of the request that stated it', async () => {
  const [gateway] = (await startGateways(1)).gateways;
  const { disabled: _, ...issued } = stated;
  const own = { ...issued, plan: 'enterprise', limits: { perMinute: 9, perMonth: 1_000 } };
  await gateway?.ask('POST', '/keys', { id: 'acme', ...own, expiresAt: '2036-01-31' });
  const { body } = (await gateway?.ask('GET', '/keys/acme')) ?? {};
  const [secret] = body.secrets;
  expect(body.definition).toEqual({
    id: 'acme',
    ...own,
    disabled: false,
    secrets: [
      {
        digestStart: secret.digestStart,
        createdAt: secret.createdAt,
        expiresAt: '2036-01-31T00:00:00.000Z',
      },
    ],
  });
});
