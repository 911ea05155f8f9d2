import type { Limits, PlanWindow } from '../shared/model.ts';

/** The windows whose thresholds are reported. Seconds and minutes are too short for a report. */
export const thresholdWindows = ['hour', 'day', 'month'] as const satisfies readonly PlanWindow[];

export type ThresholdWindow = (typeof thresholdWindows)[number];

/** For each window, the highest reported percentage, and the number of the window to which the percentage belongs. */
export type Told = {
  readonly [Window in ThresholdWindow]?: { readonly index: number; readonly percent: number };
};

/** The percentages of a limit that a key has reached in one window, and that are not reported. */
export interface Reached {
  readonly window: ThresholdWindow;
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
  readonly index: number;
  readonly percent: number;
  /** The generation of the counts (`QuotaState`). */
  readonly resetMs: number;
}

type Counts = Readonly<Record<ThresholdWindow | `${ThresholdWindow}Used`, number>>;
type Marked = Counts & { readonly told: Told | undefined; readonly resetMs: number };

/**
 * Returns the percentages that the counts have reached and that `told` does not have; undefined if there are none. A percentage counts as
 * reported if a higher percentage is reported.
 *
 * @param limits the limits in force
 * @param thresholds whole percentages, ascending
 */
export function untoldThresholds(
  state: Counts & { readonly told: Told | undefined },
  limits: Limits,
  thresholds: readonly number[],
): readonly Reached[] | undefined {
  const reached: Reached[] = [];
  for (const { window, max: limit } of limits) {
    if (!isThresholdWindow(window)) continue;
    const [index, used] = [state[window], state[`${window}Used`]];
    const told = state.told?.[window];
    const toldPercent = told?.index === index ? told.percent : 0;
    const percents = thresholds.filter((percent) => percent > toldPercent && used * 100 >= percent * limit);
    if (percents.length > 0) reached.push({ window, index, percents, used, limit });
  }
  return reached.length > 0 ? reached : undefined;
}

/** Returns `told` with all percentages of `reached`. */
export function tellAll(told: Told | undefined, reached: readonly Reached[]): Told {
  const all: Record<string, Told[ThresholdWindow]> = { ...told };
  for (const { window, index, percents } of reached) all[window] = { index, percent: percents.at(-1) ?? 0 };
  return all;
}

/**
 * Marks a percentage as reported. The mark never decreases. Returns undefined if the window has ended, or if the counts were reset meanwhile.
 * `thresholds.lua` has the same function.
 */
export function confirmTold(state: Marked, { window, index, percent, resetMs }: ToldMark): Told | undefined {
  if (state.resetMs !== resetMs || state[window] !== index) return undefined;
  const before = currentTold(state);
  return { ...before, [window]: { index, percent: Math.max(percent, before[window]?.percent ?? 0) } };
}

/** Returns `told` without ended windows. */
function currentTold(state: Marked): Told {
  const current = thresholdWindows.filter((window) => state.told?.[window]?.index === state[window]);
  return Object.fromEntries(current.map((window) => [window, state.told?.[window]]));
}

/** Parses the field `told` of a key's hash. */
export function unpackTold(packed: string): Told | undefined {
  if (packed === '') return undefined;
  const told: Record<string, Told[ThresholdWindow]> = {};
  const parts = packed.split(' ');
  for (let at = 0; at < parts.length; at += 3) {
    told[parts[at] ?? ''] = { index: Number(parts[at + 1]), percent: Number(parts[at + 2]) };
  }
  return told;
}

export function isThresholdWindow(window: PlanWindow): window is ThresholdWindow {
  return (thresholdWindows as readonly PlanWindow[]).includes(window);
}
