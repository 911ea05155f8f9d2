import { trialField } from '../record-fields.ts';
import { refusedNowFigure, trialFigure, trialFigures, trialNumber } from '../trial.ts';
import type { UnsentCounts } from '../unsent-counts.ts';
import { minuteOfHour, type UsageCalendar } from '../usage-calendar.ts';

/** The decisions of one trial on the requests of one key in the current minute. */
export class TrialMinute {
  readonly name: string;
  private readonly figures = Array<number>(trialFigures).fill(0);

  constructor(name: string) {
    this.name = name;
  }

  /** @param outcome the number of the outcome in `outcomes` */
  count(outcome: number, isRefusedNow: boolean): void {
    this.add(trialFigure(outcome));
    if (isRefusedNow) this.add(refusedNowFigure);
  }

  /** Moves the counts into `unsent`. */
  close(minute: number, { minuteMs, hourMs, dayMs }: UsageCalendar, unsent: UnsentCounts): void {
    const startMs = minute * minuteMs;
    const day = Math.floor(startMs / dayMs);
    const field = trialField(Math.floor(startMs / hourMs), this.name);
    for (const [figure, requests] of this.figures.entries()) {
      if (requests === 0) continue;
      this.figures[figure] = 0;
      unsent.add(day, field, trialNumber(minuteOfHour(minute), figure), requests);
    }
  }

  private add(figure: number): void {
    this.figures[figure] = (this.figures[figure] ?? 0) + 1;
  }
}
