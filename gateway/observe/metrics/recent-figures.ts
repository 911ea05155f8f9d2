import type { ProcessState, UpstreamFigures } from '../../fleet/process-state.ts';
import { quantileMs } from '../../shared/structures/histogram.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { DecisionLabel, RequestMetrics } from './request-metrics.ts';

/** The figures of a process over the last seconds, and its failures in the last minute. */
type RecentFigures = Pick<
  ProcessState,
  | 'requestsPerSecond'
  | 'outcomes'
  | 'addressRefusalsPerSecond'
  | 'unauthorizedPerSecond'
  | 'failuresPerSecond'
  | 'lastMinute'
  | 'p50Ms'
  | 'p99Ms'
  | 'upstreamP50Ms'
  | 'upstreamP99Ms'
>;

/** `2xx` includes 1xx. `4xx` includes a 429 of the upstream. */
const outcomes = ['2xx', '3xx', '4xx', '429', '5xx'] as const;
type Outcome = (typeof outcomes)[number];

/** The counts of requests at the time `atMs`. */
interface Reading {
  /** The time, on the clock of `performance.now()`. */
  readonly atMs: number;
  readonly byOutcome: Readonly<Record<Outcome, number>>;
  readonly addressRefusals: number;
  readonly unauthorized: number;
  readonly failures: ReadonlyMap<string, number>;
  readonly own: readonly number[];
  readonly upstream: readonly number[];
  readonly byUpstream: ReadonlyMap<string, UpstreamFigures>;
}

/**
 * Computes the figures once a second. A figure is the difference between a current count and an earlier value of this count. The earlier
 * value is some seconds or a minute old. The computation adds no work to a request.
 */
export function createRecentFigures(
  metrics: Pick<RequestMetrics, 'counts'>,
  { nowMs, bounds }: { readonly nowMs: () => number; readonly bounds: Bounds },
): { read(): RecentFigures; close(): void } {
  /**
   * `readings` has the readings of the last minute, oldest first. `recent` is the oldest reading of the last
   * `recentFiguresMs`.
   */
  let readings = [readNow(metrics)];
  let [recent] = readings;
  /**
   * The time at which the share of requests that failed in the gateway became too large, ISO 8601 in UTC; undefined while
   * the share is small.
   */
  let failingSince: string | undefined;
  const timer = setInterval(() => {
    const now = readNow(metrics);
    lastMinute(now);
    readings = [...readings.filter(({ atMs }) => now.atMs - atMs <= bounds.failuresShownMs), now];
    recent = readings.find(({ atMs }) => now.atMs - atMs <= bounds.recentFiguresMs);
  }, bounds.presenceIntervalMs).unref();

  function lastMinute(now: Reading): RecentFigures['lastMinute'] {
    const before = readings[0] ?? now;
    // Each request is in one histogram bucket, so the sum of the buckets is the number of requests.
    const requests = total(difference(now.own, before.own));
    const failedBy = (whose: 'gateway' | 'upstream') =>
      (now.failures.get(whose) ?? 0) - (before.failures.get(whose) ?? 0);
    const failed = failedBy('gateway');
    const isMuch = failed > 0 && failed / requests >= bounds.failingShareMin;
    failingSince = isMuch ? (failingSince ?? new Date(nowMs()).toISOString()) : undefined;
    return {
      requests,
      failed: {
        gateway: { requests: failed, sinceAt: failingSince },
        upstream: { requests: failedBy('upstream') },
      },
      upstreams: upstreamsSince(before.byUpstream, now.byUpstream),
    };
  }

  return {
    read() {
      const now = readNow(metrics);
      const before = recent ?? now;
      // The duration has a minimum, because one request in the first milliseconds would otherwise give a rate of
      // thousands per second.
      const seconds = Math.max(now.atMs - before.atMs, bounds.presenceIntervalMs) / 1_000;
      const byOutcome = outcomes.map(
        (outcome) =>
          [outcome, rounded((now.byOutcome[outcome] - before.byOutcome[outcome]) / seconds)] as const,
      );
      const own = difference(now.own, before.own);
      const upstream = difference(now.upstream, before.upstream);
      const failures = total([...now.failures.values()]) - total([...before.failures.values()]);
      return {
        requestsPerSecond: rounded(total(byOutcome.map(([, rate]) => rate))),
        outcomes: Object.fromEntries(byOutcome),
        addressRefusalsPerSecond: rounded((now.addressRefusals - before.addressRefusals) / seconds),
        unauthorizedPerSecond: rounded((now.unauthorized - before.unauthorized) / seconds),
        failuresPerSecond: rounded(failures / seconds),
        lastMinute: lastMinute(now),
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
  const { requests, failures, byUpstream, ownDuration, upstreamDuration } = metrics.counts();
  const byOutcome: Record<Outcome, number> = { '2xx': 0, '3xx': 0, '4xx': 0, '429': 0, '5xx': 0 };
  let addressRefusals = 0;
  let unauthorized = 0;
  for (const byStatus of requests.values()) {
    for (const [status, byDecision] of byStatus) {
      for (const [decision, count] of byDecision) {
        byOutcome[outcomeOf(status, decision)] += count;
        // A malformed request keeps its 400 when the bucket of its address is used up.
        if (status === 429 && decision === 'bucket_refused') addressRefusals += count;
        // A 401 to an admitted request is from the upstream.
        if (status === 401 && decision !== 'admitted') unauthorized += count;
      }
    }
  }
  return {
    atMs: performance.now(),
    byOutcome,
    addressRefusals,
    unauthorized,
    failures: new Map(failures),
    own: [...ownDuration.counts],
    upstream: [...upstreamDuration.counts],
    byUpstream: new Map([...byUpstream].map(([name, counts]) => [name, { ...counts }])),
  };
}

/**
 * Returns the outcome of a request with this status. A 429 to an admitted request is from the upstream, because no limit of the gateway has
 * refused it.
 */
function outcomeOf(status: number, decision: DecisionLabel): Outcome {
  if (status === 429 && decision !== 'admitted') return '429';
  if (status >= 500) return '5xx';
  if (status >= 400) return '4xx';
  return status >= 300 ? '3xx' : '2xx';
}

function upstreamsSince(
  before: Reading['byUpstream'],
  now: Reading['byUpstream'],
): RecentFigures['lastMinute']['upstreams'] {
  return [...now].flatMap(([name, counts]) => {
    const requests = counts.requests - (before.get(name)?.requests ?? 0);
    const failed = counts.failed - (before.get(name)?.failed ?? 0);
    return requests === 0 ? [] : [{ name, requests, failed }];
  });
}

function difference(now: readonly number[], before: readonly number[]): readonly number[] {
  return now.map((count, bucket) => count - (before[bucket] ?? 0));
}

function total(figures: readonly number[]): number {
  return figures.reduce((sum, figure) => sum + figure, 0);
}

function quantile(counts: readonly number[], share: number): number | undefined {
  return counts.some((count) => count > 0) ? quantileMs(counts, share) : undefined;
}

function rounded(figure: number): number {
  return Math.round(figure * 1_000) / 1_000;
}
