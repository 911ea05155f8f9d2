import type { Credentials } from './credentials.ts';
import type { BenchRedis } from './redis.ts';
import { hotKey, type Sample, takeSample } from './scenarios.ts';
import type { StartedSubject, Subject } from './subjects/subject.ts';

/** What a subject costs at one number of connections. */
export interface ConnectionsFigures {
  readonly connections: number;
  readonly subject: string;
  readonly sample: Sample;
}

/** Their curves are what the gateway's is held against. */
const compared = ['tollgate', 'nginx + lua', 'undici dispatch'];

export interface ConnectionsOptions {
  readonly running: readonly { readonly subject: Subject; readonly started: StartedSubject }[];
  readonly redis: BenchRedis;
  readonly credentials: Credentials;
  readonly quick: boolean;
}

/** One hot key over more and more connections: the cost of a request must not grow with them. */
export async function measureConnections(options: ConnectionsOptions): Promise<ConnectionsFigures[]> {
  const { running, redis, credentials, quick } = options;
  const figures: ConnectionsFigures[] = [];
  for (const connections of quick ? [1, 1_024] : [1, 4, 16, 64, 256, 1_024]) {
    console.log(`connections: ${connections}`);
    for (const { subject, started } of running.filter((one) => compared.includes(one.subject.name))) {
      const sample = await takeSample({
        scenario: { ...hotKey, connections },
        subject: started,
        redis,
        credentials,
        seconds: quick ? 1 : 3,
      });
      for (const problem of sample.problems) {
        console.error(`INVALID: ${connections} connections, ${subject.name}: ${problem}`);
      }
      figures.push({ connections, subject: subject.name, sample });
    }
  }
  return figures;
}
