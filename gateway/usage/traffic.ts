import { bucketOf } from '../shared/structures/histogram.ts';
import type { Counts } from './store/counts.ts';
import type { UnsentCounts } from './unsent-counts.ts';
import { hourText, minuteOfHour, type UsageCalendar } from './usage-calendar.ts';

/**
 * The ways in which a request can end: served; refused by a limit or a ban; rejected before a key was known; failed at
 * the gateway; failed at the upstream. The store identifies an ending by its position in this list, so add new endings
 * at the end.
 */
export const trafficEndings = [
  'served',
  'refused',
  'banned',
  'rejected',
  'failedByGateway',
  'failedByUpstream',
] as const;

export type TrafficEnding = (typeof trafficEndings)[number];

/**
 * The number of values that a field has for each minute: `endingsPerMinute` in `ended:<hour>`, and `bucketsPerMinute`
 * in `own:<hour>` and `upstream:<hour>`.
 */
const endingsPerMinute = 8;
const bucketsPerMinute = 20;

const endedNumber = (minute: number, ending: number) => 1 + minute * endingsPerMinute + ending;
const bucketNumber = (minute: number, bucket: number) => 1 + minute * bucketsPerMinute + bucket;

export const trafficField = (what: 'ended' | 'own' | 'upstream', hour: number) => `${what}:${hourText(hour)}`;

/** Counts the requests of this process in each minute since the last batch. */
export class Traffic {
  private readonly calendar: UsageCalendar;
  private readonly unsent: UnsentCounts;
  private minute = -1;
  private readonly ended = Array<number>(endingsPerMinute).fill(0);
  private readonly own = Array<number>(bucketsPerMinute).fill(0);
  private readonly upstream = Array<number>(bucketsPerMinute).fill(0);

  constructor(calendar: UsageCalendar, unsent: UnsentCounts) {
    this.calendar = calendar;
    this.unsent = unsent;
  }

  count(ending: number, atMs: number, ownMs: number, upstreamMs: number | undefined): void {
    const minute = Math.floor(atMs / this.calendar.minuteMs);
    if (minute !== this.minute) {
      this.close();
      this.minute = minute;
    }
    increase(this.ended, ending);
    increase(this.own, bucketOf(ownMs));
    if (upstreamMs !== undefined) increase(this.upstream, bucketOf(upstreamMs));
  }

  /** Moves the counts of the current minute into `unsent`. */
  close(): void {
    const { minuteMs, hourMs, dayMs } = this.calendar;
    const startMs = this.minute * minuteMs;
    const day = Math.floor(startMs / dayMs);
    const hour = Math.floor(startMs / hourMs);
    const place = minuteOfHour(this.minute);
    const move = (counts: number[], field: string, numberOf: (minute: number, index: number) => number) => {
      for (const [index, value] of counts.entries()) {
        if (value === 0) continue;
        this.unsent.add(day, field, numberOf(place, index), value);
        counts[index] = 0;
      }
    };
    move(this.ended, trafficField('ended', hour), endedNumber);
    move(this.own, trafficField('own', hour), bucketNumber);
    move(this.upstream, trafficField('upstream', hour), bucketNumber);
  }
}

function increase(counts: number[], index: number): void {
  counts[index] = (counts[index] ?? 0) + 1;
}

/** Groups the numbers of a field by the minute of the hour. */
export function byMinute(
  counts: Counts | undefined,
  perMinute: 'endings' | 'buckets',
): Map<number, number[]> {
  const width = perMinute === 'endings' ? endingsPerMinute : bucketsPerMinute;
  const minutes = new Map<number, number[]>();
  for (const [number, value] of counts ?? []) {
    if (number === 0) continue;
    const minute = Math.floor((number - 1) / width);
    const values = minutes.get(minute) ?? Array<number>(width).fill(0);
    const index = (number - 1) % width;
    values[index] = (values[index] ?? 0) + value;
    minutes.set(minute, values);
  }
  return minutes;
}
