import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { Rounds } from '../../../gateway/shared/structures/rounds.ts';
import { stopTimers } from '../../support/stopped-clock.ts';

/** Calls `join` `count` times. @returns the number of calls whose round has begun */
function join(rounds: Rounds, count: number) {
  const joined = { begun: 0, all: Promise.resolve<unknown>(undefined) };
  joined.all = Promise.all(Array.from({ length: count }, () => rounds.join().then(() => joined.begun++)));
  return joined;
}

describe('rounds', () => {
  it('do not delay a caller after a pause, or in the same turn', async () => {
    const rounds = new Rounds(60_000);
    const [first, second] = [join(rounds, 1), join(rounds, 3)];
    await Promise.all([first.all, second.all]);
    expect([first.begun, second.begun]).toEqual([1, 3]);
  });

  it('make a caller in a later turn wait, and begin with all other waiting callers', async () => {
    stopTimers(['setTimeout', 'clearTimeout', 'performance']);
    const rounds = new Rounds(300);
    await rounds.join();
    await turn();
    const early = join(rounds, 2);
    await turn();
    const late = join(rounds, 2);
    vi.advanceTimersByTime(299);
    await turn();
    expect([early.begun, late.begun]).toEqual([0, 0]);
    vi.advanceTimersByTime(1);
    await early.all;
    expect([early.begun, late.begun]).toEqual([2, 2]);
  });
});
