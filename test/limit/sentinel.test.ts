import { expect, it } from 'vitest';
import { measureIsolatedMaster } from '../faults/isolated-master.ts';

it('when the master is cut off from its Sentinels, no more is admitted beyond the limit than it counted alone', async () => {
  const { limit, admitted, lost, used } = await measureIsolatedMaster(3_000);
  expect(used).toBe(limit);
  // Of each limiter the call that was open when it left the old master may not have run: it is not sent again.
  expect(admitted).toBeGreaterThanOrEqual(limit + lost);
  expect(admitted).toBeLessThanOrEqual(limit + lost + 2);
  // It went on counting while nobody had told the limiters.
  expect(lost).toBeGreaterThan(0);
});
