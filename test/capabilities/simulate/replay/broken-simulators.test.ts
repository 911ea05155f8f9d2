/**
 * @module-tag full
 *
 * In `npm test`: `test/capabilities/simulate/replay/replay-key.test.ts` tests the simulator in place of this file.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { replayKey } from '../../../../gateway/capabilities/simulate/replay/replay-key.ts';
import { windowIndex } from '../../../../gateway/shared/calendar-windows.ts';
import type { Limits } from '../../../../gateway/shared/model.ts';
import { offeredAt } from '../../../../gateway/usage/read/key-minutes.ts';
import { brokenRules, type Replay, replay } from './replay-rules.ts';
import {
  calendar,
  changing,
  decideTwins,
  editedOnce,
  minuteMs,
  mixedTwins,
  recordTwins,
  type Twins,
  type TwinsRecorded,
  twins,
} from './twin-keys.ts';

/** Each simulator in this file makes one mistake. The comparison with the record of a real gateway must detect the mistake. */
type Admitted = readonly (readonly [minute: number, admitted: number])[];
type Simulator = (run: TwinsRecorded) => Admitted;

const real: Simulator = ({ kept, before, after, bans, fromMinute }) => {
  const admitted: [number, number][] = [];
  replayKey({ minutes: kept, fromMinute, ...editedOnce(before, after, bans) }, calendar, {
    onMinute: (...one) => admitted.push(one),
  });
  return admitted;
};

interface Rules {
  readonly indexOf: (window: Limits[number]['window'], atMs: number) => number;
  /** The number of admitted requests, and the number of units that are added to each window. */
  readonly decide: (
    requests: number,
    rooms: readonly number[],
  ) => { admitted: number; charged: readonly number[] };
  /** Whether a window whose limit is added by the edit also counts earlier requests. */
  readonly countsNewWindows?: true;
}

const fits = (requests: number, room: number) => Math.min(requests, Math.max(0, room));
const rules: Rules = {
  indexOf: (window, atMs) => windowIndex(calendar.windowsMs[window], atMs),
  decide(requests, rooms) {
    const admitted = fits(requests, Math.min(...rooms));
    return { admitted, charged: rooms.map(() => admitted) };
  },
};

/** A simulator that applies the rules in their simplest form, with the given changes. */
function simulator(changed: Partial<Rules>): Simulator {
  const { indexOf, decide, countsNewWindows } = { ...rules, ...changed };
  return ({ kept, before, after, fromMinute }) => {
    const used = new Map<string, number>();
    const limits = after.filter(({ window }) => window !== 'second');
    return [...kept.minute].flatMap((minute, place) => {
      const names = limits.map(({ window }) => `${window} ${indexOf(window, minute * minuteMs)}`);
      const isCounted = (index: number) =>
        minute >= fromMinute ||
        countsNewWindows ||
        before.some(({ window }) => window === limits[index]?.window);
      const charge = (amounts: readonly number[]) => {
        for (const [index, name] of names.entries()) {
          if (isCounted(index)) used.set(name, (used.get(name) ?? 0) + (amounts[index] ?? 0));
        }
      };
      if (minute < fromMinute) {
        charge(names.map(() => kept.admitted[place] ?? 0));
        return [];
      }
      const rooms = limits.map(({ max }, index) => max - (used.get(names[index] ?? '') ?? 0));
      const { admitted, charged } = decide(offeredAt(kept, place), rooms);
      charge(charged);
      return [[minute, admitted] as const];
    });
  };
}

