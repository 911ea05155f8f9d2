import { type WindowsMs, windowIndex, windowStartMs } from '../../../shared/calendar-windows.ts';
import type { Limits, PlanWindow } from '../../../shared/model.ts';

/** The lengths of the minutes and windows of a record. */
export interface Calendar {
  /** The length of a minute of the record: 60,000 ms, or less in tests. */
  readonly minuteMs: number;
  /** The lengths of the windows, each a whole number of minutes. */
  readonly windowsMs: WindowsMs;
}

/** The units that were charged to windows before the first minute of the replay, with the number of each window (`windowIndex`). */
export type UsedEarlier = ReadonlyMap<PlanWindow, { readonly index: number; readonly used: number }>;

/** The limits from a minute on, until the next step. */
export interface LimitStep {
  readonly fromMinute: number;
  readonly limits: Limits;
}

/** The operations on the counts of a window. */
interface CountsOf<Counts> {
  /** Makes the counts of a window, or sets them to the used units at the start of the window. */
  readonly start: (used: number, counts?: Counts) => Counts;
  /**
   * A window gets a limit, perhaps again before it ends. The counts of a bound must then allow for all that the other bound allows, because the
   * requests in between count only in other windows: a replay that admitted fewer requests before may have admitted more of those.
   */
  readonly regain: (counts: Counts) => void;
}

/** A calendar window that is longer than a minute and has a limit. */
interface LimitedWindow<Counts> {
  readonly max: number;
  readonly counts: Counts;
  readonly of: WindowCounts<Counts>;
}

/** The counts of a calendar window, for all limits that the window has over time. */
interface WindowCounts<Counts> {
  readonly window: PlanWindow;
  readonly counts: Counts;
  /** Whether the window has a limit from the first step on, so that `UsedEarlier` applies. */
  readonly isFirst: boolean;
  endMinute: number;
}

/**
 * The calendar windows of a replay, under limits that change over time. A window without a limit is not counted: its count begins at zero
 * when it gets a limit, and stays as it is while the window has no limit. The limit per second is ignored, because a second is shorter than
 * a minute.
 */
export class WindowsOverTime<Counts> {
  /** The limits of the last opened minute. */
  limits: Limits = [];
  /** The minute limit; Infinity without such a limit. */
  minuteMax = Number.POSITIVE_INFINITY;
  /** The longer windows that have a limit. */
  limited: readonly LimitedWindow<Counts>[] = [];
  /** The next minute in which a longer window ends or the limits change. */
  nextEnd = Number.NEGATIVE_INFINITY;
  private readonly steps: readonly LimitStep[];
  private readonly calendar: Calendar;
  private readonly earlier: UsedEarlier | undefined;
  private readonly countsOf: CountsOf<Counts>;
  private readonly known = new Map<PlanWindow, WindowCounts<Counts>>();
  private nextStep = 0;

  constructor(
    steps: readonly LimitStep[],
    calendar: Calendar,
    earlier: UsedEarlier | undefined,
    countsOf: CountsOf<Counts>,
  ) {
    this.steps = steps;
    this.calendar = calendar;
    this.earlier = earlier;
    this.countsOf = countsOf;
  }

  /** Starts a new window in place of each window that has ended. Callers pass minutes in ascending order. */
  openMinute(minute: number): void {
    if (minute < this.nextEnd) return;
    while (this.nextStep === 0 || minute >= this.nextStepMinute()) this.takeStep();
    this.nextEnd = this.nextStepMinute();
    for (const { of } of this.limited) {
      if (minute >= of.endMinute) this.startWindow(of, minute);
      this.nextEnd = Math.min(this.nextEnd, of.endMinute);
    }
  }

  private nextStepMinute(): number {
    return this.steps[this.nextStep]?.fromMinute ?? Number.POSITIVE_INFINITY;
  }

  private takeStep(): void {
    const isFirst = this.nextStep === 0;
    this.limits = this.steps[this.nextStep]?.limits ?? [];
    this.nextStep += 1;
    this.minuteMax = this.limits.find(({ window }) => window === 'minute')?.max ?? Number.POSITIVE_INFINITY;
    const before = new Set(this.limited.map(({ of }) => of));
    const long = this.limits.filter(({ window }) => window !== 'second' && window !== 'minute');
    this.limited = long.map(({ window, max }) => {
      const of = this.known.get(window) ?? {
        ...{ window, isFirst, counts: this.countsOf.start(0) },
        endMinute: Number.NEGATIVE_INFINITY,
      };
      this.known.set(window, of);
      if (!before.has(of)) this.countsOf.regain(of.counts);
      return { max, counts: of.counts, of };
    });
  }

  private startWindow(one: WindowCounts<Counts>, minute: number): void {
    const { minuteMs, windowsMs } = this.calendar;
    const lengthMs = windowsMs[one.window];
    const index = windowIndex(lengthMs, minute * minuteMs);
    one.endMinute = windowStartMs(lengthMs, index + 1) / minuteMs;
    const earlier = one.isFirst ? this.earlier?.get(one.window) : undefined;
    this.countsOf.start(earlier?.index === index ? earlier.used : 0, one.counts);
  }
}

/**
 * Tracks the remaining room of calendar windows in two replays: one that admits the most requests, and one that admits the least. Every
 * window begins on a minute boundary, so a replay from counts per minute is exact. In each minute, requests are admitted until the fullest
 * window has no room, and all later requests are refused. A refused request adds no units to any window.
 *
 * A charge reduces the room of every window longer than a minute by the same number of units. Until one of the windows
 * ends, a caller therefore needs only the room of the fullest window.
 */
export class WindowRooms {
  /** The room of the longer windows; negative if more units were used. */
  mostRoom = Number.POSITIVE_INFINITY;
  leastRoom = Number.POSITIVE_INFINITY;
  private readonly windows: WindowsOverTime<{ most: number; least: number }>;

  constructor(steps: readonly LimitStep[], calendar: Calendar, earlier: UsedEarlier | undefined) {
    this.windows = new WindowsOverTime(steps, calendar, earlier, {
      start: (used, counts = { most: used, least: used }) =>
        Object.assign(counts, { most: used, least: used }),
      regain(counts) {
        const { most, least } = counts;
        counts.most = Math.min(most, least);
        counts.least = Math.max(most, least);
      },
    });
  }

  get limits(): Limits {
    return this.windows.limits;
  }

  get minuteMax(): number {
    return this.windows.minuteMax;
  }

  get nextEnd(): number {
    return this.windows.nextEnd;
  }

  /**
   * Adds used units to the windows, and then starts a new window in place of each window that has ended.
   *
   * @param minute not before that of an earlier call
   * @param most the units that the replay with the most requests has used since the last call, at most until `nextEnd` @param least those
   *   of the other replay
   */
  open(minute: number, most: number, least: number): void {
    for (const { counts } of this.windows.limited) {
      counts.most += most;
      counts.least += least;
    }
    this.windows.openMinute(minute);
    this.mostRoom = Number.POSITIVE_INFINITY;
    this.leastRoom = Number.POSITIVE_INFINITY;
    for (const { max, counts } of this.windows.limited) {
      this.mostRoom = Math.min(this.mostRoom, max - counts.most);
      this.leastRoom = Math.min(this.leastRoom, max - counts.least);
    }
  }
}

/** Returns how many of the given requests fit into the windows. */
export function fitting(requests: number, minuteMax: number, room: number): number {
  const fits = requests < minuteMax ? requests : minuteMax;
  return fits < room ? fits : room > 0 ? room : 0;
}
