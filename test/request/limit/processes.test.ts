/** In `npm test`: `test/integration/exactness.test.ts` shows the same with whole gateways and fewer requests. */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { freshWindows } from '../../support/fresh-windows.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';

/** Runs `flooding-process.ts`. @returns the number of requests for each decision */
async function flood(options: object): Promise<Record<string, number>> {
  const child = fork(new URL('flooding-process.ts', import.meta.url), [JSON.stringify(options)]);
  const [counts] = await once(child, 'message');
  await once(child, 'exit');
  return counts as Record<string, number>;
}

it('three processes with clocks minutes apart together admit exactly the limit', {
  tags: 'full',
}, async () => {
  // The windows have just begun, so the previous windows have not ended on the clock that is behind.
  const windowsMs = freshWindows(Date.now());
  const prefix = freshPrefix();
  const shared = {
    url: redisUrl(),
    prefix,
    keyId: 'burst',
    requests: 4_000,
    perMinute: 5_000,
    windowsMs,
  };
  const counts = await Promise.all([-90_000, 0, 90_000].map((skewMs) => flood({ ...shared, skewMs })));
  expect(counts.reduce((sum, { admitted = 0 }) => sum + admitted, 0)).toBe(5_000);
  expect(counts.reduce((sum, { admitted = 0, refused = 0 }) => sum + admitted + refused, 0)).toBe(12_000);
  const client = new Redis(shared.url);
  const hash = await client.hgetall(`${prefix}:{burst}`);
  expect([hash.minuteUsed, hash.dayUsed]).toEqual(['5000', '5000']);
  await client.del(`${prefix}:{burst}`);
  client.disconnect();
});
