import type { Credentials } from '../credentials.ts';
import type { Running } from '../processes.ts';

/** What every subject is given to start with. */
export interface Stage {
  /** A directory for its configuration and logs. */
  readonly dir: string;
  readonly backendPort: number;
  readonly redisPort: number;
  readonly credentials: Credentials;
  /** What a subject runs on, as taskset takes it; unset: wherever the benchmark does. */
  readonly subjectCpus: string | undefined;
}

/** A gateway, or a part of one, that the benchmark measures. */
export interface Subject {
  readonly name: string;
  /** What it does for each request, in the words of the report. */
  readonly job: string;
  /** Whether it looks keys up, so that it matters how many are in play. */
  readonly identifies: boolean;
  /** Whether it refuses a key that is over its limit. */
  readonly limits: boolean;
  /** What keeps it from running on this machine, and how to install it. */
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
