import { describe, expect, it } from 'vitest';
import { issueKeyBody } from '../../../../gateway/admin/wires/keys/definitions.ts';
import { digestSecret, issueSecret } from '../../../../gateway/shared/secrets.ts';
import { makeKey } from '../../../support/gateway-process.ts';
import { type ChangedGateway, lastChange, startGateways } from './change-fixture.ts';

const written = makeKey({ id: 'in-yaml' });
const dayMs = 86_400_000;
const at = (aheadMs: number) => new Date(Date.now() + aheadMs).toISOString();

async function start(count: number, options: Parameters<typeof startGateways>[1] = {}) {
  const started = await startGateways(count, options);
  const [one, other = one] = started.gateways;
  if (!one || !other) throw new Error('a gateway was started');
  return { ...started, one, other };
}

it('a key that one process issues works at once on all processes, with its plan, and its secret is shown once', async () => {
  const { one, other } = await start(2);
  const { status, body, headers } = await one.ask('POST', '/keys', {
    id: 'acme',
    plan: 'free',
    name: 'Acme <b>Inc.</b>',
  });
  const { secret, ...definition } = body;
  expect(status).toBe(201);
  expect(definition).toEqual({
    id: 'acme',
    plan: 'free',
    name: 'Acme <b>Inc.</b>',
    disabled: false,
    source: 'directory',
    revision: 1,
    createdAt: expect.stringMatching(/Z$/),
    changedAt: expect.stringMatching(/Z$/),
    secrets: [{ digestStart: digestSecret(secret).slice(0, 8), createdAt: expect.stringMatching(/Z$/) }],
  });
  expect(headers.etag).toMatch(/^"1-\d+"$/);
  const read = await other.ask('GET', '/keys/acme');
  expect([read.headers.etag, read.body.revision, read.body.source]).toEqual([headers.etag, 1, 'directory']);
  expect(await other.call(secret)).toBe(200);
  for (let request = 0; request < 4; request++) await one.call(secret);
  expect([await one.call(secret), await other.call(secret)]).toEqual([429, 429]);
  expect(await lastChange(one)).toMatchObject({
    action: 'create',
    by: 'alice',
    key: 'acme',
    after: { plan: 'free', name: 'Acme <b>Inc.</b>', secret: digestSecret(secret).slice(0, 8) },
  });
  for (const path of ['/changes', '/events', '/settings']) {
    const { text } = await other.ask('GET', path);
    expect(text).not.toContain(secret.slice(3, 11));
    expect(text).not.toContain(digestSecret(secret));
  }
});

it('a taken id gets 409, also when the configuration has it', async () => {
  const { one, other } = await start(2, {
    keys: [written.entry],
  });
  expect((await one.ask('POST', '/keys', { id: 'acme', plan: 'free' })).status).toBe(201);
  for (const id of ['acme', 'in-yaml']) {
    const { status, body } = await other.ask('POST', '/keys', { id, plan: 'free' });
    expect([status, body.code, body.message]).toEqual([
      409,
      'conflict',
      `There is a key with the id ${id} already.`,
    ]);
  }
  const before = (await one.ask('GET', '/changes')).body.changes.length;
  for (const [method, path, json] of [
    ['PATCH', '/keys/in-yaml', { disabled: true }],
    ['DELETE', '/keys/in-yaml', undefined],
    ['POST', '/keys/in-yaml/secrets', {}],
    ['DELETE', '/keys/in-yaml/secrets/00000000', undefined],
  ] as const) {
    const { status, body } = await one.ask(method, path, json);
    expect([status, body.message]).toEqual([
      409,
      expect.stringMatching(/^The key in-yaml is defined in .*\.yaml, line 1: edit it there\.$/),
    ]);
  }
  expect((await one.ask('GET', '/changes')).body.changes.length).toBe(before);
});

