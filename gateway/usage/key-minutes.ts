import type { Counts } from './store/counts.ts';
import { outcomes, outcomesMax } from './tally.ts';

const minutesPerHour = 60;

/**
 * The minutes in which one key sent requests, ascending, with one column for each figure. A list of keys has millions of
 * minutes, so a minute takes 28 octets and no object.
 */
export interface KeyMinutes {
  /** The number of each minute since 1970. */
  readonly minute: Float64Array;
  readonly admitted: Uint32Array;
  /** Refused by the minute, hour, day or month. */
  readonly refused: Uint32Array;
  /** Refused by the second. */
  readonly bySecond: Uint32Array;
  readonly banned: Uint32Array;
  readonly undecided: Uint32Array;
}

type Column = Exclude<keyof KeyMinutes, 'minute'>;

/** The column that each outcome is counted in, by its number. */
const columnOf: readonly Column[] = outcomes.map((outcome) => {
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

  /** Requests with this outcome in a minute that is the last one so far, or later. */
  add(minute: number, outcome: number, requests: number): void {
    if (this.minutes.at(-1) !== minute) {
      this.minutes.push(minute);
      for (const column of columns) this.figures[column].push(0);
    }
    const figures = this.figures[columnOf[outcome] ?? 'refused'];
    const last = figures.length - 1;
    figures[last] = (figures[last] ?? 0) + requests;
  }

  /**
   * The minutes of one hour (`minutes:<hour>` in `record-fields.ts`).
   *
   * @param hourStart the number of its first minute
   * @param firstMinute only from this minute on, and `lastMinute` is the last one
   */
  addHour(counts: Counts, hourStart: number, firstMinute: number, lastMinute: number): void {
    // Ascending numbers are ascending minutes.
    for (const number of [...counts.keys()].sort((a, b) => a - b)) {
      const place = Math.floor((number - 1) / outcomesMax);
      const minute = hourStart + place;
      if (place < 0 || place >= minutesPerHour || minute < firstMinute || minute > lastMinute) continue;
      this.add(minute, (number - 1) % outcomesMax, counts.get(number) ?? 0);
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
    };
  }
}

/** How many requests were asked for in the minute at this place. */
export function offeredAt(minutes: KeyMinutes, place: number): number {
  let offered = 0;
  for (const column of columns) offered += minutes[column][place] ?? 0;
  return offered;
}
