import type { Counts } from '../store/counts.ts';
import { firstOutcomes, outcomeAt, outcomes, placeOf, unitsNumber } from '../tally.ts';

const minutesPerHour = 60;

/**
 * The minutes in which one key sent requests, ascending, with one column for each figure. A query about many keys
 * may read millions of minutes. A minute therefore takes only 28 octets, and is not stored as an object.
 */
export interface KeyMinutes {
  /** The number of each minute since 1970. */
  readonly minute: Float64Array;
  readonly admitted: Uint32Array;
  /** Requests that the minute, hour, day or month limit refused. */
  readonly refused: Uint32Array;
  /** Requests that the limit per second refused. */
  readonly bySecond: Uint32Array;
  readonly banned: Uint32Array;
  readonly undecided: Uint32Array;
  /** The costs of the requests in each column; absent if every request cost 1 unit. */
  readonly costs?: Readonly<Record<Column, Costs>> | undefined;
}

/** The costs of one column, with one value for each minute of `KeyMinutes`. */
interface Costs {
  /** Units in excess of 1 unit per request. */
  readonly extra: Float64Array;
  /** Requests that cost nothing. */
  readonly free: Float64Array;
}

type Column = Exclude<keyof KeyMinutes, 'minute' | 'costs'>;

/**
 * The column in which each of the first eight outcomes is counted, by the outcome's number. Requests that the
 * concurrency limit refused have no column, because no window was charged and no simulation replays these requests.
 */
const columnOf: readonly Column[] = outcomes.slice(0, firstOutcomes).map((outcome) => {
  switch (outcome) {
    case 'admitted':
    case 'banned':
    case 'undecided':
      return outcome;
    case 'second':
      return 'bySecond';
    default:
      return 'refused';
  }
});

const columns = [...new Set(columnOf)];

/** Collects the minutes of one key, in ascending order. */
export class KeyMinutesBuilder {
  private readonly minutes: number[] = [];
  private readonly figures: Readonly<Record<Column, number[]>> = {
    admitted: [],
    refused: [],
    bySecond: [],
    banned: [],
    undecided: [],
  };
  /** The costs by column and by the minute's position. Most keys have no costs. */
  private readonly costs = new Map<Column, Map<number, { extra: number; free: number }>>();

  /** Adds requests with one outcome. The minute must be the last added minute or a later minute. */
  add(minute: number, outcome: number, requests: number, extra = 0, free = 0): void {
    if (this.minutes.at(-1) !== minute) {
      this.minutes.push(minute);
      for (const column of columns) this.figures[column].push(0);
    }
    const column = columnOf[outcome] ?? 'refused';
    const figures = this.figures[column];
    const last = figures.length - 1;
    figures[last] = (figures[last] ?? 0) + requests;
    if (extra === 0 && free === 0) return;
    const costs = this.costs.get(column) ?? new Map<number, { extra: number; free: number }>();
    const known = costs.get(last) ?? { extra: 0, free: 0 };
    this.costs.set(column, costs.set(last, { extra: known.extra + extra, free: known.free + free }));
  }

  /**
   * Adds the minutes of one hour (`minutes:<hour>` and `units:<hour>` in `../record-fields.ts`).
   *
   * @param hourStart the number of its first minute
   * @param firstMinute only from this minute on, and `lastMinute` is the last one
   */
  addHour(
    { counts, units }: { readonly counts: Counts; readonly units: Counts | undefined },
    hourStart: number,
    firstMinute: number,
    lastMinute: number,
  ): void {
    for (const number of [...counts.keys()].sort((a, b) => placeOf(a) - placeOf(b))) {
      const place = placeOf(number);
      const minute = hourStart + place;
      if (number === 0 || place >= minutesPerHour || minute < firstMinute || minute > lastMinute) continue;
      const outcome = outcomeAt(number);
      const requests = counts.get(number) ?? 0;
      if (units === undefined) {
        this.add(minute, outcome, requests);
        continue;
      }
      const { extra, free } = unitsNumber(place, outcome);
      this.add(minute, outcome, requests, units.get(extra) ?? 0, units.get(free) ?? 0);
    }
  }

  finish(): KeyMinutes {
    const { admitted, refused, bySecond, banned, undecided } = this.figures;
    return {
      minute: Float64Array.from(this.minutes),
      admitted: Uint32Array.from(admitted),
      refused: Uint32Array.from(refused),
      bySecond: Uint32Array.from(bySecond),
      banned: Uint32Array.from(banned),
      undecided: Uint32Array.from(undecided),
      ...(this.costs.size > 0 && { costs: this.finishCosts() }),
    };
  }

  private finishCosts(): Record<Column, Costs> {
    const costsOf = (column: Column): Costs => {
      const extra = new Float64Array(this.minutes.length);
      const free = new Float64Array(this.minutes.length);
      for (const [place, costs] of this.costs.get(column) ?? []) {
        extra[place] = costs.extra;
        free[place] = costs.free;
      }
      return { extra, free };
    };
    return {
      admitted: costsOf('admitted'),
      refused: costsOf('refused'),
      bySecond: costsOf('bySecond'),
      banned: costsOf('banned'),
      undecided: costsOf('undecided'),
    };
  }
}

/** Adds the requests that were refused in each minute. */
export function withRefused(minutes: KeyMinutes, refused: ReadonlyMap<number, number>): KeyMinutes {
  if (refused.size === 0) return minutes;
  const builder = new KeyMinutesBuilder();
  const places = new Map([...minutes.minute].map((minute, place) => [minute, place]));
  for (const minute of [...new Set([...places.keys(), ...refused.keys()])].sort((a, b) => a - b)) {
    const place = places.get(minute);
    for (const column of place === undefined ? [] : columns) {
      const { extra, free } = minutes.costs?.[column] ?? {};
      const [at, requests] = [place ?? 0, minutes[column][place ?? 0] ?? 0];
      builder.add(minute, columnOf.indexOf(column), requests, extra?.[at] ?? 0, free?.[at] ?? 0);
    }
    builder.add(minute, columnOf.indexOf('refused'), refused.get(minute) ?? 0);
  }
  return builder.finish();
}

export function offeredAt(minutes: KeyMinutes, place: number): number {
  let offered = 0;
  for (const column of columns) offered += minutes[column][place] ?? 0;
  return offered;
}

/** Returns the total cost in units of the requests in one column, for the minute at a position. */
export function unitsAt(minutes: KeyMinutes, column: Column, place: number): number {
  const requests = minutes[column][place] ?? 0;
  const costs = minutes.costs?.[column];
  return costs === undefined ? requests : requests + (costs.extra[place] ?? 0) - (costs.free[place] ?? 0);
}

export function offeredUnitsAt(minutes: KeyMinutes, place: number): number {
  let offered = 0;
  for (const column of columns) offered += unitsAt(minutes, column, place);
  return offered;
}

/** Returns the units that were charged to the windows, by minute. */
export function chargedUnits(minutes: KeyMinutes): Uint32Array | Float64Array {
  if (minutes.costs === undefined) return minutes.admitted;
  return Float64Array.from(minutes.minute, (_, place) => unitsAt(minutes, 'admitted', place));
}