it('a request repeated with its Idempotency-Key makes no second key and shows no secret', async () => {
  const { one, other } = await start(2);
  const body = { id: 'acme', plan: 'enterprise', limits: { perDay: 9 } };
  const headers = { 'idempotency-key': 'signup-17' };
  const first = await one.ask('POST', '/keys', body, { headers });
  const again = await other.ask(
    'POST',
    '/keys',
    { limits: { perDay: 9 }, plan: 'enterprise', id: 'acme' },
    { headers },
  );
  const { secret, ...definition } = first.body;
  expect([first.status, again.status, again.body]).toEqual([201, 200, definition]);
  expect(await other.call(secret)).toBe(200);
  const differing = await one.ask('POST', '/keys', { ...body, id: 'acme-2' }, { headers });
  expect([differing.status, differing.body.message]).toEqual([
    409,
    'The Idempotency-Key was used before, with another body.',
  ]);
  // An earlier request created the API key `acme`. A request with a different Idempotency-Key gets 409, also
  // when it is repeated.
  const foreign = { 'idempotency-key': 'signup-18' };
  for (let time = 0; time < 2; time++) {
    expect((await one.ask('POST', '/keys', body, { headers: foreign })).status).toBe(409);
  }
  const creations = (await one.ask('GET', '/changes')).body.changes;
  expect(creations.map(({ action }: { action: string }) => action)).toEqual(['create']);
});

it('a request repeated after its key was deleted issues no key, even if another key has had the id since', async () => {
  const { one, other } = await start(2);
  const body = { id: 'acme', plan: 'free' };
  const headers = { 'idempotency-key': 'signup-17' };
  await one.ask('POST', '/keys', body, { headers });
  await one.ask('DELETE', '/keys/acme');
  const again = () => other.ask('POST', '/keys', body, { headers });
  const refusal = [
    409,
    'The request with this Idempotency-Key has issued acme, and this key was deleted later. To issue the key again, send another Idempotency-Key.',
  ];
  const reply = await again();
  expect([reply.status, reply.body.message]).toEqual(refusal);
  expect((await one.ask('GET', '/keys/acme')).status).toBe(404);
  const next = await one.ask('POST', '/keys', body, { headers: { 'idempotency-key': 'signup-18' } });
  expect([next.status, (await again()).body.message]).toEqual([
    201,
    'There is a key with the id acme already.',
  ]);
  await one.ask('DELETE', '/keys/acme');
  const last = await again();
  expect([last.status, last.body.message]).toEqual(refusal);
});

it('deleting a key ends its grant; its counts and its ban stay for the next key with its id, and both responses name them', async () => {
  const { one, other } = await start(2, { overrides: { bans: { after: 20, for: '10m' } } });
  const { body } = await one.ask('POST', '/keys', { id: 'acme', plan: 'free' });
  const isBanned = async () => (await one.ask('GET', '/keys/acme')).body.ban !== undefined;
  while (!(await isBanned())) await Promise.all(Array.from({ length: 10 }, () => one.call(body.secret)));
  const untilAt = at(dayMs);
  await other.ask('POST', '/keys/acme/grant', { limits: { perMinute: 50 }, untilAt });

  const deleted = await other.ask('DELETE', '/keys/acme');
  const reset = expect.any(Number);
  const kept = {
    windows: [
      { name: 'minute', used: 5, resetMs: reset },
      { name: 'day', used: 5, resetMs: reset },
    ],
    ban: { untilMs: reset, level: 1 },
  };
  expect([deleted.status, deleted.body]).toEqual([200, { id: 'acme', kept }]);
  const next = await one.ask('POST', '/keys', { id: 'acme', plan: 'free' });
  expect([next.status, next.body.kept]).toEqual([201, kept]);
  const shown = (await other.ask('GET', '/keys/acme')).body;
  expect([shown.grant, shown.ban, shown.windows[0].limit]).toEqual([undefined, kept.ban, 5]);
});

