import fc from 'fast-check';
import { expect, it } from 'vitest';
import { replayKey } from '../../../../gateway/capabilities/simulate/replay/replay-key.ts';
import { windowIndex } from '../../../../gateway/shared/calendar-windows.ts';
import { KeyMinutesBuilder } from '../../../../gateway/usage/read/key-minutes.ts';
import { outcomes } from '../../../../gateway/usage/tally.ts';
import { everyOrder, orders } from './every-order.ts';
import { brokenRules, recordedFrom, replay } from './replay-rules.ts';
import {
  calendar,
  changing,
  decideTwins,
  editedOnce,
  minuteMs,
  mixedTwins,
  recordTwins,
  type Twins,
  twins,
} from './twin-keys.ts';

/** The numbers of admitted requests, added up by window. */
function byWindow(minutes: readonly (readonly [number, number])[], lengthMs: number) {
  const sums = new Map<number, number>();
  for (const [minute, requests] of minutes) {
    const index = windowIndex(lengthMs, minute * minuteMs);
    sums.set(index, (sums.get(index) ?? 0) + requests);
  }
  return sums;
}

for (const numRuns of [5, 20])
  it(`the simulator agrees with a real gateway on ${numRuns} random plans and traffic: key by key, window by window`, {
    tags: numRuns === 20 ? ['full'] : [],
  }, async () => {
    const seen = { certain: 0, bounded: 0, banned: 0, refused: 0 };
    const property = fc.asyncProperty(twins, async (random) => {
      const run = await recordTwins(random);
      const { verdict, differences, admitted } = replay(run);
      const [own, actual] = [run.kept, run.edited].map((record) => recordedFrom(run.fromMinute, record));
      if (own === undefined || actual === undefined) throw new Error('both have a record');

      // The replay must refuse the same requests that the gateway refused under the same limits.
      expect(differences).toEqual([]);
      expect([verdict.recordedRefusals, verdict.replayedRefusals]).toEqual([own.refusals, own.refusals]);
      expect(verdict.refusedNow).toBe(own.refused);
      if (run.fromMinute <= (run.kept.minute[0] ?? 0)) expect(own.refused).toBe(run.refused[0]);

      // The replay of the edit must agree with the record of the twin key, whose limits were really edited.
      expect(actual.refused).toBeGreaterThanOrEqual(verdict.refusedThenMin);
      expect(actual.refused).toBeLessThanOrEqual(verdict.refusedThenMax);
      if (actual.banned > 0) seen.banned += 1;
      if (verdict.refusedThenMin < verdict.refusedThenMax) {
        seen.bounded += 1;
        return;
      }
      seen.certain += 1;
      if (actual.refused > 0) seen.refused += 1;
      expect(verdict.refusedThen).toBe(actual.refused);
      // With bans or a limit per second, only the sum over all minutes is certain.
      if (own.banned > 0 || run.after.some(({ window }) => window === 'second')) return;
      expect(admitted).toEqual(actual.admitted);
      for (const { window } of run.after) {
        const lengthMs = calendar.windowsMs[window];
        if (window !== 'second')
          expect(byWindow(admitted, lengthMs)).toEqual(byWindow(actual.admitted, lengthMs));
      }
    });
    await fc.assert(property, { numRuns, interruptAfterTimeLimit: 60_000 });
    // Random traffic that never exhausts a limit would not test the simulator. A slow machine runs few cases in a minute, so the test adds
    // cases until each kind has occurred.
    while (Math.min(...Object.values(seen)) === 0) await fc.assert(property, { numRuns: 1 });
  });

/** A ban before the edit, and a second one of the same series after it. Random cases found that the second one was thought too short. */
const afterRecordedBan: Twins = {
  before: [{ window: 'month', max: 1 }],
  after: [{ window: 'minute', max: 1 }],
  bans: { after: 2, withinMs: 1_000, forMs: 120_000, maxMs: 600_000 },
  startMs: Date.UTC(2026, 1, 1),
  steps: [
    { pauseMs: 0, requests: 1 },
    { pauseMs: 0, requests: 2 },
    { pauseMs: 600_000, requests: 1 },
    { pauseMs: 59_999, requests: 2 },
    { pauseMs: 59_999, requests: 1 },
    { pauseMs: 61_000, requests: 3 },
  ],
  editAt: 2,
};

