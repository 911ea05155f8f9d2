import { expect, it } from 'vitest';
import { measureExactness } from '../faults/exactness.ts';

// The full-size test starts a process for each gateway. Here the gateways share a process, but no state.
it('three gateways with clocks 90 s apart admit exactly the limits of minute and day, and no two requests get the same remaining', async () => {
  const found = await measureExactness({
    requests: 2_000,
    clients: 24,
    // The 24 clients send 24 requests in the first window. The limits admit 100 requests in the next window. The sum, 124, exceeds the day
    // limit.
    limits: { perMinute: 100, perDay: 110 },
    // The minute window lasts one second, because the test identifies windows by `X-RateLimit-Reset`, which is in seconds. The day does not
    // end during the test.
    windowsMs: { minute: 1_000, day: 86_400_000_000 },
    startBeforeEndMs: 300,
    isHere: true,
  });
  expect(found).toMatchObject({ responses: 2_000, failures: [], over: 0, under: 0, sameRemaining: 0 });
  expect(found).toMatchObject({ admitted: 110, longestUsed: 110 });
  expect(found.windows.length).toBeGreaterThan(1);
});

it('three processes are equally exact with other windows, and with three windows', {
  tags: 'full',
}, async () => {
  const found = await measureExactness({
    requests: 6_000,
    clients: 24,
    limits: { perSecond: 300, perHour: 1_000_000, perMonth: 310 },
    windowsMs: { second: 1_000, hour: 86_400_000_000, month: 90_000_000_000 },
    startBeforeEndMs: 300,
  });
  expect(found).toMatchObject({ responses: 6_000, failures: [], over: 0, under: 0, sameRemaining: 0 });
  expect(found).toMatchObject({ admitted: 310, longestUsed: 310 });
  expect(found.windows.length).toBeGreaterThan(1);
});
