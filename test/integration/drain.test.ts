import { expect, it } from 'vitest';
import { measureDrain, measureRollingRestart } from '../faults/drain.ts';

it('SIGTERM under load drops no request: clients are told to close, idle sockets are closed, and the process exits with 0', async () => {
  const found = await measureDrain({ requests: 1_000 });
  expect(found.failures).toEqual([]);
  expect(Object.keys(found.statuses)).toEqual(['200']);
  expect(found.toldToClose).toBeGreaterThan(0);
  expect(found).toMatchObject({ idleSocketClosed: true, exitCode: 0 });
});

it('a rolling restart of three processes behind a balancer that follows /readyz fails no request', async () => {
  const found = await measureRollingRestart();
  expect(found.failures).toEqual([]);
  expect(Object.keys(found.statuses)).toEqual(['200']);
  expect(found.exitCodes).toEqual([0, 0, 0]);
});
