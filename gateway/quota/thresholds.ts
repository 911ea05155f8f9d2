import type { WindowCounts } from '../shared/calendar-windows.ts';
import type { Limits, PlanWindow } from '../shared/model.ts';
import { fieldOf, numberOf, usedOf, windowOf } from './windows.ts';

/** Seconds and minutes are too short for a report. */
export const thresholdWindows = ['hour', 'day', 'month'] as const satisfies readonly PlanWindow[];

export type ThresholdWindow = (typeof thresholdWindows)[number];

/** The highest reported percentage, and the number of its window, by the name of the window's field (`fieldOf`). */
export type Told = {
  readonly [field: string]: { readonly index: number; readonly percent: number } | undefined;
};

/** Percentages that a key has reached in one window, and that are not reported. */
export interface Reached {
  readonly window: ThresholdWindow;
  /** Absent if the limit counts all operations. */
  readonly group?: string | undefined;
  /** See `windowIndex`. */
  readonly index: number;
  /** Whole percentages, ascending; at least one. */
  readonly percents: readonly number[];
  /** The limit includes a running grant. */
  readonly used: number;
  readonly limit: number;
}

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
 * The percentages that the counts have reached and `told` does not have; undefined if there are none. A percentage below a reported one
 * counts as reported.
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

export function tellAll(told: Told | undefined, reached: readonly Reached[]): Told {
  const all: Record<string, Told[string]> = { ...told };
  for (const { index, percents, ...window } of reached)
    all[fieldOf(window)] = { index, percent: percents.at(-1) ?? 0 };
  return all;
}

/**
 * The mark never decreases. Undefined if the window has ended, or if the counts were reset meanwhile. `thresholds.lua` has the same
 * function.
 */
export function confirmTold(
  state: Marked,
  { index, percent, resetMs, ...window }: ToldMark,
): Told | undefined {
  if (state.resetMs !== resetMs || numberOf(state, window) !== index) return undefined;
  const [before, field] = [currentTold(state), fieldOf(window)];
  return { ...before, [field]: { index, percent: Math.max(percent, before[field]?.percent ?? 0) } };
}

function currentTold(state: Marked): Told {
  return Object.fromEntries(
    Object.entries(state.told ?? {}).filter(([field, told]) => {
      const window = windowOf(field);
      return window && told?.index === numberOf(state, window);
    }),
  );
}

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
