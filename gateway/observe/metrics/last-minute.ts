import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { RequestMetrics } from './request-metrics.ts';

/** The number of requests in the last minute, and the failed requests by fault. */
export interface LastMinute {
  readonly requests: number;
  readonly failed: Readonly<Record<Blamed, Failed>>;
}

type Blamed = 'gateway' | 'upstream';

interface Failed {
  readonly requests: number;
  /** Since when too large a share of the requests fails, ISO 8601, in UTC. Undefined while fewer fail. */
  readonly sinceAt?: string | undefined;
}

/** The counts at an instant. */
interface Reading extends Readonly<Record<Blamed, number>> {
  /** On the clock of `performance.now()`. */
  readonly atMs: number;
  readonly requests: number;
}

/** Reads the counters once a second, which costs requests nothing. */
export function createLastMinute(
  metrics: Pick<RequestMetrics, 'counts'>,
  {
    nowMs,
    bounds,
  }: {
    /** Epoch ms. */
    readonly nowMs: () => number;
    readonly bounds: Pick<Bounds, 'presenceIntervalMs' | 'failuresShownMs' | 'failingShareMin'>;
  },
): { read(): LastMinute; close(): void } {
  let readings = [readNow(metrics)];
  const since: Record<Blamed, string | undefined> = { gateway: undefined, upstream: undefined };
  const timer = setInterval(() => {
    const now = readNow(metrics);
    read(now);
    readings = [...readings.filter(({ atMs }) => now.atMs - atMs <= bounds.failuresShownMs), now];
  }, bounds.presenceIntervalMs).unref();

  function read(now: Reading): LastMinute {
    const before = readings[0] ?? now;
    const requests = now.requests - before.requests;
    const failedBy = (whose: Blamed): Failed => {
      const failed = now[whose] - before[whose];
      const isMuch = failed > 0 && failed / requests >= bounds.failingShareMin;
      since[whose] = isMuch ? (since[whose] ?? new Date(nowMs()).toISOString()) : undefined;
      return { requests: failed, sinceAt: since[whose] };
    };
    return { requests, failed: { gateway: failedBy('gateway'), upstream: failedBy('upstream') } };
  }

  return { read: () => read(readNow(metrics)), close: () => clearInterval(timer) };
}

function readNow(metrics: Pick<RequestMetrics, 'counts'>): Reading {
  const { ownDuration, failures } = metrics.counts();
  return {
    atMs: performance.now(),
    // Each request is in one bucket.
    requests: ownDuration.counts.reduce((sum, count) => sum + count, 0),
    gateway: failures.get('gateway') ?? 0,
    upstream: failures.get('upstream') ?? 0,
  };
}
