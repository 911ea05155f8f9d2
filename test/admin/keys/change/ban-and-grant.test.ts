import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeKey } from '../../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { lastChange, reader, startGateways } from './change-fixture.ts';

const key = makeKey({ plan: 'free', id: 'acme' });
const hourMs = 3_600_000;
const at = (aheadMs: number) => new Date(Date.now() + aheadMs).toISOString();

describe.each(['redis', 'memory'] as const)('in %s', (store) => {
  it('a grant admits a refused key on every process within a second and shows its limits, and the plan’s limits return when it is removed', async () => {
    const { gateways } = await startGateways(store === 'redis' ? 2 : 1, {
      overrides: { keys: [key.entry] },
      store,
    });
    const [one, other = one] = gateways;
    if (!one || !other) throw new Error('a gateway was started');
    for (let request = 0; request < 5; request++) expect(await one.call(key.secret)).toBe(200);
    expect([await one.call(key.secret), await other.call(key.secret)]).toEqual([429, 429]);

    const untilAt = at(hourMs);
    const granted = await other.ask('POST', '/keys/acme/grant', { limits: { perMinute: 8 }, untilAt });
    const grant = { limits: { perMinute: 8 }, untilMs: Date.parse(untilAt) };
    expect([granted.status, granted.body]).toEqual([200, { id: 'acme', strikes: expect.any(Number), grant }]);
    expect(await other.call(key.secret)).toBe(200);
    await expect.poll(() => one.call(key.secret)).toBe(200);
    const { body } = await one.ask('GET', '/keys/acme');
    expect(body.windows[0]).toMatchObject({ name: 'minute', limit: 8 });
    expect(await lastChange(other)).toMatchObject({
      action: 'grant',
      by: 'alice',
      key: 'acme',
      before: {},
      after: { limits: { perMinute: 8 }, untilAt },
    });
    const { body: listed } = await other.ask('GET', '/events');
    expect(listed.events.map(({ text }: { text: string }) => text)).toContainEqual(
      expect.stringMatching(/^alice granted acme 8 a minute until \d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)? UTC/),
    );

    const ended = await one.ask('DELETE', '/keys/acme/grant');
    expect([ended.status, ended.body.grant]).toEqual([200, undefined]);
    await expect.poll(() => other.call(key.secret)).toBe(429);
    expect(await lastChange(one)).toMatchObject({
      action: 'ungrant',
      before: { limits: { perMinute: 8 }, untilAt },
    });
  });

  it('shows refusals as strikes only while they count towards a ban', async () => {
    const bans = { after: 50, within: '3s', for: '10m', max: '20m' };
    const { gateways } = await startGateways(1, { overrides: { keys: [key.entry], bans }, store });
    const [one] = gateways;
    if (!one) throw new Error('a gateway was started');
    for (let request = 0; request < 5; request++) expect(await one.call(key.secret)).toBe(200);
    expect([await one.call(key.secret), await one.call(key.secret)]).toEqual([429, 429]);
    const strikes = async () => (await one.ask('GET', '/keys/acme')).body.strikes;
    await expect.poll(strikes).toBeGreaterThan(0);
    await expect.poll(strikes, { timeout: 10_000 }).toBe(0);
    const granted = await one.ask('POST', '/keys/acme/grant', {
      limits: { perMinute: 8 },
      untilAt: at(hourMs),
    });
    expect([granted.status, granted.body.strikes]).toEqual([200, 0]);
  });

  it('a ban by hand refuses the key on every process until its end or until it is lifted, and does not make later bans longer', async () => {
    const bans = { after: 3, within: '1m', for: '10m', max: '20m' };
    const overrides = { keys: [key.entry], bans };
    const { gateways, logged } = await startGateways(store === 'redis' ? 2 : 1, { overrides, store });
    const [one, other = one] = gateways;
    if (!one || !other) throw new Error('a gateway was started');
    const refusedWith = async () => {
      const headers = { authorization: `Bearer ${key.secret}` };
      const response = await fetch(`http://127.0.0.1:${other.publicPort}/v1/pets`, { headers });
      return [response.status, await response.json()];
    };
    expect(await other.call(key.secret)).toBe(200);

    // Longer than `bans.max`.
    const untilAt = at(48 * hourMs);
    const untilMs = Date.parse(untilAt);
    const banned = await one.ask('POST', '/keys/acme/ban', { untilAt, reason: 'asked by mail' });
    const ban = { untilMs, level: 0, byHand: true, reason: 'asked by mail' };
    expect([banned.status, banned.body]).toEqual([200, { id: 'acme', strikes: 0, ban }]);
    const [status, refusal] = await refusedWith();
    expect([status, refusal.code, refusal.message]).toEqual([
      429,
      'key_banned',
      expect.stringMatching(/^The API key is banned until \S+ by the operator\. Retry in \d+ s\.$/),
    ]);
    for (const { ask } of gateways) {
      const { body } = await ask('GET', '/keys/acme');
      expect(body).toMatchObject({ state: 'banned', ban });
      expect(body.why.sentence).toMatch(/is banned by an operator until .*: asked by mail\./);
    }
    expect(await lastChange(one)).toMatchObject({
      ...{ action: 'ban', by: 'alice', key: 'acme', before: {} },
      after: { untilAt, reason: 'asked by mail' },
    });
    await expect
      .poll(async () =>
        (await other.ask('GET', '/events')).body.events.map((event: { text: string }) => event.text),
      )
      .toContainEqual(
        expect.stringMatching(/^acme \(free\) is banned by an operator, until .*: asked by mail\.$/),
      );
    expect(logged).toContainEqual(
      expect.objectContaining({ msg: 'a key is banned', byHand: true, reason: 'asked by mail' }),
    );
    const shorter = await one.ask('POST', '/keys/acme/ban', { untilAt: at(hourMs) });
    expect([shorter.status, shorter.body.code]).toEqual([409, 'conflict']);

    for (const { reload } of gateways) await reload({ bans: { ...bans, showReason: true } });
    // The process that repeats a decision on a banned key repeats its message for a moment.
    await expect
      .poll(async () => (await refusedWith())[1].message)
      .toMatch(/is banned until \S+ by the operator: asked by mail\./);

    const lifted = await other.ask('POST', '/keys/acme/unban');
    expect([lifted.status, lifted.body.ban, lifted.body.wasBanned]).toEqual([200, undefined, true]);
    await expect.poll(() => one.call(key.secret)).toBe(200);
    await expect
      .poll(async () => (await one.call(key.secret)) === 429 && (await one.ask('GET', '/keys/acme')).body.ban)
      .toMatchObject({ level: 1 });
    const { body } = await one.ask('GET', '/keys/acme');
    expect(body.ban).toEqual({ untilMs: expect.any(Number), level: 1 });
    expect(body.ban.untilMs).toBeLessThan(untilMs);
  });

  it.each([
    [{}, 'untilAt'],
    [{ untilAt: '2020-01-01' }, 'future'],
    [{ untilAt: '2099-01-01' }, '400 days'],
    [{ untilAt: at(hourMs), reason: 'two\nlines' }, 'reason'],
    [{ untilAt: at(hourMs), reason: '' }, 'reason'],
  ])('the ban %j by hand is refused, and the message names %s', async (body, named) => {
    const { gateways } = await startGateways(1, { overrides: { keys: [key.entry] }, store });
    const reply = await gateways[0]?.ask('POST', '/keys/acme/ban', body);
    expect([reply?.status, reply?.body.message]).toEqual([400, expect.stringContaining(named)]);
  });

  it('a lifted ban is lifted on every process, even on one with unreported refusals', async () => {
    const overrides = { keys: [key.entry], bans: { after: 20, for: '10m' } };
    const { gateways, logged } = await startGateways(store === 'redis' ? 2 : 1, { overrides, store });
    const [one, other = one] = gateways;
    if (!one || !other) throw new Error('a gateway was started');
    const isBanned = async () => (await one.ask('GET', '/keys/acme')).body.ban !== undefined;
    while (!(await isBanned())) await Promise.all(Array.from({ length: 10 }, () => one.call(key.secret)));
    // When the ban is lifted, the gateway has not yet reported the 15 refusals to Redis.
    for (let request = 0; request < 15; request++) await other.call(key.secret);
    const lifted = await one.ask('POST', '/keys/acme/unban');
    expect([lifted.status, lifted.body]).toEqual([200, { id: 'acme', wasBanned: true, strikes: 0 }]);
    await one.ask('POST', '/keys/acme/grant', { limits: { perMinute: 1_000 }, untilAt: at(hourMs) });
    for (const gateway of [one, other]) {
      await expect.poll(() => gateway.call(key.secret)).toBe(200);
    }
    // After 1.2 s, every gateway has reported its refusals to Redis.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect([await one.call(key.secret), await other.call(key.secret), await isBanned()]).toEqual([
      200,
      200,
      false,
    ]);
    const changes = (await one.ask('GET', '/changes')).body.changes;
    const unban = changes.find(({ action }: { action: string }) => action === 'unban');
    expect(unban).toMatchObject({ by: 'alice', key: 'acme', before: { bannedUntilAt: expect.any(String) } });
    expect(logged).toContainEqual(
      expect.objectContaining({ msg: 'a key was changed', action: 'unban', keyId: 'acme', by: 'alice' }),
    );
  });
});

