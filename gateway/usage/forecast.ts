import { dayMs } from '../shared/words/figures.js';

/**
 * Forecasts when a key reaches its limit a month, from the units of the last 14 days. A weekly rhythm counts if it
 * explains the differences of the days. Growth counts as far as two weeks can show it. The range comes from the
 * differences that remain.
 *
 * The range should contain the truth in 80 % of all cases. The table has the measured shares, from 4,000 simulated
 * months for each row, with 1 to 27 days left. `test/usage/forecast.test.ts` repeats the measurement with 1,000 months.
 * The range of dates contains the true day in 79 to 100 % of these months, because dates are whole days.
 *
 * | units of a day | truth in the range | half of the range | no forecast |
 * |---|---|---|---|
 * | constant, spread of 5 % | 80 % | 4 % | 0 % |
 * | constant, spread of 30 % | 88 % | 17 % | 1 % |
 * | a weekly rhythm, spread of 15 % | 82 % | 10 % | 0 % |
 * | nothing at weekends, spread of 20 % | 88 % | 13 % | 0 % |
 * | growth of 1 % of the first day a day, spread of 15 % | 82 % | 10 % | 0 % |
 * | growth of 3 % of the first day a day and a rhythm, spread of 10 % | 80 % | 7 % | 0 % |
 * | growth of 2 % a day, compounded, spread of 10 % | 69 % | 7 % | 0 % |
 * | a fall of 2 % a day, spread of 10 % | 83 % | 9 % | 0 % |
 * | one day of five times the units, spread of 15 % | 100 % | 26 % | 18 % |
 * | constant, spread of 60 % | 89 % | 22 % | 9 % |
 * | requests on two days in three, spread of 50 % | 88 % | 22 % | 12 % |
 * | requests on one day in three, spread of 50 % | 91 % | 20 % | 57 % |
 * | a random walk of 5 % a day | 59 % | 9 % | 0 % |
 *
 * `usualGrowth` was chosen out of 0.005, 0.01 and 0.02 by these same kinds of history, so the shares of real keys may differ.
 * The table has other random numbers than the choice. A random walk is only measured here, and not in the test.
 *
 * A pace that changes after the 14 days is not foreseen, but there is no forecast if the present day already has more
 * units than the history allows for a whole day. This adds at most 1 % to a row of the last column. Compounded growth is
 * continued as a straight line.
 */

/** Two weeks: the shortest history that shows each weekday twice. */
export const forecastDays = 14;

/** With fewer days of requests, a mean says little about the next days. */
const activeDaysMin = 5;

/** If half the range is more than this share of the expected units, the range says nothing. */
const halfRangeShareMax = 0.5;

/**
 * The usual growth or fall of a key in a day, as a share of its mean (one standard deviation). Two weeks measure growth
 * roughly, so the measured growth counts in proportion to how well it is known in comparison with this share.
 */
const usualGrowth = 0.02;

/**
 * A weekly rhythm counts if it explains this many times the spread that chance alone would explain. Chance alone exceeds
 * it in 5 % of all cases (Fisher's F with 6 and 7 degrees of freedom).
 */
const rhythmRatioMin = 3.87;

/** Half of an 80 % range in standard errors, for about 10 degrees of freedom (Student's t; 1.28 for a known spread). */
const rangeErrors = 1.4;

/**
 * A day of this many standard errors above the expected units is not a day of the history. Chance exceeds 3 in 0.7 % of
 * all days (Student's t, about 10 degrees of freedom).
 */
const dayErrors = 3;

export interface History {
  /** The charged units of the last `forecastDays` complete days of UTC, the oldest first. */
  readonly days: readonly number[];
  /** The charged units of the present day so far. */
  readonly unitsToday: number;
  /** The charged units of the present month, and the limit of the month. */
  readonly used: number;
  readonly limit: number;
  /** Epoch ms. The month ends at `endMs`. */
  readonly nowMs: number;
  readonly endMs: number;
}

export type Forecast =
  | {
      readonly kind: 'forecast';
      /** The units at the month's end, as if there was no limit, and their 80 % range. */
      readonly expected: number;
      readonly low: number;
      readonly high: number;
      /**
       * The first days on which the high and the low end of the range reach the limit (epoch ms); undefined if it is not
       * reached this month.
       */
      readonly earliestMs: number | undefined;
      readonly latestMs: number | undefined;
    }
  | { readonly kind: 'few_days'; readonly activeDays: number }
  /** Today already has more units than the history allows for a whole day, `most`. */
  | { readonly kind: 'unlike_today'; readonly most: number }
  | { readonly kind: 'uneven' };

