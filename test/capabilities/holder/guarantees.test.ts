import { expect, it } from 'vitest';
import { startGateways } from '../../admin/keys/change/change-fixture.ts';
import {
  addressOverrides,
  foreignAddressesChargeNoKey,
  plansChangeOnTheClockOfRedis,
  sendFrom,
} from '../../integration/gateway-guarantees.ts';

const settings = { limitsPath: '/limits' };

it('the holder reads an announced change of the plan until its date on the clock of Redis, from every process', () =>
  plansChangeOnTheClockOfRedis({
    settings,
    showsPastChanges: false,
    async read({ baseUrl }, { secret }) {
      const { origin } = new URL(baseUrl);
      const response = await fetch(`${origin}/limits`, { headers: { authorization: `Bearer ${secret}` } });
      return (await response.json()) as { windows: object[]; upcoming?: { from: string; limits: object }[] };
    },
  }));

it('a read of the limits from an address that its key does not allow is charged to the bucket of that address and never to the key', () =>
  foreignAddressesChargeNoKey(settings, ['/limits', '/limits/usage']));

it('every process refuses reads of the limits from addresses that a directory key no longer allows', async () => {
  const { gateways } = await startGateways(2, {
    overrides: { ...addressOverrides, ...settings, addressBucket: { perMinute: 1_000 } },
  });
  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('no gateway was started');
  const [owner, thief] = ['203.0.113.7', '198.51.100.7'];
  const json = { id: 'office', plan: 'pro', addresses: [thief] };
  const { secret } = (await first.ask('POST', '/keys', json)).body;
  const answerTo = async (from: string) => (await sendFrom(second, secret, from, '/limits')).answer;
  expect((await answerTo(thief))[0]).toBe(200);
  expect((await first.ask('PATCH', '/keys/office', { addresses: [owner] })).status).toBe(200);
  expect((await sendFrom(second, secret, thief)).answer[0]).toBe(403);
  expect(await answerTo(thief)).toEqual([403, 'address_not_allowed']);
  expect((await answerTo(owner))[0]).toBe(200);
});
