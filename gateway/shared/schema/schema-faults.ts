import type * as z from 'zod';

/** What is wrong with a value of some shape, and with which part of it. */
export type ShapeFault =
  /** What follows the name of the part in a sentence: "must be a whole number". `name`: it is about the name of that field. */
  | { readonly kind: 'value' | 'name'; readonly path: Path; readonly what: string }
  /** A field that is not known; those that are. */
  | {
      readonly kind: 'unknown';
      readonly path: Path;
      readonly name: string;
      readonly known: readonly string[];
    };

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** The issues that a schema found, one after the other: a document may have a million. */
export function* shapeFaults(issues: readonly Issue[], base: Path = []): Generator<ShapeFault> {
  for (const issue of issues) yield* faultsOf(issue, [...base, ...issue.path]);
}

function* faultsOf(issue: Issue, path: Path): Generator<ShapeFault> {
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = issue.message.split(' ');
      for (const name of issue.keys) yield { kind: 'unknown', path: [...path, name], name, known };
      return;
    }
    case 'invalid_union': {
      const meant = issue.errors.find((branch) => !branch.some(isWrongAsAWhole));
      if (meant !== undefined) yield* shapeFaults(meant, path);
      else yield { kind: 'value', path, what: issue.message };
      return;
    }
    case 'invalid_key': {
      const [inner] = issue.issues;
      yield { kind: 'name', path, what: inner?.message ?? issue.message };
      return;
    }
    default:
      yield { kind: 'value', path, what: issue.message };
  }
}

/** Whether the value is of another kind than this branch of a union expects: then the branch was not meant. */
function isWrongAsAWhole(issue: Issue): boolean {
  return issue.path.length === 0 && issue.code !== 'unrecognized_keys';
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
