import type { KeyOfPhase } from './lease-client.ts';
import type { SchemeName } from './schemes.ts';

/** In a phase, each process sends requests of one key at random times. */
export interface PhaseOfProcess {
  readonly scheme: SchemeName;
  readonly key: KeyOfPhase;
  readonly requestsPerSecond: number;
  /** On the clock `monotonicUs`. */
  readonly startsUs: number;
  readonly ms: number;
  readonly logFile: string;
}

/** The report of a process after a phase. */
export interface PhaseDone {
  /** The unused units of the process that Redis has charged. */
  readonly unused: number;
}

/** A clock in µs that all processes of the machine share. */
export const monotonicUs = () => Number(process.hrtime.bigint() / 1_000n);
