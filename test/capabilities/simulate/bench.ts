import { replayKey } from '../../../gateway/capabilities/simulate/replay/replay-key.ts';
import { calendarWindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import type { KeyMinutes } from '../../../gateway/usage/read/key-minutes.ts';
import { seconds, spread, whole } from '../../bench/format.ts';
import { spreadOf } from '../../bench/statistics.ts';
import type { BenchPart } from '../../support/capability-cases.ts';
import { editedOnce } from './replay/twin-keys.ts';

/** The largest permitted cost, in CPU seconds of one core. */
const secondsAtMost = 2;

const [keys, days] = [10_000, 7];
const minutesPerDay = 1_440;
/** The number of different records. Several keys share each record, and traffic differs between records. */
const kinds = 32;

/**
 * Every key sends requests in every minute, so every record has its maximum size. The simulated limit refuses requests in about two
 * percent of the minutes.
 */
function measure({ quick }: { readonly quick: boolean }): readonly (readonly string[])[] {
  const bans = { after: 100, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };
  const limits = (perMinute: number) => [
    { window: 'minute' as const, max: perMinute },
    { window: 'day' as const, max: 100_000 },
  ];
  const terms = editedOnce(limits(60), limits(40), bans);
  const calendar = { minuteMs: 60_000, windowsMs: calendarWindowsMs };
  const records = Array.from({ length: kinds }, (_, kind) => recordOf(kind));
  const fromMinute = records[0]?.minute[0] ?? 0;
  const replayAll = (): number => {
    const before = process.cpuUsage();
    for (let key = 0; key < keys; key++) {
      const minutes = records[key % kinds];
      if (minutes !== undefined) replayKey({ minutes, fromMinute, ...terms }, calendar);
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  };
  replayAll();
  const samples = Array.from({ length: quick ? 1 : 5 }, replayAll);
  const took = spreadOf(samples);
  const minutes = keys * days * minutesPerDay;
  const isMet = took.median <= secondsAtMost ? 'yes' : 'NO';
  return [[whole(keys), whole(days), whole(minutes), spread(took, seconds), isMet]];
}

/**
 * Returns traffic that is the same in every run. About two percent of the minutes have 40 to 60 requests. The other minutes have 1 to 38
 * requests.
 */
function recordOf(kind: number): KeyMinutes {
  const length = days * minutesPerDay;
  const none = new Uint32Array(length);
  let state = 1 + kind;
  // A linear congruential generator (Numerical Recipes).
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const first = Math.floor(Date.UTC(2026, 0, 5) / 60_000);
  return {
    minute: Float64Array.from({ length }, (_, index) => first + index),
    admitted: Uint32Array.from({ length }, () => (random() < 0.02 ? 40 + 21 * random() : 1 + 38 * random())),
    refused: none,
    bySecond: none,
    banned: none,
    undecided: none,
  };
}

/** The cost of replaying the records of many keys, without the cost of reading them. */
export const parts: readonly BenchPart[] = [
  {
    name: 'simulation',
    title: 'A simulation, without the time of reading the record',
    head: ['keys', 'days', 'minutes', `CPU s of one core (at most ${secondsAtMost})`, 'met'],
    measure,
  },
];
