import { configSizes } from '../config-sizes.ts';
import type { Problem } from './problem.ts';

/** The problems of one check, up to a maximum. A file may have a million faults, but a report lists a hundred. */
export interface ProblemList {
  readonly problems: readonly Problem[];
  /** Whether the list is full, so that the check can stop. */
  isFull(): boolean;
  /** Adds a problem. `make` is called only if the list has room, because computing the place and the message takes time. */
  add(make: () => Problem): void;
}

/** Makes an empty list. It accepts one problem more than a report lists, so that the report can mention further problems. */
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
