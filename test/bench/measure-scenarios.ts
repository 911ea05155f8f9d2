import type { Credentials } from './credentials.ts';
import type { BenchRedis } from './redis.ts';
import { type NoteProblems, type Sample, type Scenario, takeSample, warmUp } from './scenarios.ts';
import type { RunningSubject } from './subjects/subject.ts';

/** Measures the cost of every subject in one scenario, round by round. */
export interface ScenarioFigures {
  readonly name: string;
  readonly title: string;
  readonly subjects: readonly {
    readonly name: string;
    readonly job: string;
    readonly samples: readonly Sample[];
  }[];
}

export interface ScenariosOptions {
  readonly scenarios: readonly Scenario[];
  /** The subjects have been warmed up with another load. */
  readonly running: readonly RunningSubject[];
  readonly redis: BenchRedis;
  readonly credentials: Credentials;
  readonly noteProblems: NoteProblems;
  readonly rounds: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** Called after each round with the figures of all rounds so far. */
  readonly onRound: (figures: readonly ScenarioFigures[], rounds: number) => void;
}

/**
 * A round takes one short sample of every subject in every scenario. Every second round has the subjects in the opposite order, because a
 * process still writes the usage record of a scenario while the next scenario is measured. The speed of the machine changes by up to a
 * factor of two within minutes, so only samples of one round are comparable. Many short rounds give better figures than a few long rounds.
 */
export async function measureScenarios(options: ScenariosOptions): Promise<ScenarioFigures[]> {
  const { scenarios, running, rounds } = options;
  const visits = scenarios.map((scenario) =>
    running
      .filter(({ subject }) => scenario.suits(subject))
      .map(({ subject, started }) => ({ scenario, subject, started, samples: [] as Sample[] })),
  );
  const loadOf = ({ scenario, subject, started }: (typeof visits)[number][number]) => ({
    ...options,
    scenario,
    subject: started,
    where: `${scenario.name}, ${subject.name}`,
  });

  console.log('scenarios: warm-up');
  for (const visit of visits.flat()) await warmUp({ ...loadOf(visit), seconds: options.warmUpSeconds });
  for (let round = 0; round < rounds; round++) {
    console.log(`scenarios: round ${round + 1} of ${rounds}`);
    for (const visit of visits.flatMap((of) => (round % 2 === 0 ? of : of.toReversed()))) {
      visit.samples.push(await takeSample(loadOf(visit)));
    }
    options.onRound(figuresSoFar(), round + 1);
  }
  return figuresSoFar();

  function figuresSoFar(): ScenarioFigures[] {
    return scenarios.map(({ name, title }, place) => ({
      name,
      title,
      subjects: (visits[place] ?? []).map(({ subject, samples }) => ({
        name: subject.name,
        job: subject.job,
        samples: [...samples],
      })),
    }));
  }
}
