import { configSizes } from '../config-sizes.ts';
import type { Problem } from './problem.ts';

/** The problems that one check finds, up to a maximum: a file may have a million faults, and a report lists a hundred. */
export interface ProblemList {
  readonly problems: readonly Problem[];
  /** Whether it takes no more problems, so that the check can stop. */
  isFull(): boolean;
  /** Adds a problem. `make` is only called when there is room: to work out a place and a message takes time. */
  add(make: () => Problem): void;
}

/** Makes an empty list. It takes one problem more than a report lists, which shows that there are more. */
export function createProblemList(problemsMax: number = configSizes.problemsMax): ProblemList {
  const problems: Problem[] = [];
  const isFull = () => problems.length > problemsMax;
  return {
    problems,
    isFull,
    add(make) {
      if (!isFull()) problems.push(make());
    },
  };
}
