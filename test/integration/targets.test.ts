import { expect, it } from 'vitest';
import { measureTargetFault, type TargetFault } from '../faults/targets.ts';

const faults: readonly [TargetFault, readonly string[]][] = [
  // The gateway does not retry a POST that it had sent to the dead target, so the client gets 502.
  ['one dies', ['201', '502']],
  ['one hangs', ['201', '504']],
  ['one flaps', ['201', '502']],
  ['all gone', ['201', '502', '503']],
];

for (const [fault, statuses] of faults)
  it(`when, of three targets under a load of POSTs, ${fault}, no POST arrives twice, every request gets a response, and later requests succeed`, {
    tags: fault === 'one dies' ? [] : ['full'],
  }, async () => {
    // A hanging target holds its requests until this timeout. A healthy target responds earlier, even on the slowest machine.
    const found = await measureTargetFault(fault, {
      totalTimeoutMs: fault === 'one hangs' ? 4_000 : 60_000,
    });
    expect(found.duplicated).toBe(0);
    expect(found.failures).toEqual([]);
    expect(statuses).toEqual(expect.arrayContaining(Object.keys(found.statuses)));
    expect(found.badRefusals).toBe(0);
    expect(found.afterwards).toEqual({ 201: 60 });
    expect(found.running).toBe(true);
  });
