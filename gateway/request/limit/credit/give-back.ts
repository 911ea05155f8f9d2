import { type Adjustment, givenBack } from '../../../quota/adjust.ts';
import { numberIn, type QuotaState } from '../../../quota/hash.ts';
import { type WindowsMs, windowIndex } from '../../../shared/calendar-windows.ts';
import type { FailedHour } from '../../../usage/read/failed-units.ts';
import type { Bucket } from '../../../usage/record-fields.ts';

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
 * @returns the change to the counts of the key, its credits after the call, and the result of the call
 */
export function giveBack(
  before: Readonly<QuotaState>,
  credits: Credits,
  { failed, run }: CreditCall,
  { nowMs, lastMax, ...clock }: Clock & { readonly lastMax: number },
): { readonly change: Adjustment; readonly credits: Credits; readonly given: GivenBack } {
  const handled = new Map(credits.handled);
  const due = new Map<string, number>();
  let failedUnits = 0;
  for (const hour of failed) {
    for (const [startMs, units] of addUnhandled(handled, hour, clock.windowsMs)) {
      if (hour.bucket === 'plan') failedUnits += units;
      for (const field of windowsOf(before, hour.bucket, startMs, { nowMs, ...clock }))
        due.set(field, (due.get(field) ?? 0) + units);
    }
  }
  const unitsBack = [...due].map(([field, units]) => [field, numberIn(before, field), units] as const);
  const givenIn = (window: CreditWindow) => givenBack(before, [window, before[window], due.get(window) ?? 0]);
  const units = { day: givenIn('day'), month: givenIn('month') };
  const given: GivenBack = { kind: 'given', failedUnits, units };
  const isChanged = ([field, ofHour]: HandledHour) => credits.handled.get(field) !== ofHour;
  if (run.isDryRun || ![...handled].some(isChanged)) return { change: {}, credits, given };
  const kept = [...handled].filter((one) => isChanged(one) || Number.parseInt(one[0], 10) >= run.oldestHour);
  const last = units.day + units.month === 0 ? credits.last : withCredit(credits.last, run, given, nowMs);
  const after: Credits = { handled: new Map(kept), last: last.slice(0, lastMax) };
  return { change: { giveBack: unitsBack }, credits: after, given };
}

type HandledHour = readonly [field: string, ofHour: ReadonlyMap<number, number>];

interface Clock {
  readonly windowsMs: WindowsMs;
  readonly nowMs: number;
}

/** Adds the failed units of an hour to the handled units. @returns the beginning of each minute with further units, and these units */
function addUnhandled(
  handled: Map<string, ReadonlyMap<number, number>>,
  failedHour: FailedHour,
  windowsMs: WindowsMs,
): readonly (readonly [startMs: number, units: number])[] {
  const field = creditField(failedHour);
  const ofHour = new Map(handled.get(field));
  const further: [number, number][] = [];
  for (const { minute, units } of failedHour.minutes) {
    const more = units - (ofHour.get(minute) ?? 0);
    if (more <= 0) continue;
    ofHour.set(minute, units);
    further.push([(failedHour.hour * 60 + minute) * windowsMs.minute, more]);
  }
  if (further.length > 0) handled.set(field, ofHour);
  return further;
}

/** Returns the fields of the open windows of a bucket that count a minute. */
function windowsOf(
  before: Readonly<QuotaState>,
  bucket: Bucket,
  startMs: number,
  { windowsMs, nowMs }: Clock,
): readonly string[] {
  if (startMs + windowsMs.minute <= before.resetMs) return [];
  const prefix = bucket === 'plan' ? '' : `${bucket.replace('.', ':')}:`;
  return creditWindows.flatMap((window) => {
    const [lengthMs, field] = [windowsMs[window], prefix + window];
    const number = numberIn(before, field);
    return number >= windowIndex(lengthMs, nowMs) && number === windowIndex(lengthMs, startMs) ? [field] : [];
  });
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
