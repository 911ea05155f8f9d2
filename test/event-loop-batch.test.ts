import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createEventLoopBatch } from '../gateway/event-loop-batch.ts';

describe('the end of a turn', () => {
  it('finishes what a turn brought in its order, once, and before what the end itself led to', async () => {
    const atTurnEnd = createEventLoopBatch();
    const finished: string[] = [];
    const led = (name: string) => () => void Promise.resolve().then(() => finished.push(name));
    atTurnEnd(() => finished.push('first'));
    atTurnEnd(led('what the second led to'));
    atTurnEnd(() => finished.push('third'));
    await Promise.resolve();
    expect(finished).toEqual([]);

    await nextTurn();
    expect(finished).toEqual(['first', 'third', 'what the second led to']);
  });

  it('leaves what comes while it finishes to the next turn', async () => {
    const atTurnEnd = createEventLoopBatch();
    const finished: string[] = [];
    atTurnEnd(() => atTurnEnd(() => finished.push('late')));
    await nextTurn();
    expect(finished).toEqual([]);

    await nextTurn();
    expect(finished).toEqual(['late']);
  });
});
