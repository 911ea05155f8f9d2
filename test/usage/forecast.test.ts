import { describe, expect, it } from 'vitest';
import { dayMs } from '../../gateway/shared/words/figures.js';
import { forecast, forecastDays, type History } from '../../gateway/usage/forecast.ts';

/** Numbers that look random and are the same in every run. */
function randomFrom(seed: number) {
  let state = seed;
  const share = () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log(share())) * Math.cos(2 * Math.PI * share());
  return {
    share,
    /** The log-normal number with this mean. `spread` is about the standard deviation as a share of the mean. */
    about: (mean: number, spread: number) => mean * Math.exp(spread * normal() - spread ** 2 / 2),
  };
}

type Random = ReturnType<typeof randomFrom>;
/** The units of a day, by its number. `spikeDay` is a day of the history. */
type Units = (random: Random, day: number, spikeDay: number) => number;

const isWorkday = (day: number) => day % 7 < 5;

/** Histories, and the bounds of the share of simulations whose truth is in the stated 80 % range. */
const histories: readonly (readonly [name: string, units: Units, least: number, most: number])[] = [
  ['constant, spread of 5 %', ({ about }) => about(1_000, 0.05), 0.73, 0.88],
  ['constant, spread of 30 %', ({ about }) => about(1_000, 0.3), 0.78, 0.95],
  ['a weekly rhythm', ({ about }, day) => about(isWorkday(day) ? 1_000 : 200, 0.15), 0.74, 0.91],
  ['nothing at weekends', ({ about }, day) => (isWorkday(day) ? about(1_000, 0.2) : 0), 0.78, 0.95],
  ['growth of 10 a day', ({ about }, day) => about(1_000 + 10 * day, 0.15), 0.72, 0.9],
  [
    'growth and rhythm',
    ({ about }, day) => about((1_000 + 30 * day) * (isWorkday(day) ? 1 : 0.4), 0.1),
    0.68,
    0.88,
  ],
  ['growth of 2 % a day', ({ about }, day) => about(1_000 * 1.02 ** day, 0.1), 0.58, 0.8],
  ['a fall of 2 % a day', ({ about }, day) => about(1_000 * 0.98 ** day, 0.1), 0.74, 0.92],
  ['one spike', ({ about }, day, spikeDay) => about(1_000, 0.15) * (day === spikeDay ? 5 : 1), 0.9, 1],
  ['two days in three', ({ share, about }) => (share() < 0.66 ? about(1_000, 0.5) : 0), 0.78, 0.96],
];

/** Simulates a month with 1 to 27 days left, and compares the forecast with it. */
function simulate(random: Random, units: Units) {
  const daysLeft = 1 + Math.floor(random.share() * 27);
  const partOfToday = random.share();
  const [firstDay, spikeDay] = [Math.floor(random.share() * 7), Math.floor(random.share() * forecastDays)];
  const days = Array.from({ length: forecastDays + daysLeft }, (_, day) =>
    units(random, firstDay + day, firstDay + spikeDay),
  );
  const [today = 0, ...later] = days.slice(forecastDays);
  const used = 10_000 + today * partOfToday;
  const parts = [today * (1 - partOfToday), ...later];
  const truth = parts.reduce((sum, part) => sum + part, used);
  const limit = used + (truth - used) * (0.3 + 0.6 * random.share());
  let sum = used;
  const reachedDay = parts.findIndex((part) => {
    sum += part;
    return sum >= limit;
  });
  const nowMs = (firstMs / dayMs + partOfToday) * dayMs;
  const endMs = firstMs + daysLeft * dayMs;
  const history = { days: days.slice(0, forecastDays), unitsToday: today * partOfToday };
  const found = forecast({ ...history, used, limit, nowMs, endMs });
  return { found, truth, reachedMs: firstMs + reachedDay * dayMs };
}

const firstMs = Date.parse('2026-12-04T00:00Z');

