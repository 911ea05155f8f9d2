import { serialize } from 'node:v8';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Shares } from '../../../gateway/shared/structures/shares.ts';

/** The holders take one share each, in turn, until no holder can take more. @returns the shares of each holder */
function takeAll(shares: Shares, holders: readonly string[]): number[] {
  for (let some = true; some; ) some = holders.map((holder) => shares.take(holder, 1)).includes(true);
  return holders.map((holder) => shares.heldBy(holder));
}

describe('shares', () => {
  it.each([
    [256, 1, [128]],
    [256, 4, [42, 42, 42, 42]],
    [90, 8, [8, 8, 8, 8, 8, 8, 8, 8]],
    [1, 1, [1]],
  ])('of %i units are equal for %i greedy holders', (max, count, each) => {
    const shares = new Shares(max);
    const holders = Array.from({ length: count }, (_, i) => `key-${i}`);
    expect(takeAll(shares, holders)).toEqual(each);
    expect(shares.free).toBe(max - each.reduce((sum, held) => sum + held, 0));
  });

  it.each([
    [256, 1],
    [256, 9],
    [256, 38],
    [128, 24],
    [10_000, 400],
  ])('of %i units leave some units free after %i successive greedy holders', (max, count) => {
    const shares = new Shares(max);
    for (let i = 0; i < count; i++) takeAll(shares, [`key-${i}`]);
    expect(shares.take('late', 1)).toBe(true);
  });

  it.each([1, 8, 40, 200])('leave some units for the next holder after %i greedy holders', (count) => {
    const shares = new Shares(256);
    takeAll(
      shares,
      Array.from({ length: count }, (_, i) => `key-${i}`),
    );
    expect(shares.take('late', 1)).toBe(true);
  });

  it('take bounded memory for any number of short-lived holders', () => {
    const shares = new Shares(10);
    for (let i = 0; i < 100_000; i++) {
      expect(shares.take(`key-${i}`, 1)).toBe(true);
      shares.give(`key-${i}`, 1);
    }
    // `serialize` shows the size of the whole object in bytes. A map with 100,000 names would need two million
    // bytes.
    expect(serialize(shares).length).toBeLessThan(200_000);
    shares.take('last', 2);
    expect([shares.free, shares.heldBy('last'), shares.heldBy('key-7')]).toEqual([8, 2, 0]);
  });

  it('never exceed the free units, give free units to a holder without units, and accept all returned units', () => {
    const step = fc.record({
      holder: fc.constantFrom('a', 'b', 'c'),
      amount: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 100 }), (steps, max) => {
        const shares = new Shares(max);
        const taken: { holder: string; amount: number }[] = [];
        for (const { holder, amount } of steps) {
          const { free } = shares;
          const wouldHold = shares.heldBy(holder) + amount;
          const isTaken = shares.take(holder, amount);
          if (isTaken) {
            taken.push({ holder, amount });
            expect(wouldHold).toBeLessThanOrEqual(free);
          } else if (wouldHold === amount) expect(amount).toBeGreaterThan(free);
          const sum = taken.reduce((total, each) => total + each.amount, 0);
          expect(shares.free).toBe(max - sum);
        }
        for (const { holder, amount } of taken) shares.give(holder, amount);
        expect(shares.free).toBe(max);
        expect(['a', 'b', 'c'].map((holder) => shares.heldBy(holder))).toEqual([0, 0, 0]);
      }),
    );
  });
});
