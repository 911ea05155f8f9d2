import fc from 'fast-check';
import { connectionArbitrary, type Pieces } from './connection-arbitrary.ts';
import { type Rig, startRig } from './rig.ts';

export interface FuzzOptions {
  readonly seed: number;
  /** The run ends after `count` connections or `seconds`, whichever comes first. */
  readonly count: number;
  readonly seconds: number;
}

export interface FuzzReport {
  readonly connections: number;
  /** The number of responses with each status. */
  readonly responsesByStatus: ReadonlyMap<number, number>;
  /** The number of complete requests that the backend received. */
  readonly admitted: number;
  readonly finding: Finding | undefined;
}

export interface Finding {
  /**
   * The writes of the smallest failing connection, as Latin-1 texts. Empty if the fault belongs to the whole process and not to a
   * connection.
   */
  readonly pieces: Pieces;
  readonly faults: readonly string[];
}

/** The time limit for shrinking a finding. */
const shrinkMs = 30_000;

/** Sends hostile connections to a gateway until the judge finds a fault, and shrinks the failing connection. */
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
    // The time limit may have stopped the first shrinking, so this call continues from the counterexample.
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
