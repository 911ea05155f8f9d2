import { expect, it } from 'vitest';
import { type ChangedGateway, startGateways } from '../admin/keys/change/change-fixture.ts';
import { makeKey } from '../support/gateway-process.ts';

const owner = '203.0.113.7';
const thief = '198.51.100.7';
const addressPerMinute = 4;

const overrides = {
  trustedProxies: ['127.0.0.1'],
  addressBucket: { perMinute: addressPerMinute },
  limitsPath: '/limits',
  bans: { after: 1, within: '60s', for: '60s', max: '60s' },
};

/** Sends a request as a client behind a trusted proxy. */
async function send({ publicPort }: ChangedGateway, secret: string, from: string, path = '/v1/pets') {
  const headers = { authorization: `Bearer ${secret}`, 'x-forwarded-for': from };
  const response = await fetch(`http://127.0.0.1:${publicPort}${path}`, { headers });
  const { code, message } = (await response.json()) as { code?: string; message?: string };
  const figure = (name: string) => response.headers.get(`x-ratelimit-${name}`);
  return {
    answer: [response.status, code],
    message,
    figures: [figure('limit'), figure('remaining')],
    retryAfter: response.headers.get('retry-after'),
    policy: response.headers.get('ratelimit-policy'),
  };
}

it('a request from an address that its key does not allow is charged to the bucket of that address and never to the key', async () => {
  const key = makeKey({ id: 'office', addresses: ['203.0.113.0/24', '2001:db8::/32'] });
  const { gateways } = await startGateways(1, { keys: [key.entry], overrides });
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('no gateway was started');

  const paths = ['/v1/pets', '/limits', '/v1/nothing', '/v1/pets'];
  for (const [index, path] of paths.entries()) {
    expect(await send(gateway, key.secret, thief, path)).toMatchObject({
      answer: [403, 'address_not_allowed'],
      message: `The API key may not be used from the address ${thief}.`,
      figures: [String(addressPerMinute), String(addressPerMinute - 1 - index)],
      policy: expect.stringContaining('"address"'),
    });
  }
  for (const path of ['/v1/pets', '/limits']) {
    const { answer, retryAfter } = await send(gateway, key.secret, thief, path);
    expect([answer, Number(retryAfter) > 0]).toEqual([[429, 'rate_limited'], true]);
  }

  const shown = (await gateway.ask('GET', '/keys/office')).body;
  expect(shown).toMatchObject({ state: 'unused', strikes: 0, offered24h: 0 });
  expect(shown).not.toHaveProperty('lastSeenMs');
  expect(shown.secrets[0]).not.toHaveProperty('lastUsedAt');
  expect(shown.why.last24h.refusedNetworks).toEqual([
    { network: '198.51.100.0/24', requests: 6, lastAt: expect.any(String) },
  ]);
  expect(shown.why.sentence).toContain('6 from 198.51.100.0/24');

  // The owner still has the whole quota, and the key has neither a strike nor a ban.
  for (const from of [owner, '2001:db8::7', '::ffff:203.0.113.8', owner, owner]) {
    expect((await send(gateway, key.secret, from)).answer).toEqual([200, undefined]);
  }
  expect((await send(gateway, key.secret, owner)).answer[0]).toBe(429);
});

it('every process follows a change of the addresses of a directory key', async () => {
  const { gateways } = await startGateways(2, {
    overrides: { ...overrides, addressBucket: { perMinute: 1_000 } },
  });
  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('no gateway was started');
  const { secret } = (await first.ask('POST', '/keys', { id: 'office', plan: 'pro', addresses: [thief] }))
    .body;
  const statuses = async (from: string) => [
    (await send(first, secret, from)).answer[0],
    (await send(second, secret, from)).answer[0],
  ];
  expect(await statuses(thief)).toEqual([200, 200]);
  expect(await statuses(owner)).toEqual([403, 403]);

  expect((await first.ask('PATCH', '/keys/office', { addresses: [owner] })).status).toBe(200);
  expect(await statuses(thief)).toEqual([403, 403]);
  expect((await send(second, secret, thief, '/limits')).answer).toEqual([403, 'address_not_allowed']);
  expect(await statuses(owner)).toEqual([200, 200]);

  // The second process last refused the thief's address, and reads the key again within a second.
  expect((await first.ask('PATCH', '/keys/office', { addresses: [owner, thief] })).status).toBe(200);
  await expect.poll(() => statuses(thief), { timeout: 60_000 }).toEqual([200, 200]);
});
