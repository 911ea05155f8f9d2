import { expect, it } from 'vitest';
import { measureDrain, measureRollingRestart } from '../faults/drain.ts';

/** If the machine pauses, a client may send its next request up to three seconds late. */
const bounds = { drainIdleGraceMs: 3_000 };

it('SIGTERM under load drops no request: clients get Connection: close, idle sockets are closed, and the exit code is 0', async () => {
  const found = await measureDrain({ requests: 300, bounds });
  expect(found.failures).toEqual([]);
  expect(Object.keys(found.statuses)).toEqual(['200']);
  expect(found.toldToClose).toBeGreaterThan(0);
  expect(found).toMatchObject({ idleSocketClosed: true, exitCode: 0 });
});

it('in a rolling restart of three processes behind a balancer that follows /readyz no request fails', {
  tags: 'full',
}, async () => {
  const found = await measureRollingRestart({ bounds });
  expect(found.failures).toEqual([]);
  expect(Object.keys(found.statuses)).toEqual(['200']);
  expect(found.exitCodes).toEqual([0, 0, 0]);
});
