import type { Credentials } from './credentials.ts';
import type { BenchRedis } from './redis.ts';
import { hotKey, type NoteProblems, type Sample, takeSample, warmUp } from './scenarios.ts';
import type { RunningSubject } from './subjects/subject.ts';

/** The measured cost of a subject while a given number of connections is open. */
export interface ConnectionsFigures {
  readonly connections: number;
  readonly subject: string;
  readonly sample: Sample;
}

/** The gateway's curve is compared with the curves of these subjects. */
const compared = ['tollgate', 'nginx + lua', 'undici dispatch'];

export interface ConnectionsOptions {
  readonly running: readonly RunningSubject[];
  readonly redis: BenchRedis;
  readonly credentials: Credentials;
  readonly noteProblems: NoteProblems;
  readonly warmUpSeconds: number;
  readonly quick: boolean;
}

/** Measures one hot key on a growing number of connections. The cost of a request must not grow with the number of connections. */
export async function measureConnections(options: ConnectionsOptions): Promise<ConnectionsFigures[]> {
  const { running, warmUpSeconds, quick } = options;
  const figures: ConnectionsFigures[] = [];
  for (const connections of quick ? [1, 1_024] : [1, 4, 16, 64, 256, 1_024]) {
    console.log(`connections: ${connections}`);
    for (const { subject, started } of running.filter((one) => compared.includes(one.subject.name))) {
      const load = {
        ...options,
        scenario: { ...hotKey, connections },
        subject: started,
        where: `${connections} connections, ${subject.name}`,
      };
      await warmUp({ ...load, seconds: warmUpSeconds });
      const sample = await takeSample({ ...load, seconds: quick ? 1 : 3 });
      figures.push({ connections, subject: subject.name, sample });
    }
  }
  return figures;
}
