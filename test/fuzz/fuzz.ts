import fc from 'fast-check';
import { connectionArbitrary, type Pieces } from './connection-arbitrary.ts';
import { type Rig, startRig } from './rig.ts';

export interface FuzzOptions {
  readonly seed: number;
  /** It ends after that many connections or that many seconds, whichever comes first. */
  readonly count: number;
  readonly seconds: number;
}

export interface FuzzReport {
  readonly connections: number;
  /** How many answers had which status. */
  readonly responsesByStatus: ReadonlyMap<number, number>;
  /** Requests that the backend received whole. */
  readonly admitted: number;
  readonly finding: Finding | undefined;
}

export interface Finding {
  /** The writes of the smallest connection found, Latin-1; empty when the fault is the process's as a whole. */
  readonly pieces: Pieces;
  readonly faults: readonly string[];
}

/** How long a finding is made smaller. */
const shrinkMs = 30_000;

/** Sends hostile connections to a gateway of its own until one is judged faulty, and makes that one small. */
export async function fuzz({ seed, count, seconds }: FuzzOptions): Promise<FuzzReport> {
  const rig = await startRig();
  const responsesByStatus = new Map<number, number>();
  let connections = 0;
  let admitted = 0;
  let finding: Finding | undefined;

  const property = fc.asyncProperty(connectionArbitrary(), async (pieces) => {
    const verdict = await rig.try(pieces);
    connections++;
    admitted += verdict.admitted;
    for (const status of verdict.statuses) {
      responsesByStatus.set(status, (responsesByStatus.get(status) ?? 0) + 1);
    }
    if (verdict.faults.length > 0) finding = { pieces, faults: verdict.faults };
    return verdict.faults.length === 0;
  });

  try {
    const run = { seed, numRuns: count, markInterruptAsFailure: false };
    const found = await fc.check(property, { ...run, interruptAfterTimeLimit: seconds * 1_000 });
    const path = found.counterexamplePath;
    // Again from there, since the time limit may have cut the shrinking short.
    if (path !== null) await fc.check(property, { ...run, path, interruptAfterTimeLimit: shrinkMs });
  } finally {
    finding = await endOf(rig, finding);
  }
  return { connections, responsesByStatus, admitted, finding };
}

async function endOf(rig: Rig, finding: Finding | undefined): Promise<Finding | undefined> {
  const faults = await rig.stop();
  return finding ?? (faults.length > 0 ? { pieces: [], faults } : undefined);
}
