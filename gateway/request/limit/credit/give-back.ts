import type { QuotaState } from '../../../quota/hash.ts';
import { numberOf, usedFieldOf, usedOf } from '../../../quota/windows.ts';
import { type WindowCounts, type WindowsMs, windowIndex } from '../../../shared/calendar-windows.ts';
import type { FailedHour } from '../../../usage/read/failed-units.ts';

/** The failed units of a key, and the run that gives these units back. */
export interface CreditCall {
  readonly keyId: string;
  readonly failed: readonly FailedHour[];
  readonly run: CreditRun;
}

export interface CreditRun {
  /** A name without blanks. The calls of a run for the same key are shown as one credit. */
  readonly name: string;
  /** The period of the run, epoch ms. */
  readonly fromMs: number;
  readonly toMs: number;
  /** The number of the oldest hour whose failed units can still be read. Credits for earlier hours are forgotten. */
  readonly oldestHour: number;
  /** The time until which the credits must be remembered, epoch ms. After this time, no run can read the failed units. */
  readonly keptUntilMs: number;
  /** Whether the call computes the result without any change. */
  readonly isDryRun: boolean;
}

/** The result of a call. The figures are those of the plan. */
export interface GivenBack {
  readonly kind: 'given';
  /** The failed units of the call for which the key had received no credit before. */
  readonly failedUnits: number;
  /** The units that were given back, by window. */
  readonly units: UnitsByWindow;
}

type UnitsByWindow = Readonly<Record<CreditWindow, number>>;

/** The windows in which failed units are given back. Shorter windows have usually ended before an operator gives units back. */
const creditWindows = ['day', 'month'] as const;

export type CreditWindow = (typeof creditWindows)[number];

/** A credit of a key, as operators and the holder of the key see it. */
export interface Credit {
  /** The time of the credit, on the store's clock, epoch ms. */
  readonly atMs: number;
  /** The period in which the requests failed, epoch ms. */
  readonly fromMs: number;
  readonly toMs: number;
  /** The failed units, and the units that were given back, by window. */
  readonly failedUnits: number;
  readonly units: UnitsByWindow;
}

/** The credits of a key. */
export interface Credits {
  /** For each hour, bucket and upstream, the failed units of each minute for which the key has received a credit. */
  readonly handled: ReadonlyMap<string, ReadonlyMap<number, number>>;
  /** The last credits with the names of their runs, the newest first. */
  readonly last: readonly (Credit & { readonly run: string })[];
}

export const noCredits: Credits = { handled: new Map(), last: [] };

/**
 * Gives a key back the units of its failed requests, once for each minute, bucket and upstream. Each bucket gets back only what it charged. A
 * minute adds to a window if the window is open and contains the minute, and if the counts were not reset after the minute. The used units
 * of a window never become negative.
 * `give-back.lua` is the same function inside Redis, and tests compare the two functions.
 *
 * @param lastMax the maximum number of credits in `last`
 */
