import { expect, it } from 'vitest';
import { measureIsolatedMaster } from '../../faults/isolated-master.ts';

it('when the master is cut off from its Sentinels, no more is admitted beyond the limit than it counted alone', async () => {
  const { limit, admitted, lost, left, used } = await measureIsolatedMaster(3_000);
  expect(used).toBe(limit);
  // The last call to the old master may not have run, and the limiter does not repeat it.
  expect(admitted).toBeGreaterThanOrEqual(limit + lost);
  expect(admitted).toBeLessThanOrEqual(limit + lost + left);
  // The isolated master went on counting until the limiters received the news.
  expect(lost).toBeGreaterThan(0);
});
