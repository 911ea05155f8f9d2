import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Pace } from '../../../gateway/shared/structures/pace.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/**
 * A pace of at most 100 pieces of work per second, and at most 2 in one burst. `begun` lists the pieces of work in the
 * order in which they began.
 */
function start() {
  const pace = new Pace(100, 2);
  const begun: string[] = [];
  const add = (holder: string, name: string, isWanted = true) =>
    pace.take(holder, () => {
      if (isWanted) begun.push(name);
      return isWanted;
    });
  return { begun, add };
}

it('work begins at once up to the burst, and then at the rate, even after a pause', () => {
  const { begun, add } = start();
  vi.advanceTimersByTime(60_000);
  for (let number = 0; number < 100; number++) add('a', `${number}`);
  expect(begun).toEqual(['0', '1']);
  vi.advanceTimersByTime(500);
  expect(begun.length).toBeGreaterThan(45);
  expect(begun.length).toBeLessThanOrEqual(52);
  vi.advanceTimersByTime(1_000);
  expect(begun).toEqual(Array.from({ length: 100 }, (_, number) => `${number}`));
  vi.advanceTimersByTime(1_000);
  add('a', 'after a pause');
  expect(begun.at(-1)).toBe('after a pause');
});

it('holders take turns, with any number of pieces of work', () => {
  const { begun, add } = start();
  for (let number = 0; number < 1_000; number++) add('greedy', 'greedy');
  add('b', 'b');
  add('c', 'c');
  vi.advanceTimersByTime(50);
  expect(begun.slice(2, 6).toSorted()).toEqual(['b', 'c', 'greedy', 'greedy']);
});

it('abandoned work does not delay other work', () => {
  const { begun, add } = start();
  for (let number = 0; number < 1_000; number++) add('a', 'gone', false);
  for (const name of ['1', '2']) add('a', name);
  expect(begun).toEqual(['1', '2']);
});
