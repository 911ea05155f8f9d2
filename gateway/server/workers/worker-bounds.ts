import type { BoundName, Bounds } from '../../shared/timeouts-and-sizes.ts';

/** Memory bounds, which the workers of a machine share. */
const ofMemory = [
  'collectedBodiesBytesMax',
  'docsUnreadBytesMax',
  'logUnreadBytesMax',
  'otelQueuedBytesMax',
  'usageUnsentCountsMax',
] as const satisfies readonly BoundName[];

/** Bounds that protect a target. All workers together have the bound of one process, or more if each needs its `workerConnectionsPerTargetMin`. */
const ofTargets = [
  'connectionsPerTargetMax',
  'queuedPerTargetMax',
  'tunnelsPerTargetMax',
  'tunnelsPerKeyMax',
] as const satisfies readonly BoundName[];

/**
 * Shared bounds are divided by the number of workers. All other bounds apply to each process. Each worker may always open a few connections
 * to a target, because requests are not distributed evenly.
 */
export function boundsOfWorker(bounds: Bounds, workers: number): Bounds {
  const least = (name: BoundName) => Math.min(bounds[name], bounds.workerConnectionsPerTargetMin);
  const shares = [
    ...ofMemory.map((name) => [name, Math.ceil(bounds[name] / workers)] as const),
    ...ofTargets.map((name) => [name, Math.max(least(name), Math.ceil(bounds[name] / workers))] as const),
  ];
  return { ...bounds, ...Object.fromEntries(shares) };
}
