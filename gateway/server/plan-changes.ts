import type { Logger } from 'pino';
import { joinPlanStates } from '../capabilities/interfaces/join-parts.ts';
import type { ProcessPart } from '../capabilities/interfaces/running.ts';
import { lastChangeMs, nextChangeMs, settingsAt } from '../keys/key-table.ts';
import type { Limiter } from '../request/limit/limiter.ts';
import type { Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/**
 * Replaces the settings when the store's clock reaches the time of a scheduled change of a plan or of the plan of a key, and when processes have decided about a plan
 * (`planStates`). Each process reads the store's clock itself. Scheduled changes therefore take effect in all processes of
 * a fleet within a second, even if their own clocks are wrong.
 *
 * If a plan or key has scheduled changes, the store's clock is read every `planClockReadIntervalMs`, and at the time of the next change. The timer
 * between two reads is monotonic, so a step of the process's clock has no effect.
 */
export function followPlanChanges({
  limiter,
  parts,
  onChange,
  log,
  bounds,
}: {
  readonly limiter: Pick<Limiter, 'storeNowMs' | 'readStoreNowMs'>;
  /** The parts of capabilities, which may decide about plans. */
  readonly parts: readonly ProcessPart[];
  /** Receives the settings with the limits that apply now. */
  readonly onChange: (settings: Settings) => void;
  /** Logs each change; undefined when another part of the gateway logs it. */
  readonly log?: Pick<Logger, 'info'> | undefined;
  readonly bounds: Pick<Bounds, 'planClockReadIntervalMs'>;
}) {
  let settings: Settings | undefined;
  /** The time of the last plan change that has taken effect in `settings`. */
  let changedMs: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  /** Settles after the first read of the store's clock for the current settings. */
  let checked = Promise.resolve();
  /** The number of calls of `take` and `close`. A read of the clock that began before the last call is ignored. */
  let taken = 0;
  const onPlanStates = () => {
    if (settings === undefined) return;
    settings = settingsAt({ ...settings, planStates: joinPlanStates(parts) }, limiter.storeNowMs());
    onChange(settings);
  };
  const listening = parts.map((part) => part.onPlanStates?.(onPlanStates));

  return {
    /** Returns new settings with the limits that apply now, and follows the later changes of these settings. */
    take(next: Settings): Settings {
      taken += 1;
      clearTimeout(timer);
      const nowMs = limiter.storeNowMs();
      settings = settingsAt({ ...next, planStates: joinPlanStates(parts) }, nowMs);
      changedMs = lastChangeMs(next, nowMs);
      if (hasChanges(next)) checked = check(taken);
      return settings;
    },
    /** Settles when the plans match the store's clock, or when the store is unavailable. */
    settled: () => checked,
    close() {
      taken += 1;
      clearTimeout(timer);
      for (const stop of listening) stop?.();
    },
  };

  async function check(of: number): Promise<void> {
    const nowMs = await limiter.readStoreNowMs();
    if (of !== taken || settings === undefined) return;
    const lastMs = lastChangeMs(settings, nowMs);
    if (lastMs !== changedMs) {
      const isLater = (lastMs ?? 0) > (changedMs ?? 0);
      changedMs = lastMs;
      settings = settingsAt(settings, nowMs);
      log?.info(
        { config: settings.version },
        isLater
          ? 'the limits of a plan, or the plan of a key, changed at their date'
          : 'a plan has its earlier limits again, or a key its earlier plan, because the clock of Redis has not reached the date of the change',
      );
      onChange(settings);
    }
    // The store's clock is still read after the last change has taken effect. The change may have taken effect too early, because the
    // process uses its own clock while the store is away.
    const nextMs = nextChangeMs(settings, nowMs) ?? Number.POSITIVE_INFINITY;
    const waitMs = Math.min(nextMs - nowMs, bounds.planClockReadIntervalMs);
    timer = setTimeout(() => void check(of), waitMs).unref();
  }
}

function hasChanges(settings: Settings): boolean {
  return lastChangeMs(settings, Number.POSITIVE_INFINITY) !== undefined;
}
