import { bucketOf } from '../structures/histogram.ts';
import { durationNumber, operationHourField } from './record-fields.ts';
import { addCount, type Counts, latest } from './store/counts.ts';
import { Traffic, type TrafficEnding, trafficEndings } from './traffic.ts';
import { UnsentCounts, type UnsentRoom } from './unsent-counts.ts';
import { hourOfDay, type UsageCalendar } from './usage-calendar.ts';

export interface EndedRequest {
  /** Empty where no operation matched. */
  readonly operationId: string;
  /** On the deciding clock where there was a decision, epoch ms. */
  readonly atMs: number;
  readonly status: number;
  readonly ending: TrafficEnding;
  /** What it took apart from the upstream; undefined for a WebSocket. */
  readonly ownMs: number | undefined;
  /** Undefined where no upstream was asked. */
  readonly upstreamMs: number | undefined;
}

/** What all requests of each operation got, and how long it took, counted since the last batch. */
export class OperationsUsage {
  readonly unsent: UnsentCounts;
  private readonly calendar: UsageCalendar;
  private readonly traffic: Traffic;
  private hour = -1;
  private operations = new Map<string, Counts>();

  constructor({ calendar, room }: { calendar: UsageCalendar; room: UnsentRoom }) {
    this.calendar = calendar;
    this.unsent = new UnsentCounts(room);
    this.traffic = new Traffic(calendar, this.unsent);
  }

  ended({ operationId, atMs, status, ending, ownMs, upstreamMs }: EndedRequest): void {
    this.traffic.count(trafficEndings.indexOf(ending), atMs, ownMs, upstreamMs);
    const hour = Math.floor(atMs / this.calendar.hourMs);
    if (hour !== this.hour) {
      this.closeHour();
      this.hour = hour;
    }
    let counts = this.operations.get(operationId);
    if (counts === undefined) {
      counts = new Map();
      this.operations.set(operationId, counts);
    }
    addCount(counts, status, 1);
    if (ownMs !== undefined) count(counts, durationNumber.own, ownMs);
    if (upstreamMs !== undefined) count(counts, durationNumber.upstream, upstreamMs);
    addCount(counts, latest, atMs % this.calendar.dayMs);
  }

  /** Moves what is counted of the running minute and hour into `unsent`. */
  close(): void {
    this.traffic.close();
    this.closeHour();
  }

  private closeHour(): void {
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
