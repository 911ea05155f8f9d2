import type { Credentials } from '../credentials.ts';
import type { Running } from '../processes.ts';

/** The data that a subject needs to start. */
export interface Stage {
  /** The folder for the subject's configuration and logs. */
  readonly dir: string;
  readonly backendPort: number;
  readonly redisPort: number;
  readonly credentials: Credentials;
  /** The CPUs of the subject, as arguments of taskset; undefined: the CPUs of the benchmark. */
  readonly subjectCpus: string | undefined;
  /** The PEM files of a certificate and its key, for a subject with TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** A gateway, or a part of one, that the benchmark measures. */
export interface Subject {
  readonly name: string;
  /** A description of the subject's work for each request. The report prints this description. */
  readonly job: string;
  /** Whether the subject looks up keys. The cost of a look-up may depend on the number of keys. */
  readonly identifies: boolean;
  /** Whether the subject refuses a key above its limit. */
  readonly limits: boolean;
  /** The reason why the subject cannot run on this machine, and how to install it; undefined when it can run. */
  missing(): string | undefined;
  start(stage: Stage): Promise<StartedSubject>;
}

export interface RunningSubject {
  readonly subject: Subject;
  readonly started: StartedSubject;
}

export interface StartedSubject extends Running {
  /** The origin of the subject's URL, without a path. */
  readonly origin: string;
}
