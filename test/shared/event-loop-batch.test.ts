import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createEventLoopBatch } from '../../gateway/shared/event-loop-batch.ts';

describe('the end of a turn', () => {
  it('calls the functions of a turn once, in order, and before the promises that they resolve', async () => {
    const atTurnEnd = createEventLoopBatch();
    const finished: string[] = [];
    const resolving = (name: string) => () => void Promise.resolve().then(() => finished.push(name));
    atTurnEnd(() => finished.push('first'));
    atTurnEnd(resolving('the promise of the second'));
    atTurnEnd(() => finished.push('third'));
    await Promise.resolve();
    expect(finished).toEqual([]);

    await nextTurn();
    expect(finished).toEqual(['first', 'third', 'the promise of the second']);
  });

  it('calls functions that are added during a call in the next turn', async () => {
    const atTurnEnd = createEventLoopBatch();
    const finished: string[] = [];
    atTurnEnd(() => atTurnEnd(() => finished.push('late')));
    await nextTurn();
    expect(finished).toEqual([]);

    await nextTurn();
    expect(finished).toEqual(['late']);
  });
});
