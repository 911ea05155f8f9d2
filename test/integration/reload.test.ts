import { expect, it } from 'vitest';
import { measurePlanEdit } from '../faults/plan-edit.ts';

it('a limit edited under load is exact on three processes: used requests stay counted, and no request is dropped', async () => {
  const found = await measurePlanEdit({ first: 200, raised: 500, lowered: 100 });
  expect(found.admitted).toEqual({ first: 200, raised: 500, lowered: 500 });
  expect(found.answered200).toBe(500);
  expect(found.failures).toEqual([]);
  expect(found.statuses.toSorted()).toEqual([200, 429]);
});
