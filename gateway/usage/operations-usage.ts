import { bucketOf } from '../structures/histogram.ts';
import { durationNumber, operationHourField } from './record-fields.ts';
import { addCount, type Counts, latest } from './store/counts.ts';
import { UnsentCounts, type UnsentRoom } from './unsent-counts.ts';
import { hourOfDay, type UsageCalendar } from './usage-calendar.ts';

/** What all requests of each operation got, and how long it took, counted since the last batch. */
export class OperationsUsage {
  readonly unsent: UnsentCounts;
  private readonly calendar: UsageCalendar;
  private hour = -1;
  private operations = new Map<string, Counts>();

  constructor({ calendar, room }: { calendar: UsageCalendar; room: UnsentRoom }) {
    this.calendar = calendar;
    this.unsent = new UnsentCounts(room);
  }

  /**
   * @param operationId empty where no operation matched
   * @param ownMs what the request took apart from the upstream
   * @param upstreamMs undefined where no upstream was asked
   */
  ended(
    operationId: string,
    atMs: number,
    status: number,
    ownMs: number,
    upstreamMs: number | undefined,
  ): void {
    const hour = Math.floor(atMs / this.calendar.hourMs);
    if (hour !== this.hour) {
      this.close();
      this.hour = hour;
    }
    let counts = this.operations.get(operationId);
    if (counts === undefined) {
      counts = new Map();
      this.operations.set(operationId, counts);
    }
    addCount(counts, status, 1);
    count(counts, durationNumber.own, ownMs);
    if (upstreamMs !== undefined) count(counts, durationNumber.upstream, upstreamMs);
    addCount(counts, latest, atMs % this.calendar.dayMs);
  }

  /** Moves what is counted of the running hour into `unsent`. */
  close(): void {
    const day = Math.floor((this.hour * this.calendar.hourMs) / this.calendar.dayMs);
    for (const [operationId, counts] of this.operations) {
      const field = operationHourField(hourOfDay(this.hour), operationId);
      for (const [number, value] of counts) this.unsent.add(day, field, number, Math.round(value));
    }
    this.operations = new Map();
  }
}

function count(counts: Counts, first: number, durationMs: number): void {
  addCount(counts, first + bucketOf(durationMs), 1);
  addCount(counts, first + durationNumber.sum, durationMs);
}
