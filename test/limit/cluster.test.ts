import { expect, it } from 'vitest';
import { measureClusterFailover, measureLostReply, measureMigration } from '../faults/cluster.ts';

it('while the slot of a key is moved from server to server, exactly its limit is admitted, all by Redis', async () => {
  const found = await measureMigration({ limit: 3_000, requests: 9_000 });
  expect(found).toMatchObject({ requests: 9_000, admitted: 3_000, used: 3_000, local: 0 });
  expect(found.moves).toBeGreaterThan(3);
});

it('a master that dies between a script and its reply charges nothing twice', async () => {
  const { sent, counted, countedByDefault } = await measureLostReply();
  expect(counted).toBe(sent);
  // The test can fail: a client that sends again what was in flight is counted twice.
  expect(countedByDefault).toBe(2);
});

it('after the failover of one server limits are exact again, and the other servers never went away', async () => {
  const { admitted, used, logged, limit } = await measureClusterFailover(40);
  expect(admitted).toEqual({ before: 20, away: 10, after: 10 });
  expect(used).toBe(limit);
  for (const messages of logged) {
    expect(messages).toEqual([
      expect.stringMatching(/^Redis server 127\.0\.0\.1:\d+ is away$/),
      expect.stringMatching(/^Redis server 127\.0\.0\.1:\d+ is back$/),
    ]);
  }
});
