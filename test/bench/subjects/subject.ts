import type { Credentials } from '../credentials.ts';
import type { Running } from '../processes.ts';

/** What a subject needs to start. */
export interface Stage {
  /** For its configuration and logs. */
  readonly dir: string;
  readonly backendPort: number;
  readonly redisPort: number;
  readonly credentials: Credentials;
  /** The CPUs that the subject runs on, as arguments of taskset; unset: those of the benchmark. */
  readonly subjectCpus: string | undefined;
  /** The PEM files of a certificate and its key, for a subject that is to speak TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** A gateway, or a part of one, that the benchmark measures. */
export interface Subject {
  readonly name: string;
  /** What it does for each request, for the report. */
  readonly job: string;
  /** Whether it looks keys up, so that their number matters. */
  readonly identifies: boolean;
  /** Whether it refuses a key that is over its limit. */
  readonly limits: boolean;
  /** Why it cannot run on this machine, and how to install it; undefined if it can. */
  missing(): string | undefined;
  start(stage: Stage): Promise<StartedSubject>;
}

export interface RunningSubject {
  readonly subject: Subject;
  readonly started: StartedSubject;
}

export interface StartedSubject extends Running {
  /** Without a path. */
  readonly origin: string;
}
