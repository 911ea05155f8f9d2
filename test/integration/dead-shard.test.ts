/** In `npm test`: `test/redis/one-of-three.test.ts`, which stops one of three Redis servers and tests the stores of the gateway. */
import { expect, it } from 'vitest';
import { measureDeadShard } from '../faults/dead-shard.ts';
import { patientGateway } from '../support/tuning.ts';

it('while one server of a Cluster is dead, Redis still decides the keys of the other servers', {
  tags: 'full',
}, async () => {
  // A killed server refuses connections, so the gateway detects the failure without a timeout.
  const bounds = patientGateway;
  const found = await measureDeadShard('killed', { holdMs: 1_000, bounds });
  expect(found.failures).toEqual([]);
  expect([Object.keys(found.lost), Object.keys(found.others)]).toEqual([['200'], ['200']]);
  expect(Object.keys(found.othersDecidedBy)).toEqual(['shared']);
  expect(found.ready.map(({ httpStatus }) => httpStatus)).toEqual([200, 200]);
  for (const { reasons } of found.ready)
    expect(reasons.join()).toContain(`Redis server ${found.name} is away`);
  expect(found.refusing).toEqual([503, 200]);
  // The process shows its own counts of the key whose server is dead.
  expect(found.listed).toEqual([
    ['ok', 2],
    ['ok', 2],
  ]);
  expect(found.admittedAway).toBe(200);
  expect(found.usedAfter).toBe(found.admittedAway);
});