for (const [costs, cases] of [
  ['1 unit', twins],
  ['0, 1, 2 and 5 units', mixedTwins],
  ['1 unit under limits that change several times', changing(twins)],
  ['0, 1, 2 and 5 units under limits that change several times', changing(mixedTwins)],
] as const)
  it(`the simulator’s minutes of thousands of random keys with requests of ${costs} add up to the total, which is the mean of correct bounds`, () => {
    const seen = { certain: 0, open: 0, banned: 0, bySecond: 0 };
    const property = fc.property(cases, (random) => {
      const run = decideTwins(random);
      expect(brokenRules(run, replay)).toEqual([]);
      const { verdict } = replay(run);
      // Without `onMinute`, the simulator skips most minutes, but the verdict must be the same.
      const { kept: minutes, limitSteps: steps, bans, fromMinute } = run;
      const terms = { steps, bans: { present: bans, edited: bans } };
      const refused: [number, number][] = [];
      const onRefused = (...one: [number, number]) => refused.push(one);
      expect(replayKey({ minutes, fromMinute, ...terms }, calendar, { onRefused })).toEqual(verdict);
      expect(refused.reduce((sum, [, requests]) => sum + requests, 0)).toBe(verdict.refusedThen);
      seen[verdict.refusedThenMin === verdict.refusedThenMax ? 'certain' : 'open'] += 1;
      if (recordedFrom(fromMinute, run.edited).banned > 0) seen.banned += 1;
      if (run.after.some(({ window }) => window === 'second')) seen.bySecond += 1;
    });
    fc.assert(property, { numRuns: 1_000, examples: [[afterRecordedBan]] });
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(50);
  });

it('a possible ban of minutes does not make the next day uncertain', () => {
  const builder = new KeyMinutesBuilder();
  const midnight = Date.UTC(2026, 1, 1) / minuteMs;
  for (let day = 0; day < 7; day++) builder.add(midnight + day * 1_440, 0, 300);
  const bans = { after: 40, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };
  const terms = editedOnce([{ window: 'minute', max: 300 }], [{ window: 'minute', max: 30 }], bans);
  const found = replayKey({ minutes: builder.finish(), fromMinute: midnight, ...terms }, calendar);
  expect([found.refusedThenMin, found.refusedThenMax]).toEqual([7 * 270, 7 * 270]);
});

it('a ban that ended before the edit makes nothing uncertain, and one that ends after it only what it may still refuse', () => {
  const at = (minute: number) => Date.UTC(2026, 1, 1) / minuteMs + minute;
  const [admitted, minute, banned] = ['admitted', 'minute', 'banned'].map((name) =>
    outcomes.indexOf(name as 'banned'),
  );
  const recorded = new KeyMinutesBuilder();
  recorded.add(at(0), admitted ?? 0, 60);
  recorded.add(at(0), minute ?? 0, 39);
  recorded.add(at(0), banned ?? 0, 20);
  recorded.add(at(1), banned ?? 0, 10);
  recorded.add(at(2), banned ?? 0, 3);
  recorded.add(at(2), admitted ?? 0, 20);
  recorded.add(at(3), admitted ?? 0, 21);
  const bans = { after: 40, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };
  const terms = editedOnce([{ window: 'minute', max: 60 }], [{ window: 'minute', max: 500 }], bans);
  const boundsFrom = (from: number) => {
    const found = replayKey({ minutes: recorded.finish(), fromMinute: at(from), ...terms }, calendar);
    return [found.refusedThenMin, found.refusedThenMax];
  };
  expect([1, 2, 3].map(boundsFrom)).toEqual([
    [0, 13],
    [0, 3],
    [0, 0],
  ]);
});

it('bounds what the rule of the gateway does with requests of 0, 1, 2 and 5 units, in every order within each minute', () => {
  const seen = { equal: 0, different: 0, tight: 0 };
  const property = fc.property(orders, (random) => {
    const { refusedThenMin, refusedThenMax, refused } = everyOrder(random);
    expect(refusedThenMin).toBeLessThanOrEqual(Math.min(...refused));
    expect(refusedThenMax).toBeGreaterThanOrEqual(Math.max(...refused));
    seen[refused.size === 1 ? 'equal' : 'different'] += 1;
    if (refusedThenMin === refusedThenMax) seen.tight += 1;
  });
  fc.assert(property, { numRuns: 500 });
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(20);
});
