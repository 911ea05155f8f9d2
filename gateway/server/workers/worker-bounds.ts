import type { BoundName, Bounds } from '../../shared/timeouts-and-sizes.ts';

/** What waits in memory: the workers of a machine share it. */
const ofMemory = [
  'collectedBodiesBytesMax',
  'docsUnreadBytesMax',
  'logUnreadBytesMax',
  'usageUnsentCountsMax',
] as const satisfies readonly BoundName[];

/** What protects a target: it does not matter to it how many processes its connections come from. */
const ofTargets = [
  'connectionsPerTargetMax',
  'queuedPerTargetMax',
  'tunnelsPerTargetMax',
  'tunnelsPerKeyMax',
] as const satisfies readonly BoundName[];

/**
 * The bounds of each of several workers. Those of what the workers have in common are divided; all others hold for each
 * process. Of a target each keeps a few connections, since requests are not spread evenly.
 */
export function boundsOfWorker(bounds: Bounds, workers: number): Bounds {
  const least = (name: BoundName) => Math.min(bounds[name], bounds.workerConnectionsPerTargetMin);
  const shares = [
    ...ofMemory.map((name) => [name, Math.ceil(bounds[name] / workers)] as const),
    ...ofTargets.map((name) => [name, Math.max(least(name), Math.ceil(bounds[name] / workers))] as const),
  ];
  return { ...bounds, ...Object.fromEntries(shares) };
}
