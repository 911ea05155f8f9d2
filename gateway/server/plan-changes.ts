import type { Logger } from 'pino';
import { settingsAt } from '../keys/key-table.ts';
import { lastChangeMs, nextChangeMs } from '../keys/plans.ts';
import type { Limiter } from '../request/limit/limiter.ts';
import type { Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/**
 * Makes the settings again at each instant at which a plan changes, on the store's clock. Each process reads that clock itself, so all
 * processes of a fleet change within a second, whatever their own clocks are.
 *
 * A configuration without later changes has no timer. Otherwise the clock is read every `planClockReadIntervalMs`, and at the instant.
 * The timer between two reads is monotonic, so a step of the process's clock has no effect.
 */
export function followPlanChanges({
  limiter,
  onChange,
  log,
  bounds,
}: {
  readonly limiter: Pick<Limiter, 'storeNowMs' | 'readStoreNowMs'>;
  /** Receives the settings with the plans of the instant. */
  readonly onChange: (settings: Settings) => void;
  /** Logs each change; undefined when another part of the gateway logs it. */
  readonly log?: Pick<Logger, 'info'> | undefined;
  readonly bounds: Pick<Bounds, 'planClockReadIntervalMs'>;
}) {
  let settings: Settings | undefined;
  /** The instant of the last change that `settings` contain. */
  let changedMs: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  /** Settles when the store's clock was first read for the present settings. */
  let checked = Promise.resolve();
  /** Counts the settings that were taken, so that a read of the clock for earlier settings has no effect. */
  let taken = 0;

  return {
    /** Returns new settings with the plans of the present instant, and follows their changes from now on. */
    take(next: Settings): Settings {
      taken += 1;
      clearTimeout(timer);
      const nowMs = limiter.storeNowMs();
      settings = settingsAt(next, nowMs);
      changedMs = lastChangeMs(next.plans, nowMs);
      if (hasChanges(next)) checked = check(taken);
      return settings;
    },
    /** Settles when the plans are those of the store's clock, or the store is away. */
    settled: () => checked,
    close() {
      taken += 1;
      clearTimeout(timer);
    },
  };

  async function check(of: number): Promise<void> {
    const nowMs = await limiter.readStoreNowMs();
    if (of !== taken || settings === undefined) return;
    const { plans } = settings;
    if (lastChangeMs(plans, nowMs) !== changedMs) {
      changedMs = lastChangeMs(plans, nowMs);
      settings = settingsAt(settings, nowMs);
      log?.info({ config: settings.version }, 'the limits of a plan changed at their date');
      onChange(settings);
    }
    const nextMs = nextChangeMs(plans, nowMs);
    if (nextMs === undefined) return;
    const waitMs = Math.min(nextMs - nowMs, bounds.planClockReadIntervalMs);
    timer = setTimeout(() => void check(of), waitMs).unref();
  }
}

function hasChanges({ plans }: Settings): boolean {
  return [...plans.values()].some(({ changes }) => changes !== undefined);
}
