import { expect, it } from 'vitest';
import { measureGrant, measurePlanEdit } from '../faults/plan-edit.ts';
import { startFleetHere } from '../support/fleet.ts';

it('a limit edited under load is exact on three gateways: used requests stay counted, and no request is dropped', async () => {
  const found = await measurePlanEdit({ first: 200, raised: 500, lowered: 100, start: startFleetHere });
  expect(found.admitted).toEqual({ first: 200, raised: 500, lowered: 500 });
  expect(found.answered200).toBe(500);
  expect(found.failures).toEqual([]);
  expect(found.statuses.toSorted()).toEqual([200, 429]);
});

it('a grant under load is exact on three processes: used requests stay counted at its beginning and end, and it ends by itself', {
  tags: 'full',
}, async () => {
  const found = await measureGrant({ plan: 200, granted: 500, again: 700 });
  expect(found.admitted).toEqual([200, 500, 500, 700, 700]);
  expect(found.answered200).toBe(700);
  expect(found.failures).toEqual([]);
  expect(found.statuses.toSorted()).toEqual([200, 429]);
});
