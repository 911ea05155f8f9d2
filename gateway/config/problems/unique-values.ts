import { nameOf } from '../../shared/schema/schema-faults.ts';
import type { YamlSource } from '../source/parse-yaml.ts';
import type { ProblemList } from './problem-list.ts';

type Path = readonly PropertyKey[];

/** Values that must be unique, such as the ids of keys. */
export interface UniqueValues {
  /** Reports a value that an earlier place has claimed. */
  claim(value: string, at: Path): void;
}

export function createUniqueValues({
  what,
  source,
  problems,
}: {
  /** The name of the value in a report, such as `this id`. */
  readonly what: string;
  readonly source: YamlSource;
  readonly problems: ProblemList;
}): UniqueValues {
  const taken = new Map<string, Path>();
  return {
    claim(value, at) {
      const first = taken.get(value);
      if (first === undefined) {
        taken.set(value, at);
        return;
      }
      problems.add(() => ({
        ...source.placeOf(at),
        message: `${nameOf(at)}: ${what} is already taken by ${nameOf(first)}; each must be unique`,
        related: { ...source.placeOf(first), message: 'it is here' },
      }));
    },
  };
}