it('a grant for a group admits a refused request of the group, and every text of the grant names the group', async () => {
  const groups = { reports: { operations: ['listPets'], perDay: 2 } };
  const reporter = makeKey({ plan: 'free', id: 'acme', groups });
  const { gateways } = await startGateways(2, { overrides: { keys: [reporter.entry] } });
  const [one, other] = gateways;
  if (!one || !other) throw new Error('gateways were started');
  for (const status of [200, 200, 429]) expect(await one.call(reporter.secret)).toBe(status);
  const limits = { groups: { reports: { perDay: 3 } } };
  const untilAt = at(hourMs);
  const granted = await other.ask('POST', '/keys/acme/grant', { limits, untilAt });
  const untilMs = Date.parse(untilAt);
  expect([granted.status, granted.body.grant]).toEqual([200, { limits, untilMs }]);
  await expect.poll(() => one.call(reporter.secret)).toBe(200);
  await expect.poll(() => other.call(reporter.secret)).toBe(429);
  const { body } = await one.ask('GET', '/keys/acme');
  expect(body.grant).toEqual({ limits, untilMs });
  expect(body.windows).toMatchObject([
    { name: 'minute', limit: 5, used: 3 },
    { name: 'day', limit: 100, used: 3 },
    { name: 'reports-day', limit: 3, used: 3, remaining: 0 },
  ]);
  expect(await lastChange(one)).toMatchObject({ action: 'grant', after: { limits, untilAt } });
  const { body: listed } = await one.ask('GET', '/events');
  expect(listed.events.map(({ text }: { text: string }) => text)).toContainEqual(
    expect.stringMatching(
      /^alice granted acme 3 a day for the group reports until \d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)? UTC/,
    ),
  );
  const { body: steps } = await one.ask('GET', '/keys/acme/limits');
  expect(steps.limits.at(-1).limits.groups.reports).toEqual({ operations: ['listPets'], perDay: 3 });
});

