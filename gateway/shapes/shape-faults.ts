import type * as z from 'zod';
import { closestName } from './closest-name.ts';

/** What is wrong with one member of a value, and which. */
export interface ShapeFault {
  readonly path: Path;
  /** Whether it is about the member's name or its value. */
  readonly part: 'name' | 'value';
  /** A sentence that names the member. */
  readonly message: string;
}

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Puts the issues that a schema found into words, one after the other: there may be a million. @param base where the value is */
export function* shapeFaults(issues: readonly Issue[], base: Path = []): Generator<ShapeFault> {
  for (const issue of issues) yield* faultsOf(issue, [...base, ...issue.path]);
}

function* faultsOf(issue: Issue, path: Path): Generator<ShapeFault> {
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = issue.message.split(' ');
      for (const name of issue.keys) {
        yield { path: [...path, name], part: 'name', message: unknownField(name, known) };
      }
      return;
    }
    case 'invalid_union': {
      const meant = issue.errors.find((branch) => !branch.some(isWrongAsAWhole));
      if (meant !== undefined) yield* shapeFaults(meant, path);
      else yield { path, part: 'value', message: `${nameOf(path)} ${issue.message}` };
      return;
    }
    case 'invalid_key': {
      const [inner] = issue.issues;
      yield { path, part: 'name', message: `${nameOf(path)} ${inner?.message ?? issue.message}` };
      return;
    }
    default:
      yield { path, part: 'value', message: `${nameOf(path)} ${issue.message}` };
  }
}

/** Whether the value is of another kind than this branch of a union expects: then the branch was not meant. */
function isWrongAsAWhole(issue: Issue): boolean {
  return issue.path.length === 0 && issue.code !== 'unrecognized_keys';
}

/** A name that resembles no known one is not repeated: under `keys` it may be a secret, as in `keys: { SECRET: free }`. */
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
