/** What the choice among targets looks at. */
export interface Candidate {
  readonly healthy: boolean;
  readonly inFlight: number;
}

interface Choice<T extends Candidate> {
  readonly targets: readonly T[];
  /** Requests that one target may hold, waiting ones included. */
  readonly inFlightMax: number;
  /** The target that just failed: taken only when there is no other. */
  readonly avoid: T | undefined;
  readonly random: () => number;
}

/** The healthy target with the fewest outstanding requests, a random one among equals; undefined when none has room. */
export function chooseTarget<T extends Candidate>({
  targets,
  inFlightMax,
  avoid,
  random,
}: Choice<T>): T | undefined {
  let best: T | undefined;
  let equals = 1;
  for (const target of targets) {
    if (!target.healthy || target.inFlight >= inFlightMax || target === avoid) continue;
    if (best === undefined || target.inFlight < best.inFlight) {
      best = target;
      equals = 1;
    } else if (target.inFlight === best.inFlight) {
      // The n-th equal replaces the one kept with a chance of 1 in n, which gives each the same chance.
      equals++;
      if (random() * equals < 1) best = target;
    }
  }
  if (best !== undefined || avoid === undefined) return best;
  return avoid.healthy && avoid.inFlight < inFlightMax && targets.includes(avoid) ? avoid : undefined;
}