it.each([
  [{ groups: {} }, '`limits.groups` must be a mapping of at least one group to limits.'],
  [{ groups: { reports: {} } }, '`limits.groups.reports` must be a mapping with at least one of perSecond'],
  [{ groups: { reports: { perDay: 5, operations: ['listPets'] } } }, '`limits.groups.reports.operations`'],
  [{ groups: { 'a b': { perDay: 5 } } }, '`limits.groups.a b` must be a name of 1 to 40 of the characters'],
  [{ groups: { nope: { perDay: 5 } } }, '`limits.groups.nope` names a group that acme (free) does not have.'],
])('a grant of %j is refused with the member', async (limits, message) => {
  const { gateways } = await startGateways(1, { overrides: { keys: [key.entry] }, store: 'memory' });
  const reply = await gateways[0]?.ask('POST', '/keys/acme/grant', { limits, untilAt: at(hourMs) });
  expect([reply?.status, reply?.body.message]).toEqual([400, expect.stringContaining(message)]);
});

it('the response to a change shows its result even if Redis stops replying afterwards', async () => {
  const url = new URL(redisUrl());
  const [port, hostname] = [Number(url.port), url.hostname];
  let isLast = false;
  const relay = createServer((client) => {
    const redis = connect(port, hostname);
    let isSent = false;
    let isSilent = false;
    client.on('data', (bytes) => {
      if (isSilent) return;
      isSent ||= isLast && bytes.includes('\r\ngrant\r\n');
      redis.write(bytes);
    });
    redis.on('data', (bytes) => {
      isSilent = isSent;
      client.write(bytes);
    });
    for (const [one, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      one.on('close', () => other.destroy()).on('error', () => {});
    }
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  onTestFinished(() => void relay.close());
  url.host = `127.0.0.1:${(relay.address() as AddressInfo).port}`;
  const redis = { url: url.href, prefix: freshPrefix() };
  const { gateways } = await startGateways(1, { overrides: { keys: [key.entry] }, redis });
  for (const perMinute of [8, 9]) {
    isLast = perMinute === 9;
    const reply = await gateways[0]?.ask('POST', '/keys/acme/grant', {
      limits: { perMinute },
      untilAt: at(hourMs),
    });
    expect([reply?.status, reply?.body.grant?.limits]).toEqual([200, { perMinute }]);
  }
});

it('a grant that begins later is announced, changes nothing before its beginning, and does not replace a present grant', async () => {
  const { gateways } = await startGateways(1, { overrides: { keys: [key.entry] }, store: 'memory' });
  const [one] = gateways;
  if (!one) throw new Error('a gateway was started');
  const grant = (body: object) => one.ask('POST', '/keys/acme/grant', body);
  const [fromAt, untilAt] = [at(hourMs), at(2 * hourMs)];
  const later = { limits: { perMinute: 8 }, fromAt, untilAt };
  const held = { limits: { perMinute: 8 }, fromMs: Date.parse(fromAt), untilMs: Date.parse(untilAt) };
  expect((await grant(later)).body.grant).toEqual(held);
  const { body: shown } = await one.ask('GET', '/keys/acme');
  expect([shown.grant, shown.windows[0].limit]).toEqual([held, 5]);
  expect(shown.why.sentence).toMatch(
    /^acme \(free\) will have a grant from .* until .*: 8 a minute in place of 5\./,
  );
  expect((await lastChange(one)).after).toEqual(later);
  const { body: listed } = await one.ask('GET', '/events');
  expect(listed.events[0].text).toMatch(/^alice granted acme 8 a minute from \d{4}-.* until \d{4}-/);
  const refused = await grant({ limits: { perMinute: 9 }, untilAt });
  expect([refused.status, refused.body.message]).toEqual([
    409,
    `acme has a grant from ${fromAt} until ${untilAt}, which the new grant would replace now: end the present grant first.`,
  ]);

  await one.ask('DELETE', '/keys/acme/grant');
  expect((await grant({ limits: { perMinute: 9 }, fromAt: at(-hourMs), untilAt })).body.grant).toEqual({
    limits: { perMinute: 9 },
    untilMs: Date.parse(untilAt),
  });
  expect((await grant(later)).body.message).toMatch(
    /^acme has a grant until .* end the present grant first\.$/,
  );
  expect((await one.ask('GET', '/keys/acme')).body.windows[0].limit).toBe(9);
});

it('an invalid grant is refused, and the message names the member', async () => {
  const { gateways } = await startGateways(1, { overrides: { keys: [key.entry] }, store: 'memory' });
  const [one] = gateways;
  const untilAt = at(hourMs);
  const cases: [unknown, string][] = [
    [
      { limits: {}, untilAt },
      'The member `limits` must be a mapping with at least one of perSecond, perMinute, perHour, perDay, perMonth, or groups.',
    ],
    [
      { limits: { perDay: 0 }, untilAt },
      'The member `limits.perDay` must be a whole number from 1 to 999999999999999.',
    ],
    [
      { limits: { perDay: 1.5 }, untilAt },
      'The member `limits.perDay` must be a whole number from 1 to 999999999999999.',
    ],
    [{ limits: { perday: 5 }, untilAt }, 'The member `limits.perday` is unknown; did you mean `perDay`?'],
    [
      { limits: { perHour: 5 }, untilAt },
      'The member `limits.perHour` names a window in which acme (free) has no limit. The limits of acme are perMinute, perDay.',
    ],
    [
      { limits: { perDay: 5 } },
      'The member `untilAt` is missing; write a date such as 2027-01-31 or 2027-01-31T12:00:00Z.',
    ],
    [
      { limits: { perDay: 5 }, untilAt: 'tomorrow' },
      'The member `untilAt` must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z.',
    ],
    [{ limits: { perDay: 5 }, untilAt: at(-1_000) }, 'The member `untilAt` must be in the future.'],
    [
      { limits: { perDay: 5 }, fromAt: untilAt, untilAt },
      'The member `fromAt` must be earlier than `untilAt`.',
    ],
    [
      { limits: { perDay: 5 }, fromAt: 'tomorrow', untilAt },
      'The member `fromAt` must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z.',
    ],
    [
      { limits: { perDay: 5 }, untilAt: at(401 * 24 * hourMs) },
      'The member `untilAt` must be at most 400 days ahead.',
    ],
  ];
  for (const [body, message] of cases) {
    const reply = await one?.ask('POST', '/keys/acme/grant', body);
    expect(reply?.body).toEqual({ code: 'invalid_request', status: 400, message });
  }
  expect((await one?.ask('GET', '/changes'))?.body.changes).toEqual([]);
});

it('a ban or a grant can be changed only with a write token', async () => {
  const { gateways } = await startGateways(1);
  for (const [method, path] of [
    ['POST', '/keys/acme/unban'],
    ['POST', '/keys/acme/grant'],
    ['DELETE', '/keys/acme/grant'],
  ] as const) {
    const reply = await gateways[0]?.ask(method, path, undefined, { token: reader.token });
    expect([reply?.status, reply?.body.code]).toEqual([403, 'read_only_token']);
  }
});
