import { configSizes } from '../config-sizes.ts';
import type { Problem } from './problem.ts';

/** The problems that one check finds, bounded: a file may hold a million faults, and a report lists a hundred. */
export interface ProblemList {
  readonly problems: readonly Problem[];
  /** Nothing more is taken; a check that finds the list full can stop. */
  isFull(): boolean;
  /** Takes a problem. It is only made when there is room: to work out its place and its message costs time. */
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
