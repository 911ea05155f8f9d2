import type { Health } from './check-health.ts';

/** What the choice of a target depends on. */
export interface Candidate {
  readonly health: Health;
}

interface Choice<T extends Candidate> {
  readonly targets: readonly T[];
  /** The load that is compared: requests in flight and waiting, or tunnels. */
  readonly loadOf: (target: T) => number;
  readonly hasRoom: (target: T) => boolean;
  /** The target of the attempt that failed: chosen only when there is no other. */
  readonly avoid: T | undefined;
  readonly random: () => number;
}

/**
 * The target with the least load, a random one among equals; undefined when none has room. While a target is healthy,
 * silent ones are passed over. When none is healthy the silent ones are used: a target that only pauses answers late,
 * which is better than 503.
 */
export function chooseTarget<T extends Candidate>({
  targets,
  loadOf,
  hasRoom,
  avoid,
  random,
}: Choice<T>): T | undefined {
  const health = targets.some(isHealthy) ? 'healthy' : 'silent';
  let best: T | undefined;
  let leastLoad = Number.POSITIVE_INFINITY;
  let equals = 1;
  for (const target of targets) {
    if (target.health !== health || target === avoid || !hasRoom(target)) continue;
    const load = loadOf(target);
    if (load < leastLoad) {
      best = target;
      leastLoad = load;
      equals = 1;
    } else if (load === leastLoad) {
      // The n-th of equals replaces the best so far with a chance of 1 in n, so that each has the same chance in the end.
      equals++;
      if (random() * equals < 1) best = target;
    }
  }
  if (best !== undefined || avoid === undefined) return best;
  return avoid.health === health && hasRoom(avoid) && targets.includes(avoid) ? avoid : undefined;
}

function isHealthy({ health }: Candidate): boolean {
  return health === 'healthy';
}
