import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { digestSecret } from '../../../../gateway/shared/secrets.ts';
import { defaultBounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';
import { makeKey } from '../../../support/gateway-process.ts';
import { inspect } from '../../../support/inspect.ts';
import { type ChangedGateway, lastChange, reader, startGateways } from './change-fixture.ts';

const written = makeKey({ id: 'in-yaml', disabled: true });
const at = (aheadMs: number) => new Date(Date.now() + aheadMs).toISOString();
const moved = (id: string, more: object = {}) => ({
  id,
  plan: 'pro',
  secrets: [{ sha256: digestSecret(`secret of ${id}`) }],
  ...more,
});

async function exported(gateway: ChangedGateway, limit: number) {
  const keys: { id: string }[] = [];
  let after = '';
  do {
    const { status, body } = await gateway.ask('GET', `/directory?limit=${limit}${after}`);
    expect(status).toBe(200);
    keys.push(...body.keys);
    after = body.next === undefined ? '' : `&after=${encodeURIComponent(body.next)}`;
  } while (after !== '');
  return keys;
}

it('whoami finds the owner of a secret: in the configuration with its line, in the directory, expired, revoked, or unknown', async () => {
  const { gateways } = await startGateways(2, { keys: [written.entry] });
  const [one, other] = gateways;
  const lasting = (await one?.ask('POST', '/keys', { id: 'acme', plan: 'free', expiresAt: at(3_600_000) }))
    ?.body;
  const brief = (await one?.ask('POST', '/keys', { id: 'brief', plan: 'free' }))?.body;
  // The first secret expires immediately.
  const rotated = (await one?.ask('POST', '/keys/brief/secrets', { overlap: '0s' }))?.body;
  const { secret } = lasting ?? {};
  const whose = async (of: string) =>
    (await other?.ask('POST', '/whoami', { sha256: digestSecret(of) }, { token: reader.token }))?.body;
  const view = ({ id, secrets }: { id: string; secrets: [{ expiresAt: string }] }) => {
    return { known: true, id, plan: 'free', source: 'directory', expiresAt: secrets[0].expiresAt };
  };
  expect(await whose(secret)).toEqual({ ...view(lasting), isExpired: false, isDisabled: false });
  expect(await whose(brief.secret)).toMatchObject({ isExpired: true, isDisabled: false });
  await one?.ask('PATCH', '/keys/brief', { disabled: true });
  expect(await whose(brief.secret)).toEqual({ ...view(rotated), isExpired: true, isDisabled: true });
  expect(await whose(written.secret)).toEqual({
    known: true,
    id: 'in-yaml',
    plan: 'free',
    source: 'file',
    file: expect.stringMatching(/\.yaml$/),
    line: 1,
    isExpired: false,
    isDisabled: true,
  });
  expect(await whose('nobody')).toEqual({ known: false });
  for (const body of [{}, { sha256: 'abc' }, { secret }]) {
    const reply = await one?.ask('POST', '/whoami', body);
    expect([reply?.status, reply?.text.includes(secret)]).toEqual([400, false]);
  }
});

it('whoami explains a secret of the directory that the configuration excludes: the id has another key, or the plan no longer exists', async () => {
  const { gateways, redis } = await startGateways(1);
  const issued = async (id: string) => (await gateways[0]?.ask('POST', '/keys', { id, plan: 'pro' }))?.body;
  const [namesake, planless] = [await issued('namesake'), await issued('planless')];
  const overrides = { plans: { free: { perMinute: 5 } } };
  const keys = [makeKey({ id: 'namesake', plan: 'free' }).entry];
  const { gateways: others } = await startGateways(1, { redis, overrides, keys });
  for (const [{ id, secret }, refusedFor] of [
    [namesake, 'id_in_configuration'],
    [planless, 'no_plan'],
  ]) {
    const reply = await others[0]?.ask('POST', '/whoami', { sha256: digestSecret(secret) });
    expect(reply?.body).toEqual({
      ...{ known: true, id, plan: 'pro', source: 'directory' },
      ...{ isExpired: false, isDisabled: false, refusedFor },
    });
    expect(await others[0]?.call(secret)).toBe(401);
  }
});

it('an export moves a whole directory to another one, with secrets, expiries and plans, and a repeated import changes nothing', async () => {
  const { gateways } = await startGateways(1);
  const { gateways: others } = await startGateways(2);
  const [from, [to, beside]] = [gateways[0], others];
  if (!from || !to || !beside) throw new Error('three gateways were started');
  const secrets = new Map<string, string>();
  for (let index = 0; index < 25; index++) {
    const more =
      index % 5 === 0
        ? { plan: 'enterprise', limits: { perDay: 1 + index }, expiresAt: at(3_600_000) }
        : { plan: 'pro' };
    const { body } = await from.ask('POST', '/keys', { id: `key-${index}`, name: `Key "${index}"`, ...more });
    secrets.set(body.id, body.secret);
  }
  await from.ask('PATCH', '/keys/key-3', { disabled: true });
  const keys = await exported(from, 7);
  expect(keys.map(({ id }) => id)).toEqual([...secrets.keys()].sort());

  const imported = await to.ask('POST', '/directory', { keys });
  expect([imported.status, imported.body]).toEqual([200, { created: 25, unchanged: 0, refused: [] }]);
  expect(await exported(beside, 500)).toEqual(keys);
  await expect
    .poll(() => lastChange(beside))
    .toMatchObject({
      action: 'import',
      by: 'alice',
      after: { created: 25, unchanged: 0, refused: 0 },
    });
  for (const [id, secret] of secrets)
    expect([id, await beside.call(secret)]).toEqual([id, id === 'key-3' ? 401 : 200]);
  const again = await beside.ask('POST', '/directory', { keys });
  expect(again.body).toEqual({ created: 0, unchanged: 25, refused: [] });
});

it('an import of a digest makes its secret valid on every process immediately, whatever its checksum', async () => {
  const { gateways } = await startGateways(2);
  const issued = (await gateways[0]?.ask('POST', '/keys', { id: 'issued', plan: 'pro' }))?.body;
  const wrong = (last: string) => `${issued.secret.slice(0, -2)}-${last}`;
  // After these requests, the processes refuse invented secrets without a look-up.
  for (let round = 0; round < 4; round++) {
    for (const gateway of gateways) expect(await gateway.call(wrong(`${round}`))).toBe(401);
    await sleep(defaultBounds.directoryMarkReadMs);
  }
  const secrets = [{ sha256: digestSecret(wrong('b')) }];
  const reply = await gateways[0]?.ask('POST', '/directory', { keys: [moved('imported', { secrets })] });
  expect(reply?.body).toEqual({ created: 1, unchanged: 0, refused: [] });
  for (const gateway of gateways) {
    expect(await gateway.call(wrong('b'))).toBe(200);
    expect(await gateway.call(issued.secret)).toBe(200);
    expect(await gateway.call(wrong('c'))).toBe(401);
  }
});

it('an import refuses each key whose id or secret is taken, or that exceeds a limit, and creates all other keys', async () => {
  const { gateways, redis } = await startGateways(1, { keys: [written.entry] });
  const [one] = gateways;
  const { secret } = (await one?.ask('POST', '/keys', { id: 'acme', plan: 'free' }))?.body ?? {};
  const keys = [
    moved('new'),
    moved('acme'),
    moved('in-yaml'),
    moved('thief', { secrets: [{ sha256: digestSecret(secret) }] }),
    moved('thief-of-yaml', { secrets: [{ sha256: digestSecret(written.secret) }] }),
    moved('twin', { secrets: moved('new').secrets }),
    moved('planless', { plan: 'gold' }),
    moved('without-limits', { plan: 'enterprise' }),
    moved('without-secrets', { secrets: [] }),
    moved('often-rotated', {
      secrets: Array.from({ length: 17 }, (_, index) => ({ sha256: digestSecret(`rotation ${index}`) })),
    }),
    moved('..'),
    moved('doubled', { secrets: [...moved('doubled').secrets, ...moved('doubled').secrets] }),
  ];
  const reply = await one?.ask('POST', '/directory', { keys });
  expect([reply?.status, reply?.body]).toEqual([
    200,
    {
      created: 2,
      unchanged: 0,
      refused: [
        { id: 'acme', reason: 'There is a key with this id already.' },
        { id: 'in-yaml', reason: 'The configuration has a key with this id.' },
        { id: 'thief', reason: 'Another key has one of its secrets.' },
        { id: 'thief-of-yaml', reason: 'Another key has one of its secrets.' },
        { id: 'twin', reason: 'Another key has one of its secrets.' },
        { id: 'planless', reason: 'The member `plan` names no plan; plans are: free, pro, enterprise.' },
        { id: 'without-limits', reason: expect.stringContaining('the plan enterprise is custom') },
        {
          id: 'often-rotated',
          reason:
            'It has 17 secrets, but a key of the key directory may have at most 16: omit the secrets that have expired.',
        },
        { id: '..', reason: 'The id of a key of the key directory must not consist of dots only.' },
        { id: 'doubled', reason: 'It has a secret twice.' },
      ],
    },
  ]);
  expect(await one?.call(secret)).toBe(200);

  // A failover of a Cluster server can lose its last writes. The test deletes an entry of the index to imitate the loss
  // of a write.
  const client = inspect(redis.url);
  expect(await client.del(`${redis.prefix}:digest:${digestSecret('secret of new')}`)).toBe(1);
  expect((await one?.ask('POST', '/directory', { keys: [moved('new')] }))?.body.unchanged).toBe(1);
  expect(await one?.call('secret of new')).toBe(200);
  client.disconnect();
});

it('an import that is too long or has an invalid key is refused as a whole, and the message names the member', async () => {
  const { gateways } = await startGateways(1);
  const [one] = gateways;
  const cases: [unknown, number, string][] = [
    [
      { keys: Array.from({ length: 501 }, (_, index) => moved(`k${index}`)) },
      400,
      'The member `keys` must be a list of at most 500 keys.',
    ],
    [
      { keys: [moved('a'), moved('__proto__')] },
      400,
      'The member `keys[1].id` must not be `__proto__`, which JavaScript keeps for itself; write another name.',
    ],
    [
      { keys: [moved('a'), moved('b c')] },
      400,
      'The member `keys[1].id` must be 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -.',
    ],
    [
      { keys: [moved('a', { name: '\u001b[1m' })] },
      400,
      'The member `keys[0].name` must be up to 200 printable characters.',
    ],
    [
      { keys: [moved('a', { secrets: [{ sha256: 'ab' }] })] },
      400,
      'The member `keys[0].secrets[0].sha256` must be the SHA-256 digest of the whole secret, 64 hex digits.',
    ],
    [{ keys: ['x'.repeat(3_000_000)] }, 413, 'The request body is too large.'],
  ];
  for (const [body, status, message] of cases) {
    const reply = await one?.ask('POST', '/directory', body);
    expect([reply?.status, reply?.body.message]).toEqual([status, message]);
  }
  expect((await one?.ask('GET', '/directory'))?.body).toEqual({ keys: [] });
  for (const method of ['GET', 'POST']) {
    const reply = await one?.ask(method, '/directory', undefined, { token: reader.token });
    expect([reply?.status, reply?.body.code]).toEqual([403, 'read_only_token']);
  }
});
