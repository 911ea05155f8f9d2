import type { QuotaThreshold } from '../../fleet/kinds/key-notices.ts';
import type { QuotaOutcome } from '../../quota/decide-key.ts';
import type { Reached } from '../../quota/thresholds.ts';
import { fieldOf } from '../../quota/windows.ts';
import { windowStartMs } from '../../shared/calendar-windows.ts';
import type { DecisionSource } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

export type ThresholdReports = ReturnType<typeof createThresholdReports>;

/**
 * Reports that a key has reached thresholds. The store returns a threshold with each decision until the report is confirmed. A process
 * therefore remembers what it has reported, so that a busy key does not cause a report for each request. Reports of a key are in ascending
 * order of the percentages.
 */
export function createThresholdReports(deps: {
  /** This process's clock, epoch ms. */
  nowMs: () => number;
  planOf: (keyId: string) => string | undefined;
  onEvent: ((threshold: QuotaThreshold) => void) | undefined;
  bounds: Pick<Bounds, 'reportedThresholdsMax' | 'thresholdRepeatMs' | 'windowsMs'>;
}) {
  const { nowMs, planOf, onEvent, bounds } = deps;
  /** The last report about each key and window, the oldest report first. */
  const reports = new Map<string, Report>();

  return {
    observe(keyId: string, { reached, state }: QuotaOutcome, source: DecisionSource): void {
      for (const each of reached ?? []) report(keyId, each, state.resetMs, source);
    },
  };

  function report(keyId: string, reached: Reached, resetMs: number, source: DecisionSource): void {
    const { window, group, index, percents, used, limit } = reached;
    const name = `${fieldOf(reached)} ${keyId}`;
    const reportedPercent = remembered(name, index, resetMs);
    const unreported = percents.filter((percent) => percent > reportedPercent);
    if (unreported.length === 0) return;
    remember(name, { index, resetMs, percent: unreported.at(-1) ?? 0, atMs: nowMs() });
    const plan = planOf(keyId);
    const endsAtMs = windowStartMs(bounds.windowsMs[window], index + 1);
    const members = { keyId, plan, window, group, index, used, limit, resetMs, endsAtMs, source };
    for (const percent of unreported) onEvent?.({ kind: 'quota_threshold', ...members, percent });
  }

  /** Returns the highest percentage that was reported for a window within `thresholdRepeatMs`; 0: none. */
  function remembered(name: string, index: number, resetMs: number): number {
    const last = reports.get(name);
    if (last?.index !== index || last.resetMs !== resetMs) return 0;
    return Math.abs(nowMs() - last.atMs) < bounds.thresholdRepeatMs ? last.percent : 0;
  }

  function remember(name: string, report: Report): void {
    reports.delete(name);
    const [oldest] = reports.keys();
    if (oldest !== undefined && reports.size >= bounds.reportedThresholdsMax) reports.delete(oldest);
    reports.set(name, report);
  }
}

interface Report {
  readonly index: number;
  readonly resetMs: number;
  readonly percent: number;
  readonly atMs: number;
}
