import { expect, it } from 'vitest';
import { measureIsolatedMaster } from '../../faults/isolated-master.ts';

it('when the master is cut off from its Sentinels, no more is admitted beyond the limit than it counted alone', async () => {
  const { limit, admitted, lost, left, used } = await measureIsolatedMaster(3_000);
  expect(used).toBe(limit);
  // The call that was open when a limiter left a server may not have run: it is not sent again.
  expect(admitted).toBeGreaterThanOrEqual(limit + lost);
  expect(admitted).toBeLessThanOrEqual(limit + lost + left);
  // It went on counting while nobody had told the limiters.
  expect(lost).toBeGreaterThan(0);
});