export function forecast({ days, unitsToday, used, limit, nowMs, endMs }: History): Forecast {
  const activeDays = days.filter((units) => units > 0).length;
  if (activeDays < activeDaysMin) return { kind: 'few_days', activeDays };
  const pace = paceOf(days);
  const most = mostOfToday(pace);
  if (unitsToday > most) return { kind: 'unlike_today', most };
  const today = Math.floor(nowMs / dayMs);
  let [sum, low, high] = [used, used, used];
  let [earliestMs, latestMs]: (number | undefined)[] = [];
  /** The number of counted days by weekday, and the sum of their distances from the middle of the history. */
  const counted = Array.from({ length: week }, () => 0);
  let distance = 0;
  for (let day = today; day * dayMs < endMs; day++) {
    const part = Math.min(1, day + 1 - nowMs / dayMs);
    const place = forecastDays + day - today;
    counted[place % week] = (counted[place % week] ?? 0) + part;
    distance += part * (place - middle);
    sum += part * Math.max(0, pace.at(place));
    const halfRange = rangeErrors * errorOf(pace, counted, distance);
    low = Math.max(used, sum - halfRange);
    high = sum + halfRange;
    if (high >= limit) earliestMs ??= day * dayMs;
    if (low >= limit) latestMs ??= day * dayMs;
  }
  if (high - low > 2 * halfRangeShareMax * sum) return { kind: 'uneven' };
  return { kind: 'forecast', expected: sum, low, high, earliestMs, latestMs };
}

/** Independent requests vary by at least the square root of their number, also if the history is more even. */
function mostOfToday(pace: Pace): number {
  const expected = Math.max(0, pace.at(forecastDays));
  return expected + dayErrors * Math.max(errorOf(pace, [1], forecastDays - middle), Math.sqrt(expected));
}

/**
 * The standard error of the units of some days.
 *
 * @param counted the number of the days by weekday @param distance the sum of their distances from the middle of the history
 */
function errorOf(pace: Pace, counted: readonly number[], distance: number): number {
  const all = counted.reduce((sum, number) => sum + number, 0);
  const means = pace.hasRhythm ? squaresOf(counted, 0) / 2 : all ** 2 / forecastDays;
  return Math.sqrt((all + means) * pace.variance + distance ** 2 * pace.growthVariance);
}

const week = 7;
const middle = (forecastDays - 1) / 2;

/** The expected units of a day by its place (0 is the oldest day of the history), and the variance of a day. */
interface Pace {
  readonly at: (place: number) => number;
  readonly hasRhythm: boolean;
  readonly variance: number;
  readonly growthVariance: number;
}

function paceOf(days: readonly number[]): Pace {
  const mean = meanOf(days);
  // The difference of the weeks, by weekday, so that a weekly rhythm does not hide growth.
  const differences = days.slice(week).map((units, weekday) => units - (days[weekday] ?? 0));
  const measured = meanOf(differences) / week;
  const measuredVariance = squaresOf(differences, meanOf(differences)) / (week - 1) / week / week ** 2;
  const usualVariance = (usualGrowth * mean) ** 2;
  const known = usualVariance / (usualVariance + measuredVariance);
  const growth = known * measured;
  const level = (place: number) => mean + growth * (place - middle);

  const rests = days.map((units, place) => units - level(place));
  const rhythm = rests.slice(0, week).map((rest, weekday) => (rest + (rests[weekday + week] ?? 0)) / 2);
  const explained = 2 * squaresOf(rhythm, 0);
  const unexplained = squaresOf(rests, 0) - explained;
  const freedom = week - 1;
  const hasRhythm = explained / (week - 1) > (rhythmRatioMin * unexplained) / freedom;
  return {
    at: (place) => level(place) + (hasRhythm ? (rhythm[place % week] ?? 0) : 0),
    hasRhythm,
    variance: hasRhythm ? unexplained / freedom : (unexplained + explained) / (freedom + week - 1),
    growthVariance: known * measuredVariance,
  };
}

function meanOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

function squaresOf(numbers: readonly number[], from: number): number {
  return numbers.reduce((sum, number) => sum + (number - from) ** 2, 0);
}
