import type { BoundName, Bounds } from '../../shared/timeouts-and-sizes.ts';

/** Bounds of memory, which the workers of a machine share. */
const ofMemory = [
  'collectedBodiesBytesMax',
  'docsUnreadBytesMax',
  'logUnreadBytesMax',
  'usageUnsentCountsMax',
] as const satisfies readonly BoundName[];

/** Bounds that protect a target, independent of the number of processes. */
const ofTargets = [
  'connectionsPerTargetMax',
  'queuedPerTargetMax',
  'tunnelsPerTargetMax',
  'tunnelsPerKeyMax',
] as const satisfies readonly BoundName[];

/**
 * The bounds of each of several workers. Shared bounds are divided by the number of workers. All other bounds hold per process.
 * Each worker may open a few connections to a target in any case, because requests are not spread evenly.
 */
export function boundsOfWorker(bounds: Bounds, workers: number): Bounds {
  const least = (name: BoundName) => Math.min(bounds[name], bounds.workerConnectionsPerTargetMin);
  const shares = [
    ...ofMemory.map((name) => [name, Math.ceil(bounds[name] / workers)] as const),
    ...ofTargets.map((name) => [name, Math.max(least(name), Math.ceil(bounds[name] / workers))] as const),
  ];
  return { ...bounds, ...Object.fromEntries(shares) };
}
