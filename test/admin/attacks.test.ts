import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { digestSecret } from '../../gateway/shared/secrets.ts';
import { allRoutes } from '../support/all-routes.ts';
import { makeKey } from '../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { startTcpRelay } from '../support/tcp-relay.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { bob, reader, startGateways } from './keys/change/change-fixture.ts';

const key = makeKey({ id: 'in-yaml' });
const bounds = tunedBounds({});
const writing = (await allRoutes(bounds)).filter(
  ({ method, needs }) => needs === 'write' && method !== 'GET',
);

describe('a client that may not change keys', () => {
  it.each(writing.map(({ method, path }) => [method, path] as const))(
    'cannot make a change with %s %s: without a token, with a wrong token, a read token, a foreign Host or a foreign Origin',
    async (method, path) => {
      const { gateways, logged } = await startGateways(1, { keys: [key.entry] });
      const [one] = gateways;
      if (!one) throw new Error('a gateway was started');
      await one.ask('POST', '/keys', { id: 'acme', plan: 'enterprise', limits: { perDay: 5 } });
      const before = (await one.ask('GET', '/changes')).text;
      const directory = (await one.ask('GET', '/directory')).text;
      logged.length = 0;

      const url = path
        .replace('{id}', 'acme')
        .replace('{name}', 'free')
        .replace('{digest}', JSON.parse(directory).keys[0].secrets[0].sha256);
      const bodies: Record<string, unknown> = {
        'POST /keys': { id: 'evil', plan: 'free' },
        'PATCH /keys/{id}': { disabled: true },
        'POST /keys/{id}/ban': { untilAt: new Date(Date.now() + 60_000).toISOString() },
        'POST /keys/{id}/grant': {
          limits: { perDay: 999 },
          untilAt: new Date(Date.now() + 60_000).toISOString(),
        },
        'POST /directory': { keys: [{ id: 'evil', plan: 'free', secrets: [] }] },
        'POST /changes': { action: 'delete', key: 'acme' },
        'POST /leaks': [{ token: key.secret }],
        'POST /keys/{id}/links': { for: '1h' },
      };
      const body = bodies[`${method} ${path}`];
      const replies = [
        await one.ask(method, url, body, { token: '' }),
        await one.ask(method, url, body, { token: 'tga_wrong' }),
        await one.ask(method, url, body, { token: reader.token }),
        await one.ask(method, url, body, { headers: { host: 'evil.example' } }),
        await one.ask(method, url, body, { headers: { origin: 'https://evil.example' } }),
      ];
      expect(replies.map(({ status }) => status)).toEqual([401, 401, 403, 421, 403]);
      expect((await one.ask('GET', '/changes')).text).toBe(before);
      expect((await one.ask('GET', '/directory')).text).toBe(directory);
      expect(logged.filter(({ msg }) => msg === 'a key was changed')).toEqual([]);
      // The same request with a write token makes a change. The gateway has no event that it could send again, no reverted plan, and no
      // page to which a link could lead.
      const { status } = await one.ask(method, url, body);
      const refusals: Record<string, number> = {
        'POST /deliveries/{id}/send': 404,
        'POST /plans/{name}/retry': 409,
        'POST /keys/{id}/links': 409,
        'DELETE /keys/{id}/links/{digest}': 404,
      };
      const refusal = refusals[`${method} ${path}`];
      if (refusal !== undefined) expect(status).toBe(refusal);
      else expect(status).toBeLessThan(300);
    },
  );
});