export function giveBack(
  before: Readonly<QuotaState>,
  credits: Credits,
  { failed, run }: CreditCall,
  {
    windowsMs,
    nowMs,
    lastMax,
  }: { readonly windowsMs: WindowsMs; readonly nowMs: number; readonly lastMax: number },
): { readonly state: Readonly<QuotaState>; readonly credits: Credits; readonly given: GivenBack } {
  const handled = new Map(credits.handled);
  /** The units that are due in the windows of each bucket. */
  const due = new Map<string, { day: number; month: number }>();
  let failedUnits = 0;
  let isAnyChanged = false;
  for (const failedHour of failed) {
    const { hour, bucket, minutes } = failedHour;
    const { group, isOfTrial } = bucketIn(bucket);
    const counts = isOfTrial ? before.trial : before;
    const dueInBucket = due.get(bucket) ?? { day: 0, month: 0 };
    due.set(bucket, dueInBucket);
    const field = creditField(failedHour);
    const ofHour = new Map(handled.get(field));
    let isChanged = false;
    for (const { minute, units } of minutes) {
      const more = units - (ofHour.get(minute) ?? 0);
      if (more <= 0) continue;
      ofHour.set(minute, units);
      isChanged = true;
      if (bucket === 'plan') failedUnits += more;
      const startMs = (hour * 60 + minute) * windowsMs.minute;
      if (counts === undefined || startMs + windowsMs.minute <= before.resetMs) continue;
      for (const window of creditWindows) {
        const lengthMs = windowsMs[window];
        const number = numberOf(counts, { window, group });
        const isOpen = number >= windowIndex(lengthMs, nowMs);
        if (isOpen && number === windowIndex(lengthMs, startMs)) dueInBucket[window] += more;
      }
    }
    if (isChanged) handled.set(field, ofHour);
    isAnyChanged ||= isChanged;
  }
  const { day = 0, month = 0 } = due.get('plan') ?? {};
  const units = { day: Math.min(day, before.dayUsed), month: Math.min(month, before.monthUsed) };
  const given: GivenBack = { kind: 'given', failedUnits, units };
  if (run.isDryRun || !isAnyChanged) return { state: before, credits, given };
  for (const [field, ofHour] of credits.handled) {
    const isOld = Number.parseInt(field, 10) < run.oldestHour;
    if (isOld && handled.get(field) === ofHour) handled.delete(field);
  }
  const last = units.day + units.month === 0 ? credits.last : withCredit(credits.last, run, given, nowMs);
  const state = withoutUnits(before, due, false);
  const trial = before.trial && withoutUnits(before.trial, due, true);
  if (trial !== undefined) state.trial = trial;
  return { state, credits: { handled, last: last.slice(0, lastMax) }, given };
}

/** Adds a credit as the newest one. An earlier credit of the same run becomes part of the new credit. */
function withCredit(
  last: Credits['last'],
  { name, fromMs, toMs }: CreditRun,
  { failedUnits, units }: GivenBack,
  nowMs: number,
): Credits['last'] {
  const earlier = last.find(({ run }) => run === name);
  const credit = {
    run: name,
    atMs: nowMs,
    fromMs,
    toMs,
    failedUnits: failedUnits + (earlier?.failedUnits ?? 0),
    units: {
      day: units.day + (earlier?.units.day ?? 0),
      month: units.month + (earlier?.units.month ?? 0),
    },
  };
  return [credit, ...last.filter((one) => one !== earlier)];
}

/** The name of the field with the handled units of an hour. */
export function creditField({ hour, bucket, upstream }: Omit<FailedHour, 'minutes'>): string {
  return `${hour}:${bucket === 'plan' ? '' : `${bucket}/`}${upstream}`;
}

/** Takes units back from the used units of each window of a side, which never become negative. */
function withoutUnits<Counts extends WindowCounts>(
  counts: Readonly<Counts>,
  due: ReadonlyMap<string, UnitsByWindow>,
  isTrial: boolean,
): Counts {
  const after: Counts = { ...counts };
  const change: WindowCounts = after;
  for (const [bucket, units] of due) {
    const { group, isOfTrial } = bucketIn(bucket);
    if (isOfTrial !== isTrial) continue;
    for (const window of creditWindows) {
      const used = usedOf(counts, { window, group });
      if (used > 0) change[usedFieldOf({ window, group })] = Math.max(0, used - units[window]);
    }
  }
  return after;
}

/** Returns the side and the group of a bucket in the usage record (`record-fields.ts`). */
function bucketIn(bucket: string): { readonly isOfTrial: boolean; readonly group: string | undefined } {
  const [first = '', ofTrial] = bucket.split('.');
  const isOfTrial = first === 'trial';
  const isWhole = first === 'plan' || isOfTrial;
  return { isOfTrial, group: isWhole ? ofTrial : first };
}
