import { describe, expect, it } from 'vitest';
import { type Judgement, judgeFailures } from '../../../gateway/fleet/failing/judge-failures.ts';

const minuteMs = 60_000;
const holdMaxMs = 900_000;
const failing = { shareMin: 0.05, failuresMin: 5 };

/** Runs one second for each entry, and returns every change with its second. */
function run(seconds: readonly (readonly [requests: number, failed: number])[]) {
  let judgement: Judgement = { kind: 'well' };
  const changes: { readonly second: number; readonly to: Judgement }[] = [];
  for (const [second, [requests, failed]] of seconds.entries()) {
    const nowMs = 1_000_000 + second * 1_000;
    const next: Judgement = judgeFailures(judgement, { requests, failed }, failing, {
      nowMs,
      minuteMs,
      holdMaxMs,
    });
    if (next.kind !== judgement.kind) changes.push({ second, to: next });
    judgement = next;
  }
  return changes;
}

/** The figures of the last minute for each second, for a rate of ten requests a second. */
function minutesOf(failedPerSecond: readonly number[]): readonly (readonly [number, number])[] {
  return failedPerSecond.map((_, second) => {
    const minute = failedPerSecond.slice(Math.max(0, second - 59), second + 1);
    return [10 * minute.length, minute.reduce((sum, failed) => sum + failed, 0)];
  });
}

const seconds = (count: number, failedPerSecond: number) => Array<number>(count).fill(failedPerSecond);

describe('an upstream begins to fail', () => {
  it.each([
    ['a single failed request', 1, 1, false],
    ['four failures, all of them', 4, 4, false],
    ['five failures, all of them', 5, 5, true],
    ['a smaller share', 101, 5, false],
    ['exactly the share', 100, 5, true],
  ])('at both bounds: %s', (_, requests, failed, fails) => {
    expect(run([[requests, failed]])).toHaveLength(fails ? 1 : 0);
  });
});

it('a burst of 40 s is one failure with its duration and its worst minute', () => {
  const changes = run(minutesOf([...seconds(60, 0), ...seconds(40, 6), ...seconds(300, 0)]));
  expect(changes.map(({ to }) => to.kind)).toEqual(['failing', 'well']);
  const [, over] = changes;
  expect(over?.to).toMatchObject({ last: { ended: 'recovered', worstShare: 0.4 } });
  const { failingMs = 0 } = (over?.to.kind === 'well' && over.to.last) || {};
  expect(failingMs).toBeGreaterThan(30_000);
  expect(failingMs).toBeLessThanOrEqual(40_000);
});

it('a share between half of the bound and the bound changes nothing', () => {
  expect(run([[100, 4], [100, 5], ...Array<[number, number]>(100).fill([100, 3])])).toHaveLength(1);
  expect(run(Array<[number, number]>(100).fill([100, 4]))).toHaveLength(0);
});

it('an upstream without requests for a minute is not said to have recovered', () => {
  const [, over] = run([
    [5, 5],
    [5, 5],
    [0, 0],
  ]);
  expect(over?.to).toMatchObject({ kind: 'well', last: { ended: 'quiet' } });
});

it.each([
  ['30 s of every minute', 30, 30, 1],
  ['10 s of every 100 s', 10, 90, 6],
  ['10 s of every 5 minutes', 10, 290, 10],
])('an upstream that fails %s begins to fail only a few times in an hour', (_, bad, good, max) => {
  const period = [...seconds(bad, 10), ...seconds(good, 0)];
  const hour = Array.from({ length: 3_600 }, (_, second) => period[second % period.length] ?? 0);
  const begun = run(minutesOf(hour)).filter(({ to }) => to.kind === 'failing');
  expect(begun.length).toBeGreaterThanOrEqual(1);
  expect(begun.length).toBeLessThanOrEqual(max);
});

it('the hold returns to the start after a quarter of an hour without a relapse', () => {
  const burst = [...seconds(5, 10), ...seconds(180, 0)];
  const changes = run(minutesOf([...seconds(60, 0), ...burst, ...burst, ...seconds(900, 0), ...burst]));
  const lasted = changes.flatMap(({ second, to }, index) =>
    to.kind === 'well' ? [second - (changes[index - 1]?.second ?? 0)] : [],
  );
  const [first = 0, second = 0, third = 0] = lasted;
  expect(second - first).toBeGreaterThanOrEqual(59);
  expect(Math.abs(third - first)).toBeLessThanOrEqual(3);
});
