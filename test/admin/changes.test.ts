import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { digestSecret, issueSecret } from '../../gateway/shared/secrets.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { openRawClient } from '../support/raw-http.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const alice = makeToken('write', 'alice');
const bob = makeToken('write', 'bob');
const logged: Record<string, unknown>[] = [];

async function start(bounds: Parameters<typeof tunedBounds>[0] = {}) {
  const settings = (tokens: readonly unknown[]) =>
    settingsOf({
      upstream: { url: 'http://127.0.0.1:1' },
      keys: [makeKey({ id: 'umbrella', plan: 'free' }).entry],
      plans: { free: { perMinute: 60, perDay: 2_000 }, pro: { perMinute: 600 }, own: 'custom' },
      admin: { host: '127.0.0.1', port: 0, tokens },
    });
  const gateway = createGateway({
    settings: await settings([alice.entry, bob.entry]),
    log: {
      logger: pino({ level: 'info' }, { write: (line) => void logged.push(JSON.parse(line)) }),
      access: () => {},
    },
    bounds: tunedBounds(bounds),
  });
  const { port } = (await gateway.start()).admin;
  return { gateway, port, settings };
}

let started: Awaited<ReturnType<typeof start>>;
beforeAll(async () => {
  started = await start({ adminBodyTimeoutMs: 60_000 });
});
afterAll(() => started.gateway.drain({ graceMs: 0 }));

const report = (
  json: unknown,
  {
    token = alice.token,
    port = started.port,
    ...more
  }: { token?: string; port?: number; bytes?: string | Buffer; headers?: Record<string, string> } = {},
) => askAdmin(port, '/api/v1/changes', { method: 'POST', token, json, ...more });

const changes = async () =>
  (await askAdmin(started.port, '/api/v1/changes', { token: alice.token })).body.changes;

const revoked = { action: 'revoke', key: 'acme', before: { disabled: false }, after: { disabled: true } };

