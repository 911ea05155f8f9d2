/** In `npm test`: `test/redis/one-of-three.test.ts` has one dead server of three, at the level of the store. */
import { expect, it } from 'vitest';
import { measureDeadShard } from '../faults/dead-shard.ts';
import { patientGateway } from '../support/tuning.ts';

it('with one server of a Cluster dead, keys of the others are decided by Redis all the while', {
  tags: 'full',
}, async () => {
  // A server that was killed refuses connections: nothing has to be late for it to be away.
  const bounds = patientGateway;
  const found = await measureDeadShard('killed', { holdMs: 1_000, bounds });
  expect(found.failures).toEqual([]);
  expect([Object.keys(found.lost), Object.keys(found.others)]).toEqual([['200'], ['200']]);
  expect(Object.keys(found.othersDecidedBy)).toEqual(['shared']);
  expect(found.ready.map(({ httpStatus }) => httpStatus)).toEqual([200, 200]);
  for (const { reasons } of found.ready)
    expect(reasons.join()).toContain(`Redis server ${found.name} is away`);
  expect(found.refusing).toEqual([503, 200]);
  expect(found.listed).toEqual([
    ['unknown', 0],
    ['ok', 2],
  ]);
  expect(found.admittedAway).toBe(200);
  expect(found.usedAfter).toBe(found.admittedAway);
});
