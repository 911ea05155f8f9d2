import type { Limits, TrialOutcome } from '../../shared/model.ts';
import type { Period } from '../../shared/schema/dates-and-durations.ts';
import { figureOf, figurePlaceOf } from '../minute-figures.ts';
import { trialField } from '../record-fields.ts';
import { type Counts, latest } from '../store/counts.ts';
import type { RecordRead } from '../store/usage-store.ts';
import { type Outcome, outcomes } from '../tally.ts';
import { refusedNowFigure, trialFigure, trialFigures, trialName } from '../trial.ts';
import { daysOf, hoursWithin, isWithin, type UsageCalendar } from '../usage-calendar.ts';

/** Reads the decisions of trials from the usage record. */
export interface TrialReader {
  /**
   * Returns what a trial decided on the requests of each key in a period, in the order of the keys. The period includes
   * the whole minutes of its beginning and its end.
   */
  trialOf(
    keyIds: readonly string[],
    trial: Limits,
    period: Period,
  ): Promise<readonly TrialUsage[] | undefined>;
}

/** The decisions of a trial on the requests of a key. Times are the beginnings of minutes, epoch ms. */
export interface TrialUsage {
  /** The requests that the trial decided. */
  readonly requests: number;
  readonly refused: number;
  /** The refused requests by what refused them. */
  readonly refusedBy: Readonly<Partial<Record<TrialRefusal, number>>>;
  /** The requests that the plan itself refused, of the requests that the trial decided. */
  readonly refusedNow: number;
  /** The first minute with a request that the trial decided; undefined without such a request. */
  readonly firstMs: number | undefined;
  /** The first and the last minute with a request that the trial refused; undefined without such a request. */
  readonly firstRefusedMs: number | undefined;
  readonly lastRefusedMs: number | undefined;
}

/** A window of the trial, a ban of the trial, or the limit on requests in progress, which is the same in the plan and the trial. */
export type TrialRefusal = Exclude<TrialOutcome, 'admitted'>;

export function createTrialReader({
  read,
  calendar,
}: {
  readonly read: (reads: readonly RecordRead[]) => Promise<readonly Map<string, Counts>[] | undefined>;
  readonly calendar: UsageCalendar;
}): TrialReader {
  const { minuteMs, hourMs } = calendar;

  return {
    async trialOf(keyIds, trial, period) {
      const name = trialName(trial);
      const days = daysOf(period, calendar).map((day) => {
        return { day, hours: hoursWithin(day, period, calendar) };
      });
      const records = await read(
        keyIds.flatMap((keyId): RecordRead[] =>
          days.map(({ day, hours }) => {
            const fields = hours.map((hour) => trialField(hour, name));
            return { record: { kind: 'day', keyId, day }, fields };
          }),
        ),
      );
      return (
        records &&
        keyIds.map((_, index) => {
          const usage = new TrialUsageBuilder();
          for (const [place, { hours }] of days.entries()) {
            const fields = records[index * days.length + place];
            for (const hour of hours) {
              const counts = fields?.get(trialField(hour, name));
              if (counts !== undefined) addHour(usage, counts, hour * hourMs, period);
            }
          }
          return usage.finish();
        })
      );
    },
  };

  function addHour(usage: TrialUsageBuilder, counts: Counts, startMs: number, period: Period): void {
    for (const [number, value] of counts) {
      if (number === latest) continue;
      const atMs = startMs + figurePlaceOf(number) * minuteMs;
      if (!isWithin(atMs, minuteMs, period)) continue;
      const figure = figureOf(number);
      const outcome = outcomeOfFigure[figure];
      if (figure === refusedNowFigure) usage.refusedNow += value;
      // A trial does not decide a request that the gateway could not decide.
      else if (outcome !== undefined && outcome !== 'undecided') usage.add(outcome, value, atMs);
    }
  }
}

/** The outcomes by their figure. A newer gateway version may write further figures. */
const outcomeOfFigure: readonly (Outcome | undefined)[] = Array.from({ length: trialFigures }, (_, figure) =>
  outcomes.find((_, outcome) => trialFigure(outcome) === figure),
);

export function sumOfTrials(all: readonly TrialUsage[]): TrialUsage {
  const sum = new TrialUsageBuilder();
  for (const usage of all) sum.addUsage(usage);
  return sum.finish();
}

class TrialUsageBuilder {
  refusedNow = 0;
  private requests = 0;
  private refused = 0;
  private readonly refusedBy: Partial<Record<TrialRefusal, number>> = {};
  private firstMs: number | undefined;
  private firstRefusedMs: number | undefined;
  private lastRefusedMs: number | undefined;

  add(outcome: TrialOutcome, value: number, atMs: number): void {
    this.requests += value;
    this.firstMs = earlier(this.firstMs, atMs);
    if (outcome === 'admitted') return;
    this.refused += value;
    this.refusedBy[outcome] = (this.refusedBy[outcome] ?? 0) + value;
    this.firstRefusedMs = earlier(this.firstRefusedMs, atMs);
    this.lastRefusedMs = later(this.lastRefusedMs, atMs);
  }

  addUsage(usage: TrialUsage): void {
    this.requests += usage.requests;
    this.refused += usage.refused;
    this.refusedNow += usage.refusedNow;
    for (const [name, refused] of Object.entries(usage.refusedBy) as [TrialRefusal, number][])
      this.refusedBy[name] = (this.refusedBy[name] ?? 0) + refused;
    this.firstMs = earlier(this.firstMs, usage.firstMs);
    this.firstRefusedMs = earlier(this.firstRefusedMs, usage.firstRefusedMs);
    this.lastRefusedMs = later(this.lastRefusedMs, usage.lastRefusedMs);
  }

  finish(): TrialUsage {
    const { requests, refused, refusedBy, refusedNow, firstMs, firstRefusedMs, lastRefusedMs } = this;
    return { requests, refused, refusedBy, refusedNow, firstMs, firstRefusedMs, lastRefusedMs };
  }
}

function earlier(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

function later(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}