describe('a change that a command made in the configuration', () => {
  it('is in the record with the name of the token, in the list of events as a sentence, and in one log line', async () => {
    logged.length = 0;
    const { status, text } = await report(revoked, { token: bob.token });
    expect([status, text]).toEqual([204, '']);
    expect((await changes())[0]).toMatchObject({ ...revoked, by: 'bob', at: expect.any(String) });
    const { events } = (await askAdmin(started.port, '/api/v1/events', { token: alice.token })).body;
    expect(events).toContainEqual(
      expect.objectContaining({ kind: 'key_changed', key: 'acme', text: 'bob revoked acme.' }),
    );
    expect(logged.filter(({ keyId }) => keyId !== undefined)).toEqual([
      expect.objectContaining({
        level: 30,
        keyId: 'acme',
        by: 'bob',
        action: 'revoke',
        msg: 'a key was changed',
      }),
    ]);
  });

  it('has the person and the host that the command states, and the author stays the token', async () => {
    logged.length = 0;
    const headers = { 'Tollgate-Ran-By': 'bob on ops-1' };
    expect((await report(revoked, { headers })).status).toBe(204);
    expect((await changes())[0]).toMatchObject({
      by: 'alice',
      ranBy: 'bob on ops-1',
      text: 'alice revoked acme.',
    });
    expect(logged.find(({ keyId }) => keyId !== undefined)).toMatchObject({
      by: 'alice',
      ranBy: 'bob on ops-1',
    });
    await report(revoked);
    expect((await changes())[0]).not.toHaveProperty('ranBy');
  });

  it.each([
    ['an empty text', ''],
    ['101 characters', 'x'.repeat(101)],
    ['a control character', 'bob\u0085'],
    ['a character that is not ASCII', 'bób'],
    ['a tab', 'bob\ton ops-1'],
    ['a secret', issueSecret()],
    ['a digest', digestSecret('x')],
  ])('is refused if the person is %s', async (_, ranBy) => {
    const before = await changes();
    const { status, body } = await report(revoked, { headers: { 'Tollgate-Ran-By': ranBy } });
    expect([status, body.message]).toEqual([
      400,
      expect.stringMatching(/^The header field Tollgate-Ran-By must be /),
    ]);
    expect(await changes()).toEqual(before);
  });

  it.each([
    [{ action: 'create', after: { plan: 'free' } }, 'alice created the key acme (free).'],
    [{ action: 'secret', after: { secret: '1a2b3c4d' } }, 'alice issued a secret of acme.'],
    [{ action: 'secret', before: { secret: '1a2b3c4d' } }, 'alice removed a secret of acme.'],
    [{ action: 'rotate' }, 'alice rotated the secret of acme.'],
    [{ action: 'restore' }, 'alice restored acme.'],
    [
      { action: 'update', before: { plan: 'free', limits: { perDay: 5 } }, after: { plan: 'pro' } },
      'alice changed acme: plan free → pro, limits.',
    ],
    [
      { key: 'umbrella', action: 'update', before: { plan: 'free' }, after: { plan: 'pro' } },
      'alice changed umbrella: plan free → pro (60 → 600 a minute, 2,000 → no limit a day).',
    ],
    [
      {
        ...{ key: 'umbrella', action: 'update', before: { plan: 'free' } },
        after: { plan: 'own', limits: { perMinute: 90, perDay: 3_000 }, name: 'U' },
      },
      'alice changed umbrella: plan free → own (60 → 90 a minute, 2,000 → 3,000 a day), name.',
    ],
    [
      { key: 'umbrella', action: 'update', before: { plan: 'gone' }, after: { plan: 'pro' } },
      'alice changed umbrella: plan gone → pro.',
    ],
    [{ action: 'delete' }, 'alice deleted the key acme.'],
    [{ action: 'import', after: { created: 1_204 } }, 'alice imported 1,204 keys.'],
  ])('%j becomes the event: %s', async (change, text) => {
    expect((await report({ key: 'acme', ...change })).status).toBe(204);
    const { events } = (await askAdmin(started.port, '/api/v1/events', { token: alice.token })).body;
    expect(events.find(({ kind }: { kind: string }) => kind === 'key_changed').text).toBe(text);
  });

  it('is refused unless it is a change of a key in the files, and the message names the member', async () => {
    const secret = issueSecret();
    const cases: [unknown, string][] = [
      [
        {},
        'The member `action` is missing; write one of create, secret, rotate, revoke, restore, update, delete, import.',
      ],
      [
        { ...revoked, action: 'reload' },
        'The member `action` must be one of create, secret, rotate, revoke, restore, update, delete, import.',
      ],
      [
        { ...revoked, action: 'unban' },
        'The member `action` must be one of create, secret, rotate, revoke, restore, update, delete, import.',
      ],
      [{ action: 'revoke' }, 'The member `key` is missing; write the id of a key.'],
      [
        { ...revoked, key: 'a\u001b[31m' },
        'The member `key` must be 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -.',
      ],
      [{ ...revoked, by: 'root' }, 'The member `by` is unknown; known here: action, key, before, after.'],
      [{ ...revoked, [secret]: 1 }, 'A member is unknown; known here: action, key, before, after.'],
      [
        JSON.parse('{"action":"revoke","key":"acme","before":{"__proto__":1}}'),
        'The member `before.__proto__` must not be `__proto__`, which JavaScript keeps for itself; write another name.',
      ],
      [
        JSON.parse('{"action":"revoke","key":"acme","__proto__":{"x":1}}'),
        'The member `__proto__` is unknown; known here: action, key, before, after.',
      ],
      [
        { ...revoked, after: { secret } },
        'The member `after.secret` must not be a secret or a whole digest; of a digest write the first 8 digits.',
      ],
      [
        { ...revoked, after: { secrets: [digestSecret(secret)] } },
        'The member `after.secrets[0]` must not be a secret or a whole digest; of a digest write the first 8 digits.',
      ],
      [
        { ...revoked, after: { name: 'a\u009bb' } },
        'The member `after.name` must be a text without control characters.',
      ],
      [[], 'The request body must be an object with action and key.'],
      [null, 'The request body must be an object with action and key.'],
    ];
    const before = (await changes()).length;
    for (const [body, message] of cases) {
      const reply = await report(body);
      expect(reply.body).toEqual({ code: 'invalid_request', status: 400, message });
      expect(reply.text).not.toContain(secret);
    }
    expect(await changes()).toHaveLength(before);
  });
});