describe('the stated 80 % range contains the truth in about 80 % of simulated months', () => {
  it.each(histories)('%s', (_, units, least, most) => {
    const random = randomFrom(1);
    let [ranges, inRange, onTime, unlike] = [0, 0, 0, 0];
    for (let month = 0; month < 1_000; month++) {
      const { found, truth, reachedMs } = simulate(random, units);
      if (found.kind === 'unlike_today') unlike += 1;
      if (found.kind !== 'forecast') continue;
      ranges += 1;
      if (truth >= found.low && truth <= found.high) inRange += 1;
      const { earliestMs = Number.POSITIVE_INFINITY, latestMs = Number.POSITIVE_INFINITY } = found;
      if (reachedMs >= earliestMs && reachedMs <= latestMs) onTime += 1;
    }
    expect(inRange / ranges).toBeGreaterThan(least);
    expect(inRange / ranges).toBeLessThanOrEqual(most);
    // Dates are whole days, so the range of dates contains the truth more often.
    expect(onTime / ranges).toBeGreaterThan(0.8);
    expect(ranges).toBeGreaterThan(750);
    expect(unlike).toBeLessThan(15);
  });
});

const atNoon = firstMs + dayMs / 2;
/** Ten days are left, and a half. */
const month = { unitsToday: 50, used: 1_000, limit: 1_350, nowMs: atNoon, endMs: firstMs + 11 * dayMs };
const forecastOf = (days: readonly number[], changes: Partial<History> = {}) =>
  forecast({ days, ...month, ...changes });
const constant = Array.from({ length: 14 }, () => 100);
const byWeekday = Array.from({ length: 14 }, (_, day) => (isWorkday(day) ? 100 : 0));

describe('a forecast', () => {
  it('of a constant key counts the rest of today and the days that are left', () => {
    expect(forecastOf(constant)).toEqual({
      kind: 'forecast',
      ...{ expected: 2_050, low: 2_050, high: 2_050 },
      ...{ earliestMs: firstMs + 3 * dayMs, latestMs: firstMs + 3 * dayMs },
    });
  });

  it.each([
    [2_049, firstMs + 10 * dayMs],
    [2_050, firstMs + 10 * dayMs],
    [2_051, undefined],
  ])('of a limit of %d ends on the last day or not in this month', (limit, atMs) => {
    expect(forecastOf(constant, { limit })).toMatchObject({ earliestMs: atMs, latestMs: atMs });
  });

  it('of an exact weekly rhythm has no range, and counts the weekdays that are left', () => {
    // Today is the first of five workdays. Eight workdays are left, and half of today.
    expect(forecastOf(byWeekday)).toMatchObject({ expected: 1_850, low: 1_850, high: 1_850 });
  });

  it('continues growth, and never expects less than nothing', () => {
    const growing = constant.map((units, day) => units + 10 * day);
    const { expected } = forecastOf(growing) as { expected: number };
    expect(expected).toBeGreaterThan(1_000 + 10.5 * 240);
    const falling = growing.toReversed();
    expect(forecastOf(falling, { endMs: firstMs + 27 * dayMs })).toMatchObject({
      kind: 'forecast',
      low: expect.toSatisfy((low) => low >= 1_000),
    });
  });

  it.each([
    [4, { kind: 'few_days', activeDays: 4 }],
    [0, { kind: 'few_days', activeDays: 0 }],
  ])('needs more than %d days with requests', (active, expected) => {
    expect(forecastOf(constant.map((units, day) => (day < active ? units : 0)))).toEqual(expected);
  });

  it.each([
    ['an even key', constant, 130],
    ['an even key with one unit a day', constant.map(() => 1), 4],
    ['a key with days of 90 and 110', constant.map((_, day) => (day % 2 ? 90 : 110)), 138],
    ['a key of workdays, on a workday', byWeekday, 130],
  ])('of %s is refused if today already exceeds each day of the history by far', (_, days, most) => {
    const refused = forecastOf(days, { unitsToday: most + 1 });
    expect(refused).toEqual({ kind: 'unlike_today', most: expect.closeTo(most, 0) });
    expect(forecastOf(days, { unitsToday: most - 1 }).kind).toBe('forecast');
  });

  it('is refused if the days are too uneven', () => {
    expect(forecastOf([1, 4_000, 0, 2, 9_000, 1, 0, 0, 700, 3, 0, 20_000, 1, 0], { used: 0 })).toEqual({
      kind: 'uneven',
    });
  });
});
