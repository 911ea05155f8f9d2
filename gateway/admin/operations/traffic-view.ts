import { type Buckets, type Period, percentilesOf, type TrafficMinute } from '../../usage/usage-reader.ts';
import type { KeySources } from '../keys/key-sources.ts';

export const trafficSteps = ['minute', 'hour'] as const;

export type TrafficStep = (typeof trafficSteps)[number];

const stepMs: Readonly<Record<TrafficStep, number>> = { minute: 60_000, hour: 3_600_000 };

/**
 * All requests of the fleet by minute or hour, those in which there were any: how they ended, and how long they took.
 * Undefined when the store gives no answer.
 */
export async function trafficView(
  { usage }: KeySources,
  { step, ...period }: Period & { readonly step: TrafficStep },
): Promise<object | undefined> {
  const minutes = usage === undefined ? [] : await usage.reader.traffic(period);
  if (minutes === undefined) return undefined;
  const groups = Map.groupBy(minutes, ({ atMs }) => Math.floor(atMs / stepMs[step]) * stepMs[step]);
  return { step, rows: [...groups].map(([atMs, within]) => rowOf(atMs, within)) };
}

function rowOf(atMs: number, within: readonly TrafficMinute[]): object {
  const ended: Record<string, number> = {};
  for (const minute of within) {
    for (const [ending, requests] of Object.entries(minute.ended))
      ended[ending] = (ended[ending] ?? 0) + requests;
  }
  return {
    at: `${new Date(atMs).toISOString().slice(0, 19)}Z`,
    requests: Object.values(ended).reduce((sum, requests) => sum + requests, 0),
    ...ended,
    ownTime: percentilesOf(sumOf(within.map(({ own }) => own))),
    upstreamTime: percentilesOf(sumOf(within.map(({ upstream }) => upstream))),
  };
}

function sumOf(all: readonly Buckets[]): number[] {
  const sum: number[] = [];
  for (const buckets of all) {
    for (const [bucket, requests] of buckets.entries()) sum[bucket] = (sum[bucket] ?? 0) + requests;
  }
  return sum;
}