describe('a body', () => {
  const json = { 'content-type': 'application/json' };
  const valid = JSON.stringify(revoked);

  it.each([
    ['without a type', valid, {}, 415],
    ['as a form sends it', valid, { 'content-type': 'text/plain' }, 415],
    ['in another charset', valid, { 'content-type': 'application/json; charset=latin1' }, 415],
    ['compressed', gzipSync(valid), { ...json, 'content-encoding': 'gzip' }, 415],
    ['in UTF-8, said so', valid, { 'content-type': 'Application/JSON; charset="UTF-8"' }, 204],
    ['that is cut', valid.slice(0, -1), json, 400],
    ['that is no UTF-8', Buffer.from([0x22, 0xff, 0x22]), json, 400],
    ['of nothing but brackets', '['.repeat(60_000), json, 400],
    ['nested deeply', '['.repeat(4_000) + ']'.repeat(4_000), json, 400],
    ['whose member is nested deeply', `{"after":{"a":${'['.repeat(4_000)}${']'.repeat(4_000)}}}`, json, 400],
    ['nested more deeply than there may be members', '['.repeat(30_000) + ']'.repeat(30_000), json, 413],
    ['that is empty', '', json, 400],
    ['a little too long', ' '.repeat(65_537), json, 413],
    ['much too long', Buffer.alloc(5_000_000, ' '), json, 413],
  ])('%s gets %#', async (_what, bytes, headers, status) => {
    const reply = await report(undefined, { bytes, headers });
    expect([reply.status, reply.headers['content-type']]).toEqual([
      status,
      status === 204 ? undefined : 'application/json',
    ]);
  });

  it('that does not arrive gets 408 in time, and its connection is closed', async () => {
    const { port, gateway } = await start({ adminBodyTimeoutMs: 300 });
    onTestFinished(() => gateway.drain({ graceMs: 0 }));
    const client = await openRawClient(port);
    onTestFinished(() => client.destroy());
    client.send(
      `POST /api/v1/changes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${alice.token}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{`,
    );
    const { status, headers } = await client.response();
    expect([status, headers.get('connection')]).toEqual([408, 'close']);
    await client.closed;
  });

  it('of a request with a read token, or without a token, is not read', async () => {
    const reader = makeToken('read');
    const settings = await started.settings([alice.entry, bob.entry, reader.entry]);
    started.gateway.reload(settings);
    expect((await report('nonsense', { token: reader.token })).status).toBe(403);
    expect((await report('nonsense', { token: 'nobody' })).status).toBe(401);
    const [change] = await changes();
    expect(change).toMatchObject({
      action: 'token',
      by: 'file',
      before: {},
      after: { [reader.entry.name]: `read, ${reader.entry.sha256.slice(0, 8)}` },
    });
  });
});

it('a token above its changes per minute gets the time to wait, and another token and reading are unaffected', async () => {
  const { port, gateway } = await start({ adminChangesPerMinuteMax: 5 });
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  const statuses: number[] = [];
  for (let time = 0; time < 7; time++) statuses.push((await report(revoked, { port })).status);
  expect(statuses).toEqual([204, 204, 204, 204, 204, 429, 429]);
  const { body, headers } = await report(revoked, { port });
  expect(body).toMatchObject({
    code: 'rate_limited',
    message: expect.stringContaining('5 changes a minute'),
  });
  expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  expect((await report(revoked, { port, token: bob.token })).status).toBe(204);
  const read = await askAdmin(port, '/api/v1/changes', { token: alice.token });
  expect([read.status, read.body.changes.length]).toEqual([200, 6]);
});
