import { nameOf } from '../../shared/schema/schema-faults.ts';
import { configSizes } from '../config-sizes.ts';
import type { Place, Problem } from './problem.ts';

/** A file may have a million faults, but a report lists a hundred. */
export interface ProblemList {
  readonly problems: readonly Problem[];
  isFull(): boolean;
  /** `make` is called only if the list has room, because computing the place and the message takes time. */
  add(make: () => Problem): void;
}

/** Accepts one problem more than a report shows, so that the report can say that there are further problems. */
export function createProblemList(): ProblemList {
  const problems: Problem[] = [];
  const isFull = () => problems.length > configSizes.problemsMax;
  return {
    problems,
    isFull,
    add(make) {
      if (!isFull()) problems.push(make());
    },
  };
}

type Path = readonly PropertyKey[];

export function createUniqueValues({
  what,
  source,
  problems,
}: {
  /** For example `this id`. */
  readonly what: string;
  readonly source: { placeOf(path: Path): Place };
  readonly problems: ProblemList;
}) {
  const taken = new Map<string, Path>();
  return {
    /** Reports the value as a duplicate if an earlier call has recorded it. */
    claim(value: string, at: Path) {
      const first = taken.get(value);
      if (first === undefined) {
        taken.set(value, at);
        return;
      }
      problems.add(() => ({
        ...source.placeOf(at),
        message: `${nameOf(at)}: ${what} is already taken by ${nameOf(first)}; each must be unique`,
        related: { ...source.placeOf(first), message: `${nameOf(first)} is here` },
      }));
    },
  };
}
