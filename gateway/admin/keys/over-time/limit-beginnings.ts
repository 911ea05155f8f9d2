import type { Changes } from '../../../fleet/changes.ts';
import { limitFieldOf } from '../../../keys/limits/limit-fields.ts';
import { calendarStartMs } from '../../../shared/calendar-windows.ts';
import type { KeyStatus, PlanWindow } from '../../../shared/model.ts';
import type { ListedKey } from '../find-keys.ts';
import type { KeySources } from '../key-sources.ts';
import { readLimits } from './limits-route.ts';

/** The units that the usage record has for a key since the beginning of a window. */
export interface RecordedUse {
  readonly window: PlanWindow;
  readonly units: number;
}

/**
 * Finds limits that were set after the present window had begun. Such a limit counts only the requests since then, so its count is lower than
 * the usage record.
 *
 * @param recorded the windows to look at. A window whose count is not lower costs nothing
 * @returns the time at which each such limit was set, epoch ms
 */
export async function limitBeginnings(
  sources: KeySources,
  changes: Pick<Changes, 'read'>,
  { listed, status }: { readonly listed: ListedKey; readonly status: KeyStatus },
  recorded: readonly RecordedUse[],
): Promise<ReadonlyMap<PlanWindow, number>> {
  const { windows, nowMs } = status.rateLimit;
  const lower = recorded.filter(({ window, units }) => {
    const place = windows.findIndex(({ name, group }) => name === window && group === undefined);
    return place !== -1 && (status.used[place] ?? 0) < units;
  });
  const begun = new Map<PlanWindow, number>();
  if (lower.length === 0) return begun;
  const startsMs = lower.map(({ window }) => calendarStartMs(window, nowMs));
  const fromMs = Math.min(...startsMs);
  const steps = await readLimits(sources, changes, { listed, grant: status.grant }, { fromMs, toMs: nowMs });
  for (const [index, { window }] of lower.entries()) {
    const first = steps.findLastIndex(({ limits }) => limits[limitFieldOf[window]] === undefined) + 1;
    const setMs = Date.parse(steps[first]?.fromAt ?? '');
    // Before the key existed, it had no limits at all.
    const hadLimits = Object.keys(steps[first - 1]?.limits ?? {}).length > 0;
    if (hadLimits && setMs > (startsMs[index] ?? 0)) begun.set(window, setMs);
  }
  return begun;
}