it('exactly one of twenty identical simultaneous requests gets the secret', async () => {
  const { one, other } = await start(2);
  const headers = { 'idempotency-key': 'at-once' };
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? one : other).ask('POST', '/keys', { id: 'acme', plan: 'free' }, { headers }),
    ),
  );
  const [issued, ...more] = replies.filter(({ status }) => status === 201);
  expect(more).toEqual([]);
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(19);
  expect(await other.call(issued?.body.secret)).toBe(200);
});

it('a key without a directory, or an invalid key, is refused, and the message names the member', async () => {
  const { one } = await start(1);
  const many = 'x'.repeat(101);
  const valid = { id: 'acme', plan: 'free' };
  const idWanted = 'The member `id` must be 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -.';
  const nameWanted = 'The member `name` must be up to 200 printable characters.';
  const cases: [unknown, string][] = [
    [{}, 'The member `id` is missing; write 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -.'],
    ...['', many, 'a b', 'a{b}', 'ä', 'a\n', 'a\u0000', '\u001b[2J', '<script>', 'a/b', 'a%b'].map(
      (id): [unknown, string] => [{ ...valid, id }, idWanted],
    ),
    [{ ...valid, id: 7 }, `${idWanted.slice(0, -1)}; put it in quotes.`],
    [{ ...valid, id: '..' }, 'The member `id` must not consist of dots only.'],
    [{ ...valid, name: 'a\u001b]0;owned\u0007' }, nameWanted],
    [{ ...valid, name: 'a\u009b31m' }, nameWanted],
    [{ ...valid, name: 'a\r\nb' }, nameWanted],
    [{ ...valid, name: 'n'.repeat(201) }, nameWanted],
    [{ id: 'acme' }, 'The member `plan` is missing; write the name of a plan.'],
    [
      { ...valid, id: '__proto__' },
      'The member `id` must not be `__proto__`, which JavaScript keeps for itself; write another name.',
    ],
    [{ ...valid, plan: 'fre' }, 'The member `plan` names no plan; did you mean `free`?'],
    [{ ...valid, plan: '__proto__' }, 'The member `plan` names no plan; plans are: free, pro, enterprise.'],
    [
      { ...valid, limits: { perDay: 5 } },
      'The member `limits` is only for custom plans: omit it (`null` removes it), or choose a custom plan.',
    ],
    [
      { ...valid, plan: 'enterprise' },
      'The member `limits` is missing: the plan enterprise is custom; write at least one of perSecond, perMinute, perHour, perDay, perMonth.',
    ],
    [
      { ...valid, plan: 'enterprise', limits: { perDay: '5' } },
      'The member `limits.perDay` must be a whole number from 1 to 999999999999999.',
    ],
    [
      { ...valid, operations: [] },
      'The member `operations` must be a list of at least one operationId; without `operations` all may be called.',
    ],
    [
      { ...valid, operations: ['listPets', 'getPett'] },
      'The member `operations[1]` names no operation of the API document; did you mean `getPet`?',
    ],
    [
      { ...valid, groups: { reports: { operations: ['listPets', 'getPett'], perDay: 5 } } },
      'The member `groups.reports.operations[1]` names no operation of the API document; did you mean `getPet`?',
    ],
    [
      { ...valid, groups: { minute: { operations: ['listPets'], perDay: 5 } } },
      'The member `groups.minute` must not be `minute`, which has another meaning; write another name.',
    ],
    [
      { ...valid, groups: { [issueSecret()]: { operations: ['listPets'], perDay: 5 } } },
      'The member `groups` must have names of 1 to 40 of the characters a-z 0-9 -.',
    ],
    [
      { ...valid, expiresAt: '2026-02-30' },
      'The member `expiresAt` must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z.',
    ],
    [
      { ...valid, expiresAt: '9999-12-31T23:00:00-02:00' },
      'The member `expiresAt` must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z.',
    ],
    [{ ...valid, expiresAt: at(-1_000) }, 'The member `expiresAt` must be in the future.'],
    [
      { ...valid, secret: issueSecret() },
      `The member \`secret\` is unknown; known here: ${Object.keys(issueKeyBody.shape).join(', ')}.`,
    ],
  ];
  for (const [body, message] of cases) {
    const reply = await one.ask('POST', '/keys', body);
    expect(reply.body).toEqual({ code: 'invalid_request', status: 400, message });
  }
  const badKey = await one.ask('POST', '/keys', valid, { headers: { 'idempotency-key': 'a b' } });
  expect(badKey.status).toBe(400);
  expect((await one.ask('GET', '/changes')).body.changes).toEqual([]);

  const without = await start(1, { store: 'memory', overrides: { keys: [written.entry] } });
  const refused = await without.one.ask('POST', '/keys', valid);
  expect([refused.status, refused.body.message]).toEqual([
    409,
    'The gateway was started without a key directory: write `keys: { …, directory: true }` into its configuration, and restart it.',
  ]);
});

