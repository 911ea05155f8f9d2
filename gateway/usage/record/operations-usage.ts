import { Histogram } from '../../shared/structures/histogram.ts';
import { durationNumber, operationHourField } from '../record-fields.ts';
import { latest } from '../store/counts.ts';
import { Traffic, type TrafficEnding, trafficEndings } from '../traffic.ts';
import { UnsentCounts, type UnsentRoom } from '../unsent-counts.ts';
import { hourOfDay, type UsageCalendar } from '../usage-calendar.ts';

export interface EndedRequest {
  /** The id of the operation; empty if the request matched no operation. */
  readonly operationId: string;
  /** The time at which the request is counted, epoch ms. The time of a decision is on the store's clock. */
  readonly atMs: number;
  readonly status: number;
  readonly ending: TrafficEnding;
  /** The duration without the time of the upstream. For a WebSocket, the duration of the handshake. */
  readonly ownMs: number;
  /** The duration at the upstream; undefined when the request reached no upstream. */
  readonly upstreamMs: number | undefined;
}

/** An HTTP status has three digits (RFC 9110 §15). */
const statusesMax = 1_000;

class OperationHour {
  readonly id: string;
  readonly byStatus = Array<number>(statusesMax).fill(0);
  readonly own = new Histogram();
  readonly upstream = new Histogram();
  /** The time of the last request; 0 if no request has ended since the last batch. */
  lastMs = 0;

  constructor(id: string) {
    this.id = id;
  }
}

/**
 * The statuses and durations of each operation since the last batch. As in `key-usage.ts`, the counts of the current
 * hour are plain numbers. The counts of the hour move into `unsent` when the hour ends, or when the record is read.
 */
export class OperationsUsage {
  readonly unsent: UnsentCounts;
  private readonly calendar: UsageCalendar;
  private readonly traffic: Traffic;
  private hour = -1;
  private readonly operations = new Map<string, OperationHour>();
  private lastOperation: OperationHour | undefined;

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
      this.operations.clear();
      this.lastOperation = undefined;
      this.hour = hour;
    }
    const known = this.lastOperation;
    const operation = known?.id === operationId ? known : this.operationOf(operationId);
    operation.byStatus[status] = (operation.byStatus[status] ?? 0) + 1;
    operation.own.add(ownMs);
    if (upstreamMs !== undefined) operation.upstream.add(upstreamMs);
    if (atMs > operation.lastMs) operation.lastMs = atMs;
  }

  /** Moves the counts of the current minute and hour into `unsent`. */
  close(): void {
    this.traffic.close();
    this.closeHour();
  }

  private operationOf(id: string): OperationHour {
    const operation = this.operations.get(id) ?? new OperationHour(id);
    this.operations.set(id, operation);
    this.lastOperation = operation;
    return operation;
  }

  private closeHour(): void {
    const { hourMs, dayMs } = this.calendar;
    const day = Math.floor((this.hour * hourMs) / dayMs);
    for (const operation of this.operations.values()) {
      if (operation.lastMs === 0) continue;
      const field = operationHourField(hourOfDay(this.hour), operation.id);
      const add = (number: number, value: number) => {
        if (value > 0) this.unsent.add(day, field, number, Math.round(value));
      };
      for (const [status, requests] of operation.byStatus.entries()) if (status > 0) add(status, requests);
      operation.byStatus.fill(0);
      moveDurations(operation.own, durationNumber.own, add);
      moveDurations(operation.upstream, durationNumber.upstream, add);
      add(latest, operation.lastMs % dayMs);
      operation.lastMs = 0;
    }
  }
}

/**
 * Records hold whole milliseconds, but a request often takes less than one millisecond. The fraction of a millisecond
 * stays in the sum until the next flush. If the fraction were dropped, the recorded time of an operation with few
 * requests per flush would be zero.
 */
function moveDurations(
  histogram: Histogram,
  first: number,
  add: (number: number, value: number) => void,
): void {
  for (const [bucket, requests] of histogram.counts.entries()) add(first + bucket, requests);
  histogram.counts.fill(0);
  const wholeMs = Math.trunc(histogram.sumMs);
  add(first + durationNumber.sum, wholeMs);
  histogram.sumMs -= wholeMs;
}
