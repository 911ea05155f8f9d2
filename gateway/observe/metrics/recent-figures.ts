import { quantileMs } from '../../shared/structures/histogram.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { DecisionLabel, RequestMetrics } from './request-metrics.ts';

/** What a process has done in the last seconds. */
export interface RecentFigures {
  readonly requestsPerSecond: number;
  /** Requests per second by what they were answered. `2xx` has also 1xx, and of 429 `4xx` has those of the upstream. */
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Those that failed by fault of the gateway or the upstream: see `failureOf`. */
  readonly failuresPerSecond: number;
  /** Of the gateway's own part in a request: half took at most the first, 99 of 100 the second. Absent without any. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** The same of what passed at the upstream. */
  readonly upstreamP50Ms?: number;
  readonly upstreamP99Ms?: number;
}

export const outcomes = ['2xx', '3xx', '4xx', '429', '5xx'] as const;
type Outcome = (typeof outcomes)[number];

/** What was counted until an instant. */
interface Reading {
  readonly atMs: number;
  readonly byOutcome: Readonly<Record<Outcome, number>>;
  readonly failures: number;
  readonly own: readonly number[];
  readonly upstream: readonly number[];
}

/** Compares what was counted until now with readings of the last seconds, so that a request pays nothing for it. */
export function createRecentFigures(
  metrics: Pick<RequestMetrics, 'counts'>,
  bounds: Pick<Bounds, 'recentFiguresMs' | 'presenceIntervalMs'>,
): { read(): RecentFigures; close(): void } {
  let readings = [readNow(metrics)];
  const timer = setInterval(() => {
    const now = readNow(metrics);
    readings = [...readings, now].filter(({ atMs }) => now.atMs - atMs <= bounds.recentFiguresMs);
  }, bounds.presenceIntervalMs).unref();

  return {
    read() {
      const now = readNow(metrics);
      const before = readings[0] ?? now;
      // In the first moments a single request would be a rate of thousands.
      const seconds = Math.max(now.atMs - before.atMs, bounds.presenceIntervalMs) / 1_000;
      const byOutcome = outcomes.map(
        (outcome) =>
          [outcome, rounded((now.byOutcome[outcome] - before.byOutcome[outcome]) / seconds)] as const,
      );
      const own = difference(now.own, before.own);
      const upstream = difference(now.upstream, before.upstream);
      return {
        requestsPerSecond: rounded(byOutcome.reduce((sum, [, rate]) => sum + rate, 0)),
        outcomes: Object.fromEntries(byOutcome) as Record<Outcome, number>,
        failuresPerSecond: rounded((now.failures - before.failures) / seconds),
        ...(isAny(own) && { p50Ms: quantileMs(own, 0.5), p99Ms: quantileMs(own, 0.99) }),
        ...(isAny(upstream) && {
          upstreamP50Ms: quantileMs(upstream, 0.5),
          upstreamP99Ms: quantileMs(upstream, 0.99),
        }),
      };
    },
    close: () => clearInterval(timer),
  };
}

function readNow(metrics: Pick<RequestMetrics, 'counts'>): Reading {
  const { requests, failures, ownDuration, upstreamDuration } = metrics.counts();
  const byOutcome: Record<Outcome, number> = { '2xx': 0, '3xx': 0, '4xx': 0, '429': 0, '5xx': 0 };
  for (const byStatus of requests.values()) {
    for (const [status, byDecision] of byStatus) {
      for (const [decision, count] of byDecision) byOutcome[outcomeOf(status, decision)] += count;
    }
  }
  return {
    atMs: performance.now(),
    byOutcome,
    failures: [...failures.values()].reduce((sum, count) => sum + count, 0),
    own: [...ownDuration.counts],
    upstream: [...upstreamDuration.counts],
  };
}

/** A 429 of an admitted request is the upstream's own: no limit of the gateway has refused it. */
function outcomeOf(status: number, decision: DecisionLabel): Outcome {
  if (status === 429 && decision !== 'admitted') return '429';
  if (status >= 500) return '5xx';
  if (status >= 400) return '4xx';
  return status >= 300 ? '3xx' : '2xx';
}

function difference(now: readonly number[], before: readonly number[]): readonly number[] {
  return now.map((count, bucket) => count - (before[bucket] ?? 0));
}

function isAny(counts: readonly number[]): boolean {
  return counts.some((count) => count > 0);
}

function rounded(figure: number): number {
  return Math.round(figure * 1_000) / 1_000;
}
