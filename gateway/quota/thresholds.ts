import type { WindowCounts } from '../shared/calendar-windows.ts';
import type { Limits, PlanWindow } from '../shared/model.ts';
import { fieldOf, numberOf, usedOf, windowOf } from './windows.ts';

/** The windows whose thresholds are reported. Seconds and minutes are too short for a report. */
export const thresholdWindows = ['hour', 'day', 'month'] as const satisfies readonly PlanWindow[];

export type ThresholdWindow = (typeof thresholdWindows)[number];

/**
 * For each window, the highest reported percentage, and the number of the window to which the percentage belongs. The members have the names
 * of the window's fields (`fieldOf`).
 */
export type Told = {
  readonly [field: string]: { readonly index: number; readonly percent: number } | undefined;
};

/** The percentages of a limit that a key has reached in one window, and that are not reported. */
export interface Reached {
  readonly window: ThresholdWindow;
  /** The group of operations that the limit counts; absent if it counts all operations. */
  readonly group?: string | undefined;
  /** The number of the window (`windowIndex`). */
  readonly index: number;
  /** Whole percentages, ascending; at least one. */
  readonly percents: readonly number[];
  /** The charged units and the limit, which includes a running grant. */
  readonly used: number;
  readonly limit: number;
}

/** A reported percentage. */
export interface ToldMark {
  readonly window: ThresholdWindow;
  readonly group?: string | undefined;
  readonly index: number;
  readonly percent: number;
  /** The generation of the counts (`QuotaState`). */
  readonly resetMs: number;
}

type Marked = Readonly<WindowCounts> & { readonly told: Told | undefined; readonly resetMs: number };

/**
 * Returns the percentages that the counts have reached and that `told` does not have; undefined if there are none. A percentage counts as
 * reported if a higher percentage is reported.
 *
 * @param limits the limits in force
 * @param thresholds whole percentages, ascending
 */
export function untoldThresholds(
  state: Omit<Marked, 'resetMs'>,
  limits: Limits,
  thresholds: readonly number[],
): readonly Reached[] | undefined {
  const reached: Reached[] = [];
  for (const { window, group, max: limit } of limits) {
    if (!isThresholdWindow(window)) continue;
    const [index, used] = [numberOf(state, { window, group }), usedOf(state, { window, group })];
    const told = state.told?.[fieldOf({ window, group })];
    const toldPercent = told?.index === index ? told.percent : 0;
    const percents = thresholds.filter((percent) => percent > toldPercent && used * 100 >= percent * limit);
    if (percents.length > 0)
      reached.push({ window, ...(group !== undefined && { group }), index, percents, used, limit });
  }
  return reached.length > 0 ? reached : undefined;
}

/** Returns `told` with all percentages of `reached`. */
export function tellAll(told: Told | undefined, reached: readonly Reached[]): Told {
  const all: Record<string, Told[string]> = { ...told };
  for (const { index, percents, ...window } of reached)
    all[fieldOf(window)] = { index, percent: percents.at(-1) ?? 0 };
  return all;
}

/**
 * Marks a percentage as reported. The mark never decreases. Returns undefined if the window has ended, or if the counts were reset meanwhile.
 * `thresholds.lua` has the same function.
 */
export function confirmTold(
  state: Marked,
  { index, percent, resetMs, ...window }: ToldMark,
): Told | undefined {
  if (state.resetMs !== resetMs || numberOf(state, window) !== index) return undefined;
  const [before, field] = [currentTold(state), fieldOf(window)];
  return { ...before, [field]: { index, percent: Math.max(percent, before[field]?.percent ?? 0) } };
}

/** Returns `told` without ended windows. */
function currentTold(state: Marked): Told {
  return Object.fromEntries(
    Object.entries(state.told ?? {}).filter(([field, told]) => {
      const window = windowOf(field);
      return window && told?.index === numberOf(state, window);
    }),
  );
}

/** Parses the field `told` of a key's hash. */
export function unpackTold(packed: string): Told | undefined {
  if (packed === '') return undefined;
  const told: Record<string, Told[string]> = {};
  const parts = packed.split(' ');
  for (let at = 0; at < parts.length; at += 3) {
    told[parts[at] ?? ''] = { index: Number(parts[at + 1]), percent: Number(parts[at + 2]) };
  }
  return told;
}

export function isThresholdWindow(window: PlanWindow): window is ThresholdWindow {
  return (thresholdWindows as readonly PlanWindow[]).includes(window);
}