const broken: readonly { mistake: string; simulate: Simulator }[] = [
  {
    mistake: 'the first minute of a day belongs to the day before',
    simulate: simulator({
      indexOf: (window, atMs) => rules.indexOf(window, window === 'day' ? atMs - minuteMs : atMs),
    }),
  },
  {
    mistake: 'the last minute of an hour belongs to the next hour',
    simulate: simulator({
      indexOf: (window, atMs) => rules.indexOf(window, window === 'hour' ? atMs + minuteMs : atMs),
    }),
  },
  {
    mistake: 'a limit admits one more',
    simulate: simulator({
      decide: (requests, rooms) =>
        rules.decide(
          requests,
          rooms.map((room) => room + 1),
        ),
    }),
  },
  {
    mistake: 'longer windows are charged before the minute refuses',
    simulate: simulator({
      decide(requests, [first = 0, ...longer]) {
        const passing = fits(requests, Math.min(...longer));
        return {
          admitted: fits(passing, first),
          charged: [fits(passing, first), ...longer.map(() => passing)],
        };
      },
    }),
  },
  {
    mistake: 'refused requests are charged',
    simulate: simulator({
      decide: (requests, rooms) => ({ ...rules.decide(requests, rooms), charged: rooms.map(() => requests) }),
    }),
  },
  {
    mistake: 'a month has 30 days',
    simulate: simulator({
      indexOf: (window, atMs) =>
        window === 'month' ? Math.floor(atMs / (30 * 86_400_000)) : rules.indexOf(window, atMs),
    }),
  },
  {
    mistake: 'the month is forgotten',
    simulate: (run) => simulator({})({ ...run, after: run.after.filter(({ window }) => window !== 'month') }),
  },
  {
    mistake: 'a window that the edit adds was counted before',
    simulate: simulator({ countsNewWindows: true }),
  },
];

const bans = { after: 1_000_000, withinMs: 60_000, forMs: 60_000, maxMs: 60_000 };
const hour = 3_600_000;

/** Traffic across the ends of a minute, an hour, a day and a month. */
const overEnds: Twins = {
  before: [{ window: 'minute', max: 7 }],
  after: [
    { window: 'minute', max: 3 },
    { window: 'hour', max: 7 },
    { window: 'day', max: 12 },
    { window: 'month', max: 16 },
  ],
  bans,
  startMs: Date.UTC(2026, 0, 30, 23, 57),
  steps: [
    ...Array.from({ length: 5 }, () => ({ pauseMs: 30_000, requests: 2 })),
    ...Array.from({ length: 5 }, () => ({ pauseMs: 60_000, requests: 5 })),
    { pauseMs: 23 * hour, requests: 5 },
    ...Array.from({ length: 70 }, () => ({ pauseMs: 60_000, requests: 1 })),
    { pauseMs: hour, requests: 5 },
  ],
  editAt: 3,
};

/** The plan has only an hour limit. The traffic exhausts the limit just before the end of the hour and again just after it. */
const overHours: Twins = {
  ...overEnds,
  after: [{ window: 'hour', max: 4 }],
  startMs: Date.UTC(2026, 0, 30, 9, 57),
  steps: Array.from({ length: 8 }, () => ({ pauseMs: 60_000, requests: 3 })),
  editAt: 0,
};

describe('the record of a real gateway', () => {
  let runs: readonly TwinsRecorded[];
  beforeAll(async () => {
    const random = fc
      .sample(twins, { numRuns: 12, seed: 17 })
      .map((one) => ({ ...one, bans, after: one.after.filter(({ window }) => window !== 'second') }))
      .filter(({ before, after }) => after.length > 1 && before.every(({ window }) => window !== 'second'));
    runs = [];
    for (const one of [overEnds, overHours, ...random]) runs = [...runs, await recordTwins(one)];
  }, 120_000);

  const disagreements = (simulate: Simulator) =>
    runs.filter((run) => !isSame(simulate(run), actual(run))).length;

  it('agrees with the simulator, and with the rules in their simplest form', () => {
    expect(runs.length).toBeGreaterThan(3);
    expect([disagreements(real), disagreements(simulator({}))]).toEqual([0, 0]);
  });

  it.each(broken)('contradicts a simulator where $mistake', ({ simulate }) => {
    expect(disagreements(simulate)).toBeGreaterThan(0);
  });
});

/** A replay in which the edited limits are not those of the run. */
const editing =
  (change: (limits: Limits) => Limits): Replay =>
  (run) =>
    replay({
      ...run,
      limitSteps: run.limitSteps.map((step) => ({ ...step, edited: change(step.edited) })),
    });

