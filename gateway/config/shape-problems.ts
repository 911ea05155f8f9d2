import type * as z from 'zod';
import { bounds } from '../bounds.ts';
import { closestName } from './closest-name.ts';
import type { YamlSource } from './parse-yaml.ts';
import type { Problem } from './problem.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Turns what a schema refuses of a document into problems with their places. */
export function shapeProblems(error: z.ZodError, source: YamlSource): Problem[] {
  return error.issues
    .slice(0, bounds.configProblemsMax + 1)
    .flatMap((issue) => problemsOf(issue, source, []));
}

function problemsOf(issue: Issue, source: YamlSource, base: Path): Problem[] {
  const path = [...base, ...issue.path];
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((name) => ({
        ...source.placeOf([...path, name], 'name'),
        message: unknownField(name, issue.message.split(' ')),
      }));
    case 'invalid_union': {
      const meant = issue.errors.find((branch) => !branch.some(isWrongAsAWhole));
      if (meant !== undefined)
        return meant
          .slice(0, bounds.configProblemsMax + 1)
          .flatMap((inner) => problemsOf(inner, source, path));
      return [{ ...source.placeOf(path), message: `${nameOf(path)} ${issue.message}` }];
    }
    case 'invalid_key': {
      const [inner] = issue.issues;
      const message = `${nameOf(path)} ${inner?.message ?? issue.message}`;
      return [{ ...source.placeOf(path, 'name'), message }];
    }
    default:
      return [{ ...source.placeOf(path), message: `${nameOf(path)} ${issue.message}` }];
  }
}

/** Of a union's branches, the one that was meant is the one whose kind of value is there. */
function isWrongAsAWhole(issue: Issue): boolean {
  return issue.path.length === 0 && issue.code !== 'unrecognized_keys';
}

/** A name that resembles none is not repeated: under `keys` it may be a secret, as in `keys: { SECRET: free }`. */
function unknownField(name: string, known: readonly string[]): string {
  const closest = closestName(name, known);
  return closest === undefined
    ? `this field is unknown; known here: ${known.join(', ')}`
    : `the field \`${name}\` is unknown; did you mean \`${closest}\`?`;
}

/** A path as people write it: `plans.free.perMinute`, `keys[3].id`. */
export function nameOf(path: Path): string {
  if (path.length === 0) return 'the document';
  const name = path.reduce<string>((written, step) => {
    if (typeof step === 'number') return `${written}[${step}]`;
    return written === '' ? String(step) : `${written}.${String(step)}`;
  }, '');
  return `\`${name}\``;
}
