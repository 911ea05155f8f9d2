import { limitFieldOf } from '../keys/limit-fields.ts';
import { calendarMonth, calendarWindowsMs } from '../shared/calendar-windows.ts';
import type { Limit, Limits, PlanWindow } from '../shared/model.ts';
import { nameOf } from '../shared/schema/schema-faults.ts';

/** Limits and where they stand: `plans.free`, `keys[3].limits`. */
export interface StatedLimits {
  readonly path: readonly PropertyKey[];
  readonly limits: Limits;
}

/** What is probably not meant, and the field that it is about. */
export interface LimitWarning {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/**
 * Limits that cannot do what they say: of a longer window, below that of a shorter one, so that the shorter one is
 * never used in full; or so high that the shorter one never lets anybody reach it.
 */
export function checkLimits({ path, limits }: StatedLimits): readonly LimitWarning[] {
  return limits.flatMap((longer, index) =>
    limits.slice(0, index).flatMap((shorter) => {
      const message = comparison(shorter, longer);
      const at = [...path, limitFieldOf[longer.window]];
      return message === undefined ? [] : [{ path: at, message: `${nameOf(at)} (${longer.max}) ${message}` }];
    }),
  );
}

function comparison(shorter: Limit, longer: Limit): string | undefined {
  const other = `${limitFieldOf[shorter.window]} (${shorter.max})`;
  if (longer.max < shorter.max) return `is below ${other}, so that one can never be used in full`;
  const reachable = shorter.max * mostIn(shorter.window, longer.window);
  if (longer.max <= reachable) return undefined;
  return `can never be reached: ${other} admits at most ${reachable} in a ${longer.window}`;
}

/** How often the shorter window fits into the longer one, at most. */
function mostIn(shorter: PlanWindow, longer: PlanWindow): number {
  return mostMs(longer) / mostMs(shorter);
}

function mostMs(window: PlanWindow): number {
  const lengthMs = calendarWindowsMs[window];
  return lengthMs === calendarMonth ? 31 * calendarWindowsMs.day : lengthMs;
}