/** Simulators that make a mistake with bans, with a limit per second, or in the sum over the minutes. */
const misled: readonly { mistake: string; simulate: Replay }[] = [
  {
    mistake: 'a recorded ban is taken into the minutes and not into the total',
    simulate(run) {
      const banned = new Map(
        [...run.kept.minute].map((minute, place) => [minute, run.kept.banned[place] ?? 0]),
      );
      const replayed = replay(run);
      const admitted = replayed.admitted.map(
        ([minute, requests]) => [minute, Math.max(0, requests - (banned.get(minute) ?? 0))] as const,
      );
      return { ...replayed, admitted };
    },
  },
  {
    mistake: 'a recorded ban is the first refusal',
    simulate(run) {
      const { verdict, ...replayed } = replay(run);
      const first = run.kept.minute.find(
        (minute, place) => minute >= run.fromMinute && (run.kept.banned[place] ?? 0) > 0,
      );
      const firstRefusedMinute = Math.min(verdict.firstRefusedMinute, first ?? Infinity);
      return { verdict: { ...verdict, firstRefusedMinute }, ...replayed };
    },
  },
  {
    mistake: 'the estimate is the most that can be refused',
    simulate(run) {
      const { verdict, ...replayed } = replay(run);
      return { verdict: { ...verdict, refusedThen: verdict.refusedThenMax }, ...replayed };
    },
  },
  {
    mistake: 'no ban ever begins',
    simulate: (run) => replay({ ...run, bans: { ...run.bans, after: 1e15 } }),
  },
  {
    mistake: 'a ban is over within its minute',
    simulate: (run) => replay({ ...run, bans: { ...run.bans, forMs: 0, maxMs: 0 } }),
  },
  {
    mistake: 'the second refuses nothing',
    simulate: editing((limits) => limits.filter(({ window }) => window !== 'second')),
  },
  {
    mistake: 'unchanged limits are replayed as an edit',
    simulate: editing((limits) => [...limits, { window: 'month', max: 1e15 }]),
  },
];

it('a rule that holds for every key is broken where every request is charged 1 unit', () => {
  const runs = fc.sample(mixedTwins, { numRuns: 500, seed: 17 }).map(decideTwins);
  const simulate: Replay = (run) => replay({ ...run, kept: { ...run.kept, costs: undefined } });
  expect(runs.flatMap((run) => brokenRules(run, replay))).toEqual([]);
  expect(runs.flatMap((run) => brokenRules(run, simulate))).toContain(
    'what the gateway did is between the bounds',
  );
});

it.each<{ mistake: string; steps: (steps: TwinsRecorded['limitSteps']) => TwinsRecorded['limitSteps'] }>([
  { mistake: 'earlier limits are forgotten', steps: (steps) => steps.slice(-1) },
  { mistake: 'later limits are forgotten', steps: (steps) => steps.slice(0, 1) },
])('a rule for keys whose limits change is broken by a simulator where $mistake', ({ steps }) => {
  const runs = fc.sample(changing(twins), { numRuns: 500, seed: 17 }).map(decideTwins);
  expect(runs.flatMap((run) => brokenRules(run, replay))).toEqual([]);
  const broken = runs.flatMap((run) =>
    brokenRules(run, (one) => replay({ ...one, limitSteps: steps(one.limitSteps) })),
  );
  expect(broken).toContain('the limits of their time refuse what was recorded');
  expect(broken).toContain('what the gateway did is between the bounds');
});

it.each(misled)('a rule for every key is broken by a simulator where $mistake', ({ simulate }) => {
  const runs = fc.sample(twins, { numRuns: 500, seed: 17 }).map(decideTwins);
  expect(runs.flatMap((run) => brokenRules(run, replay))).toEqual([]);
  expect(runs.flatMap((run) => brokenRules(run, simulate))).not.toEqual([]);
});

function actual({ edited, fromMinute }: TwinsRecorded): Admitted {
  return [...edited.minute].flatMap((minute, place) =>
    minute < fromMinute ? [] : [[minute, edited.admitted[place] ?? 0] as const],
  );
}

function isSame(one: Admitted, other: Admitted): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