describe('a change of a key', () => {
  const tagOf = async (gateway: ChangedGateway) =>
    String((await gateway.ask('GET', '/keys/acme')).headers.etag);
  const issue = async (gateway: ChangedGateway, more: object = {}) =>
    (await gateway.ask('POST', '/keys', { id: 'acme', plan: 'free', ...more })).body.secret as string;

  it('takes effect on every process with the next request, and is recorded with the previous values', async () => {
    const { one, other } = await start(2);
    const secret = await issue(one);
    expect([await one.call(secret), await other.call(secret)]).toEqual([200, 200]);

    const revoked = await other.ask('PATCH', '/keys/acme', { disabled: true });
    expect([revoked.status, revoked.body.disabled, revoked.headers.etag]).toEqual([
      200,
      true,
      expect.stringMatching(/^"2-\d+"$/),
    ]);
    expect([await one.call(secret), await other.call(secret)]).toEqual([401, 401]);
    await expect
      .poll(() => lastChange(one))
      .toMatchObject({
        action: 'revoke',
        before: { disabled: false },
        after: { disabled: true },
      });
    await one.ask('PATCH', '/keys/acme', { disabled: false });
    await expect.poll(() => other.call(secret)).toBe(200);
    expect(await lastChange(one)).toMatchObject({
      action: 'restore',
      before: { disabled: true },
      after: { disabled: false },
    });

    const moved = await one.ask('PATCH', '/keys/acme', {
      plan: 'enterprise',
      limits: { perMinute: 7 },
      name: 'Ada',
      operations: ['listPets'],
    });
    expect(moved.body).toMatchObject({
      plan: 'enterprise',
      limits: { perMinute: 7 },
      name: 'Ada',
      operations: ['listPets'],
      revision: 4,
    });
    expect(await lastChange(one)).toMatchObject({
      action: 'update',
      before: { plan: 'free' },
      after: { plan: 'enterprise', limits: { perMinute: 7 }, name: 'Ada', operations: ['listPets'] },
      appliedLimits: { before: { perMinute: 5, perDay: 100 }, after: { perMinute: 7 } },
      text: 'alice changed acme: plan free → enterprise (5 → 7 a minute, 100 → no limit a day), name, operations.',
    });
    const groups = { reports: { operations: ['listPets'], perDay: 5 } };
    const grouped = await one.ask('PATCH', '/keys/acme', { groups });
    expect([grouped.status, grouped.body.groups]).toEqual([200, groups]);
    const unknown = { reports: { operations: ['listPet'], perDay: 5 } };
    const misspelt = await one.ask('PATCH', '/keys/acme', { groups: unknown });
    expect([misspelt.status, misspelt.body.message]).toEqual([
      400,
      'The member `groups.reports.operations[0]` names no operation of the API document; did you mean `listPets`?',
    ]);
    const ungrouped = await one.ask('PATCH', '/keys/acme', { groups: null });
    expect([ungrouped.status, ungrouped.body.groups, ungrouped.body.revision]).toEqual([200, undefined, 6]);
    const stays = await one.ask('PATCH', '/keys/acme', { limits: { perMinute: 7 } });
    expect(stays.body.revision).toBe(6);
    const bad = await one.ask('PATCH', '/keys/acme', { plan: 'pro' });
    expect([bad.status, bad.body.message]).toEqual([
      400,
      expect.stringContaining('`limits` is only for custom plans'),
    ]);
    const back = await one.ask('PATCH', '/keys/acme', {
      plan: 'pro',
      limits: null,
      name: null,
      operations: null,
    });
    expect([back.status, Object.keys(back.body)]).toEqual([
      200,
      ['id', 'plan', 'disabled', 'source', 'revision', 'createdAt', 'changedAt', 'secrets'],
    ]);

    const deleted = await other.ask('DELETE', '/keys/acme');
    // The earlier plan and the present plan of the key both have a minute limit, so the minute's count is
    // kept.
    expect([deleted.status, deleted.body]).toEqual([
      200,
      { id: 'acme', kept: { windows: [{ name: 'minute', used: 3, resetMs: expect.any(Number) }] } },
    ]);
    expect([await one.call(secret), await other.call(secret)]).toEqual([401, 401]);
    expect(await lastChange(other)).toMatchObject({
      action: 'delete',
      before: { plan: 'pro', disabled: false, secrets: [digestSecret(secret).slice(0, 8)] },
    });
    for (const [method, path] of [
      ['PATCH', '/keys/acme'],
      ['DELETE', '/keys/acme'],
      ['POST', '/keys/acme/secrets'],
      ['POST', '/keys/acme/unban'],
      ['DELETE', '/keys/%0a'],
      ['DELETE', '/keys/%7Ba%7D'],
    ] as const) {
      expect([path, (await one.ask(method, path)).status]).toEqual([path, 404]);
    }
  });

  it('is made by exactly one of two operators with If-Match, and the other gets 412; without If-Match no change is lost', async () => {
    const { one, other } = await start(2);
    await issue(one, { plan: 'enterprise', limits: { perDay: 1 } });
    const first = await tagOf(one);
    const headers = { 'if-match': first };
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        (index % 2 ? one : other).ask('PATCH', '/keys/acme', { name: `operator ${index}` }, { headers }),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(412)]);
    expect(replies.find(({ status }) => status === 412)?.body.code).toBe('precondition_failed');
    const second = await tagOf(one);
    for (const tag of [first, `W/${second}`, '2', '']) {
      expect(
        (await one.ask('DELETE', '/keys/acme', undefined, { headers: { 'if-match': tag } })).status,
      ).toBe(412);
    }
    const [renamed, limited] = await Promise.all([
      one.ask('PATCH', '/keys/acme', { name: 'both' }),
      other.ask('PATCH', '/keys/acme', { limits: { perDay: 2 } }),
    ]);
    expect([renamed.status, limited.status]).toEqual([200, 200]);
    const fourth = await tagOf(one);
    const now = await one.ask('PATCH', '/keys/acme', {}, { headers: { 'if-match': `${first}, ${fourth}` } });
    expect([now.status, now.body]).toMatchObject([200, { name: 'both', limits: { perDay: 2 }, revision: 4 }]);
  });

  it('with the If-Match of a deleted key does not affect the next key with the same id', async () => {
    const { one, other } = await start(2);
    await issue(one);
    const headers = { 'if-match': await tagOf(one) };
    expect((await other.ask('DELETE', '/keys/acme')).body).toEqual({ id: 'acme' });
    const secret = await issue(other);
    for (const method of ['PATCH', 'DELETE']) {
      const json = method === 'PATCH' ? { disabled: true } : undefined;
      expect((await one.ask(method, '/keys/acme', json, { headers })).status).toBe(412);
    }
    expect(await one.call(secret)).toBe(200);
  });

  it('that rotates issues a secret and sets the expiry of older secrets, never to a later time; with 0s they expire at once', async () => {
    const { one, other } = await start(2);
    const first = await issue(one, { plan: 'pro', expiresAt: at(dayMs) });
    const second = (await one.ask('POST', '/keys/acme/secrets')).body.secret;
    expect(await lastChange(one)).toMatchObject({
      action: 'secret',
      after: { secret: digestSecret(second).slice(0, 8) },
    });
    const rotated = await other.ask('POST', '/keys/acme/secrets', { overlap: '48h' });
    expect(rotated.status).toBe(201);
    const [a, b, c] = rotated.body.secrets;
    expect(Date.parse(a.expiresAt)).toBeLessThanOrEqual(Date.now() + dayMs);
    expect(Date.parse(b.expiresAt) / 1_000).toBeCloseTo((Date.now() + 2 * dayMs) / 1_000, -2);
    expect(c.expiresAt).toBeUndefined();
    await expect
      .poll(() => lastChange(one))
      .toMatchObject({ action: 'rotate', after: { othersEndAt: b.expiresAt } });
    for (const secret of [first, second, rotated.body.secret]) expect(await one.call(secret)).toBe(200);

    const last = (await one.ask('POST', '/keys/acme/secrets', { overlap: '0s' })).body.secret;
    const statuses = await Promise.all(
      [first, second, rotated.body.secret, last].map((secret) => other.call(secret)),
    );
    expect(statuses).toEqual([401, 401, 401, 200]);

    const removed = await one.ask(
      'DELETE',
      `/keys/acme/secrets/${digestSecret(last).slice(0, 8).toUpperCase()}`,
    );
    expect([removed.status, removed.body.secrets.length]).toEqual([200, 3]);
    expect([await one.call(last), await other.call(last)]).toEqual([401, 401]);
    expect(await lastChange(one)).toMatchObject({
      action: 'secret',
      before: { secret: digestSecret(last).slice(0, 8) },
    });
    const paths = ['1234567', 'zzzzzzzz', '00000000'];
    const wrong = await Promise.all(paths.map((path) => one.ask('DELETE', `/keys/acme/secrets/${path}`)));
    expect(wrong.map(({ status }) => status)).toEqual([400, 400, 404]);
    for (const body of [{ overlap: '1d2h' }, { overlap: 5 }, { expiresAt: at(-1) }, { secret: 'own' }]) {
      expect((await one.ask('POST', '/keys/acme/secrets', body)).status).toBe(400);
    }
  });

  it('records an end of the older secrets only if an older secret is valid', async () => {
    const { one } = await start(1);
    await one.ask('POST', '/keys', { id: 'acme', plan: 'pro' });
    const rotate = async (overlap: string) => {
      const { secret } = (await one.ask('POST', '/keys/acme/secrets', { overlap })).body;
      const digestStart = digestSecret(secret).slice(0, 8);
      return { digestStart, ofThis: { action: 'rotate', after: { secret: digestStart } } };
    };
    const remove = (digestStart: string) => one.ask('DELETE', `/keys/acme/secrets/${digestStart}`);
    await remove((await rotate('0s')).digestStart);
    const besideEnded = await rotate('48h');
    expect(await lastChange(one)).toMatchObject(besideEnded.ofThis);
    expect((await lastChange(one)).after).not.toHaveProperty('othersEndAt');

    for (const { digestStart } of (await one.ask('GET', '/keys/acme')).body.secrets)
      await remove(digestStart);
    const alone = await rotate('48h');
    expect(await lastChange(one)).toMatchObject(alone.ofThis);
    expect((await lastChange(one)).after).not.toHaveProperty('othersEndAt');
  });

  it('adds a 17th secret only if an expired secret can be removed', async () => {
    const { one } = await start(1);
    await issue(one);
    for (let secret = 1; secret < 16; secret++) await one.ask('POST', '/keys/acme/secrets');
    const full = await one.ask('POST', '/keys/acme/secrets');
    expect([full.status, full.body.message]).toEqual([
      409,
      'acme has 16 secrets that are valid: remove one first.',
    ]);
    const rotated = await one.ask('POST', '/keys/acme/secrets', { overlap: '0s' });
    expect([rotated.status, rotated.body.secrets.length]).toEqual([201, 16]);
  });
});
