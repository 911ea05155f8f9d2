import type { Health } from './check-health.ts';

/** What the choice among targets looks at. */
export interface Candidate {
  readonly health: Health;
  readonly inFlight: number;
  readonly tunnels: number;
}

interface Choice<T extends Candidate> {
  readonly targets: readonly T[];
  /** What is compared: requests, waiting ones included, or tunnels. */
  readonly load: 'inFlight' | 'tunnels';
  readonly hasRoom: (target: T) => boolean;
  /** The target that just failed: taken only when there is no other. */
  readonly avoid: T | undefined;
  readonly random: () => number;
}

/**
 * The target with the least load, a random one among equals; undefined when none has room. Silent targets are passed
 * over while one is well; when none is they are asked after all: one that only pauses still answers, and late is
 * better than 503.
 */
export function chooseTarget<T extends Candidate>({
  targets,
  load,
  hasRoom,
  avoid,
  random,
}: Choice<T>): T | undefined {
  const health = targets.some(isWell) ? 'well' : 'silent';
  let best: T | undefined;
  let equals = 1;
  for (const target of targets) {
    if (target.health !== health || target === avoid || !hasRoom(target)) continue;
    if (best === undefined || target[load] < best[load]) {
      best = target;
      equals = 1;
    } else if (target[load] === best[load]) {
      // The n-th equal replaces the one kept with a chance of 1 in n, which gives each the same chance.
      equals++;
      if (random() * equals < 1) best = target;
    }
  }
  if (best !== undefined || avoid === undefined) return best;
  return avoid.health === health && hasRoom(avoid) && targets.includes(avoid) ? avoid : undefined;
}

function isWell({ health }: Candidate): boolean {
  return health === 'well';
}
