import { expect, it } from 'vitest';
import { startGateways } from '../admin/keys/change/change-fixture.ts';
import { addressOverrides, foreignAddressesChargeNoKey, sendFrom } from './gateway-guarantees.ts';

const owner = '203.0.113.7';
const thief = '198.51.100.7';

it('a request from an address that its key does not allow is charged to the bucket of that address and never to the key', () =>
  foreignAddressesChargeNoKey());

it('every process follows a change of the addresses of a directory key', async () => {
  const { gateways } = await startGateways(2, {
    overrides: { ...addressOverrides, addressBucket: { perMinute: 1_000 } },
  });
  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('no gateway was started');
  const { secret } = (await first.ask('POST', '/keys', { id: 'office', plan: 'pro', addresses: [thief] }))
    .body;
  const statuses = async (from: string) => [
    (await sendFrom(first, secret, from)).answer[0],
    (await sendFrom(second, secret, from)).answer[0],
  ];
  expect(await statuses(thief)).toEqual([200, 200]);
  expect(await statuses(owner)).toEqual([403, 403]);

  expect((await first.ask('PATCH', '/keys/office', { addresses: [owner] })).status).toBe(200);
  expect(await statuses(thief)).toEqual([403, 403]);
  expect(await statuses(owner)).toEqual([200, 200]);

  // The second process has cached the key's old list of addresses. The process reads the key again within a second.
  expect((await first.ask('PATCH', '/keys/office', { addresses: [owner, thief] })).status).toBe(200);
  await expect.poll(() => statuses(thief), { timeout: 60_000 }).toEqual([200, 200]);
});
