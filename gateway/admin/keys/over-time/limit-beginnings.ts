import type { Changes } from '../../../fleet/changes.ts';
import { timeText } from '../../../fleet/wording.ts';
import { limitFieldOf } from '../../../keys/limits/limit-fields.ts';
import { calendarStartMs } from '../../../shared/calendar-windows.ts';
import type { KeyStatus, PlanWindow } from '../../../shared/model.ts';
import type { Period } from '../../../shared/schema/dates-and-durations.ts';
import { listOf } from '../../../shared/words/figures.js';
import type { LimitsSteps } from '../../wires/keys/usage.ts';
import type { ListedKey } from '../find-keys.ts';
import type { KeySources } from '../key-sources.ts';
import { readLimits } from './limits-route.ts';

/** The units that the usage record has for a key since the beginning of a window. */
export interface RecordedUse {
  readonly window: PlanWindow;
  readonly units: number;
}

/** The parts of a present window in which a key had no such limit, the earliest first. */
export interface Uncounted {
  readonly windowStartMs: number;
  readonly periods: readonly Period[];
}

/**
 * Finds limits that the key did not have during its whole present window. Such a limit counts only the requests of the rest of the window, so
 * its count is lower than the usage record.
 *
 * @param recorded the windows to look at. A window whose count is not lower costs nothing
 */
export async function limitBeginnings(
  sources: KeySources,
  changes: Pick<Changes, 'read'>,
  { listed, status }: { readonly listed: ListedKey; readonly status: KeyStatus },
  recorded: readonly RecordedUse[],
): Promise<ReadonlyMap<PlanWindow, Uncounted>> {
  const { windows, nowMs } = status.rateLimit;
  const lower = recorded.filter(({ window, units }) => {
    const place = windows.findIndex(({ name, group }) => name === window && group === undefined);
    return place !== -1 && (status.used[place] ?? 0) < units;
  });
  const begun = new Map<PlanWindow, Uncounted>();
  if (lower.length === 0) return begun;
  const startsMs = lower.map(({ window }) => calendarStartMs(window, nowMs));
  const fromMs = Math.min(...startsMs);
  const steps = await readLimits(sources, changes, { listed, grant: status.grant }, { fromMs, toMs: nowMs });
  for (const [index, { window }] of lower.entries()) {
    const windowStartMs = startsMs[index] ?? 0;
    const periods = periodsWithout(window, steps, { fromMs: windowStartMs, toMs: nowMs });
    if (periods.length > 0) begun.set(window, { windowStartMs, periods });
  }
  return begun;
}

function periodsWithout(window: PlanWindow, steps: LimitsSteps, within: Period): readonly Period[] {
  const periods: Period[] = [];
  for (const [index, { fromAt, limits }] of steps.entries()) {
    // Before the key existed, it had no limits at all.
    if (limits[limitFieldOf[window]] !== undefined || Object.keys(limits).length === 0) continue;
    const fromMs = Math.max(Date.parse(fromAt), within.fromMs);
    const toMs = Date.parse(steps[index + 1]?.fromAt ?? '') || within.toMs;
    if (toMs <= fromMs) continue;
    const last = periods.at(-1);
    if (last?.toMs === fromMs) periods[periods.length - 1] = { fromMs: last.fromMs, toMs };
    else periods.push({ fromMs, toMs });
  }
  return periods;
}

/**
 * States which requests of the present window the limit does not count.
 *
 * @param limit the limit, such as "Its limit a day" @param setAt the text of a time, such as "at 09:14"
 */
export function uncountedText(
  limit: string,
  { window, windowStartMs, periods }: Uncounted & { readonly window: PlanWindow },
  setAt: (atMs: number) => string,
  nowMs: number,
): string {
  const sentences = periods.flatMap(({ fromMs, toMs }) =>
    fromMs === windowStartMs
      ? `${limit} was set ${setAt(toMs)}, and does not count the earlier requests of this ${window}.`
      : [],
  );
  const between = periods
    .filter(({ fromMs }) => fromMs !== windowStartMs)
    .map(({ fromMs, toMs }) => `from ${timeText(fromMs, nowMs)} until ${timeText(toMs, nowMs)}`);
  if (between.length > 0)
    sentences.push(
      `${limit} did not apply ${listOf(between)}, and does not count the requests of ${between.length === 1 ? 'that time' : 'these times'}.`,
    );
  return sentences.join(' ');
}
