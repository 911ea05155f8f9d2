import { describe, expect, it } from 'vitest';
import { type Fault, measureOutage } from '../faults/outage.ts';

describe.each<Fault>(['killed', 'frozen', 'full', 'read-only'])('while Redis is %s', (fault) => {
  it('nobody waits or hears a 5xx, it is seen, and afterwards the limit is shared again with local use written back', async () => {
    const found = await measureOutage(fault);
    expect(found.failures).toEqual([]);
    expect(Object.keys(found.local)).toEqual(['200']);
    expect(Object.keys(found.refusing)).toEqual(['200', '503']);
    expect(found.badRefusals).toBe(0);
    expect(found.decidedLocally).toBeGreaterThan(0);

    expect(found.readyWhileAway).toMatchObject({ local: 200, refusing: 503 });
    expect(found.readyWhileAway.reasons.join()).toContain('Redis is away');
    expect(found.readyAfter).toEqual(['ok', 'ok', 'ok']);

    const survived = fault === 'killed' ? 0 : found.admittedBefore;
    expect(found.admittedAway).toBeLessThanOrEqual(2 * found.limit);
    expect(found.dayUsedAfter).toBe(survived + found.admittedAway);
    expect(found.admittedAfter).toBe(found.limit);
  });
});
