import type { UnsentCounts } from './unsent-counts.ts';
import { minuteOfHour, type UsageCalendar } from './usage-calendar.ts';

/** The maximum number of minutes of an hour (60), or of days of a month (31), of a figure in one field. */
const placesMax = 64;

/** Returns the number that identifies a figure of one minute of an hour, or of one day of a month. */
export const figureNumber = (place: number, figure: number) => 1 + figure * placesMax + place;

/** Returns the figure to which a number in a field belongs, and the minute of the hour or the day of the month. */
export const figureOf = (number: number) => Math.floor((number - 1) / placesMax);
export const figurePlaceOf = (number: number) => (number - 1) % placesMax;

/** Figures of one key in the current minute, for a field that has each figure by minute. */
export class MinuteFigures {
  private readonly fieldOf: (hour: number) => string;
  private readonly figures: number[] = [];

  /** @param fieldOf returns the name of the field for an hour, which is numbered since 1970 */
  constructor(fieldOf: (hour: number) => string) {
    this.fieldOf = fieldOf;
  }

  add(figure: number, value = 1): void {
    this.figures[figure] = (this.figures[figure] ?? 0) + value;
  }

  /** Moves the figures into `unsent`. */
  close(minute: number, { minuteMs, hourMs, dayMs }: UsageCalendar, unsent: UnsentCounts): void {
    const startMs = minute * minuteMs;
    const day = Math.floor(startMs / dayMs);
    const field = this.fieldOf(Math.floor(startMs / hourMs));
    for (const [figure, value] of this.figures.entries()) {
      if (value) unsent.add(day, field, figureNumber(minuteOfHour(minute), figure), value);
    }
    this.figures.length = 0;
  }
}