for (const { keys, aMinute, ...options } of [
  { keys: 300, aMinute: 60, tags: [] },
  { keys: 2_000, aMinute: 600, tags: ['full'] },
])
  it(
    `a token that creates ${keys} keys in a loop gets ${aMinute} a minute, and other tokens, reading and the requests of keys are unaffected`,
    options,
    async () => {
      const { gateways } = await startGateways(1, {
        keys: [key.entry],
        overrides: { plans: { free: { perMinute: 1_000_000 } } },
        bounds: { adminChangesPerMinuteMax: aMinute },
      });
      const [one] = gateways;
      if (!one) throw new Error('a gateway was started');
      const beganMs = Date.now();
      const statuses = new Map<number, number>();
      const others = new Set<number>();
      let next = 0;
      const create = async () => {
        while (next < keys) {
          const number = next++;
          const { status, headers } = await one.ask('POST', '/keys', { id: `k${number}`, plan: 'free' });
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          if (status === 429 && !(Number(headers['retry-after']) > 0)) throw new Error('no Retry-After');
          if (number % 100 !== 0) continue;
          others.add(await one.call(key.secret));
          others.add((await one.ask('GET', '/changes', undefined, { token: reader.token })).status);
          others.add((await one.ask('PATCH', '/keys/in-yaml', {}, { token: bob.token })).status);
        }
      };
      await Promise.all(Array.from({ length: 20 }, create));
      const minutes = 1 + Math.floor((Date.now() - beganMs) / 60_000);
      const created = statuses.get(201) ?? 0;
      expect(created).toBeGreaterThanOrEqual(aMinute);
      expect(created).toBeLessThanOrEqual(aMinute * minutes);
      expect([...statuses.keys()].sort()).toEqual([201, 429]);
      expect(statuses.get(429)).toBe(keys - created);
      expect([...others].sort()).toEqual([200, 409]);
      let listed = 0;
      let after = '';
      do {
        const { body } = await one.ask('GET', `/directory${after}`);
        listed += body.keys.length;
        after = body.next === undefined ? '' : `?after=${body.next}`;
      } while (after !== '');
      expect(listed).toBe(created);
    },
  );

it('while replies from Redis are lost, a request repeated with its Idempotency-Key makes at most one key, and a response states when it may have', async () => {
  const relay = await startTcpRelay(Number(new URL(redisUrl()).port));
  onTestFinished(() => relay.stop());
  const redis = { url: `redis://127.0.0.1:${relay.port}`, prefix: freshPrefix() };
  const { gateways, logged } = await startGateways(1, { redis, bounds: { storePatientDeadlineMs: 150 } });
  // A second gateway, with a direct connection to Redis, reads what each request stored.
  const direct = await startGateways(1, { redis: { ...redis, url: redisUrl() } });
  const [[one], [other]] = [gateways, direct.gateways];
  if (!one || !other) throw new Error('two were started');
  const headers = { 'idempotency-key': 'once' };
  const body = { id: 'acme', plan: 'free' };
  const statuses: number[] = [];
  const messages: string[] = [];
  let secret: string | undefined;
  for (let round = 0; statuses.at(-1) !== 200 && round < 100; round++) {
    const isLost = round < 8;
    relay.delay({ toServerMs: 0, toClientMs: isLost ? 80 + 10 * round : 0 });
    const reply = await one.ask('POST', '/keys', body, { headers });
    statuses.push(reply.status);
    if (reply.status === 503) messages.push(reply.body.message);
    secret = reply.body.secret ?? secret;
    await sleep(50);
  }
  expect(statuses.filter((status) => ![200, 201, 503].includes(status))).toEqual([]);
  expect(statuses.filter((status) => status === 201).length).toBeLessThanOrEqual(1);
  expect(statuses.at(-1)).toBe(200);
  expect(messages.length).toBeGreaterThan(0);
  for (const message of messages)
    expect(message).toMatch(
      /^Redis (failed \(.*\)|has been away since .* UTC \(.*\))\. (The change may have been made|Nothing was changed)/,
    );
  const { keys } = (await other.ask('GET', '/directory')).body;
  expect(keys.map(({ id }: { id: string }) => id)).toEqual(['acme']);
  const another = (await other.ask('POST', '/keys/acme/secrets')).body.secret;
  for (const held of [another, ...(secret === undefined ? [] : [secret])])
    expect(await other.call(held)).toBe(200);
  // Neither the log nor the record of changes contains any part of an issued secret.
  const told = JSON.stringify([
    logged,
    direct.logged,
    (await other.ask('GET', '/changes')).text,
    (await other.ask('GET', '/events')).text,
  ]);
  expect(told).not.toContain(another.slice(3, 11));
  expect(told).not.toContain(digestSecret(another));
});
