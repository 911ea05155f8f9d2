/** In `npm test`: `test/contract/quota-store.test.ts`, which shows that the script gives every key an expiry. */
import { expect, it } from 'vitest';
import { measureKills } from '../faults/kills.ts';

it('gateways that are killed while they decide leave no Redis key without expiry', {
  tags: 'full',
}, async () => {
  const found = await measureKills({ rounds: 2 });
  expect(found.responses).toBeGreaterThan(0);
  expect(found.keys).toBeGreaterThan(20);
  expect(found.keysWithoutExpiry).toEqual([]);
});
