import { type Change, chargedOf, countIn } from '../../../quota/adjust.ts';
import type { QuotaState } from '../../../quota/hash.ts';
import { type WindowsMs, windowIndex } from '../../../shared/calendar-windows.ts';
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

/** The result of a call. The figures are those of the plan, not of its trial. */
export interface GivenBack {
  readonly kind: 'given';
  /** The failed units of the call for which the key had received no credit before. */
  readonly failedUnits: number;
  /** The units that were given back, by window. If the plan has no open window of this length, the sum of its groups. */
  readonly units: UnitsByWindow;
}

type UnitsByWindow = Readonly<Record<CreditWindow, number>>;

/** The windows in which failed units are given back. Shorter windows have usually ended before an operator gives units back. */
const creditWindows = ['day', 'month'] as const;

type CreditWindow = (typeof creditWindows)[number];

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
 * Computes what gives a key back the units of its failed requests, once for each minute, bucket and upstream. Each bucket gets back only what
 * it charged. A minute adds to a window if the window is open and contains the minute, and if the counts were not reset after the minute.
 * `give-back.lua` is the same function inside Redis, and tests compare the two functions.
 *
 * @param lastMax the maximum number of credits in `last`
 */
export function giveBack(
  counts: Readonly<QuotaState>,
  credits: Credits,
  { failed, run }: CreditCall,
  {
    windowsMs,
    nowMs,
    lastMax,
  }: { readonly windowsMs: WindowsMs; readonly nowMs: number; readonly lastMax: number },
): { readonly change: Change; readonly credits: Credits; readonly given: GivenBack } {
  const handled = new Map(credits.handled);
  /** The units that are due in each window, by the field of the window. */
  const due = new Map<string, number>();
  let failedUnits = 0;
  let isAnyChanged = false;
  for (const failedHour of failed) {
    const { hour, bucket, minutes } = failedHour;
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
      if (startMs + windowsMs.minute <= counts.resetMs) continue;
      for (const window of creditWindows) {
        const windowField = windowFieldOf(bucket, window);
        const number = countIn(counts, windowField);
        const isOpen = number >= windowIndex(windowsMs[window], nowMs);
        if (isOpen && number === windowIndex(windowsMs[window], startMs))
          due.set(windowField, (due.get(windowField) ?? 0) + more);
      }
    }
    if (isChanged) handled.set(field, ofHour);
    isAnyChanged ||= isChanged;
  }
  const unitsIn = (field: string) => [field, countIn(counts, field), due.get(field) ?? 0] as const;
  const givenIn = (window: CreditWindow) => {
    const isOfPlan = counts[window] >= windowIndex(windowsMs[window], nowMs);
    const isGroup = (field: string) => field.split(':').length === 2 && field !== `trial:${window}`;
    return [...due.keys()]
      .filter((field) => field === window || (!isOfPlan && field.endsWith(`:${window}`) && isGroup(field)))
      .reduce((sum, field) => sum + chargedOf(counts, unitsIn(field)), 0);
  };
  const units = { day: givenIn('day'), month: givenIn('month') };
  const given: GivenBack = { kind: 'given', failedUnits, units };
  if (run.isDryRun || !isAnyChanged) return { change: {}, credits, given };
  for (const [field, ofHour] of credits.handled) {
    const isOld = Number.parseInt(field, 10) < run.oldestHour;
    if (isOld && handled.get(field) === ofHour) handled.delete(field);
  }
  const last = units.day + units.month === 0 ? credits.last : withCredit(credits.last, run, given, nowMs);
  const change = { units: [...due.keys()].map(unitsIn) };
  return { change, credits: { handled, last: last.slice(0, lastMax) }, given };
}

/** Returns the hash field of a bucket's window. `record-fields.ts` names the buckets. */
function windowFieldOf(bucket: string, window: CreditWindow): string {
  return bucket === 'plan' ? window : `${bucket.replace('.', ':')}:${window}`;
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
