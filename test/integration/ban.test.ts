/**
 * In `npm test`: `test/request/limit/limiter.test.ts` for bans and their ends, and `test/request/limit/operator-verbs.test.ts` for bans on
 * three processes.
 */
import { expect, it } from 'vitest';
import { measureBan } from '../faults/ban.ts';

it('all processes refuse a banned key until the announced second and admit it from then on', {
  tags: 'full',
}, async () => {
  const found = await measureBan({ banSeconds: 8 });
  expect(found.admittedDuring).toBe(0);
  expect(Object.keys(found.during)).toEqual(['key_banned']);
  expect(found.lastBeforeEnd).toBe(429);
  expect(found.atTheTime).toEqual([200, 200]);
  expect(found.liftedAfterMs).toBeGreaterThanOrEqual(0);
  expect(found.nextSeconds).toBeGreaterThan(found.retryAfterSeconds);
});
