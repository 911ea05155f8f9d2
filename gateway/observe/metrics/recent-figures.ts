import { quantileMs } from '../../shared/structures/histogram.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { DecisionLabel, RequestMetrics } from './request-metrics.ts';

/** The figures of a process for the last seconds. */
export interface RecentFigures {
  readonly requestsPerSecond: number;
  /** Requests per second by status. `2xx` includes 1xx. `4xx` includes a 429 of the upstream. */
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Requests that failed by fault of the gateway or the upstream: see `failureOf`. */
  readonly failuresPerSecond: number;
  /** Quantiles of the gateway's own time. Undefined without requests, as the next two. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  /** Quantiles of the time at the upstream. */
  readonly upstreamP50Ms?: number | undefined;
  readonly upstreamP99Ms?: number | undefined;
}

export const outcomes = ['2xx', '3xx', '4xx', '429', '5xx'] as const;
type Outcome = (typeof outcomes)[number];

/** The counts at an instant. */
interface Reading {
  readonly atMs: number;
  readonly byOutcome: Readonly<Record<Outcome, number>>;
  readonly failures: number;
  readonly own: readonly number[];
  readonly upstream: readonly number[];
}

/** Compares the counts with those some seconds ago, which costs requests nothing. */
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
      // Otherwise a single request in the first moments would be a rate of thousands.
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
        p50Ms: quantile(own, 0.5),
        p99Ms: quantile(own, 0.99),
        upstreamP50Ms: quantile(upstream, 0.5),
        upstreamP99Ms: quantile(upstream, 0.99),
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

/** The 429 of an admitted request is the upstream's, because no limit of the gateway has refused it. */
function outcomeOf(status: number, decision: DecisionLabel): Outcome {
  if (status === 429 && decision !== 'admitted') return '429';
  if (status >= 500) return '5xx';
  if (status >= 400) return '4xx';
  return status >= 300 ? '3xx' : '2xx';
}

function difference(now: readonly number[], before: readonly number[]): readonly number[] {
  return now.map((count, bucket) => count - (before[bucket] ?? 0));
}

function quantile(counts: readonly number[], share: number): number | undefined {
  return counts.some((count) => count > 0) ? quantileMs(counts, share) : undefined;
}

function rounded(figure: number): number {
  return Math.round(figure * 1_000) / 1_000;
}
