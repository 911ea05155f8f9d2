import { expect, it } from 'vitest';
import { measureIsolatedMaster } from '../../faults/isolated-master.ts';

it('a master that is cut off from its Sentinels lets only the requests that it counted alone exceed the limit', async () => {
  const { limit, admitted, lost, left, local, used } = await measureIsolatedMaster(3_000);
  expect(used).toBe(limit);
  // The last call to the old Redis master may not have run, and the limiter does not repeat this call. The call may report requests that
  // the limiter admitted without Redis.
  expect(admitted).toBeGreaterThanOrEqual(limit + lost);
  expect(admitted).toBeLessThanOrEqual(limit + lost + Math.max(left, local));
  // The isolated master counted requests until the limiters received the announcement.
  expect(lost).toBeGreaterThan(0);
});
