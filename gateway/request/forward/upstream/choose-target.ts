import type { Health } from './check-health.ts';

export interface Candidate {
  readonly health: Health;
}

interface Choice<T extends Candidate> {
  readonly targets: readonly T[];
  /** Returns the number of a target's requests that are in flight or waiting. For WebSockets the function returns the number of tunnels. */
  readonly loadOf: (target: T) => number;
  readonly hasRoom: (target: T) => boolean;
  /** The target of the failed attempt. This target is chosen only if no other target has room. */
  readonly avoid: T | undefined;
  readonly random: () => number;
}

/**
 * Returns the target with the least load, and a random target among targets with equal load. Returns undefined when no target has room.
 * Silent targets are used only when no target is healthy. A silent target may still answer late, which is better than 503.
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
      // The n-th target with the same load replaces the chosen target with probability 1/n. All targets with equal load thus have the same
      // chance.
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
