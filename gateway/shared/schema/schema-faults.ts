import type * as z from 'zod';
import { isMisspelt } from './closest-name.ts';

/** With the path of the faulty part. */
export type ShapeFault =
  /** `what` continues a sentence that begins with the name of the part: "must be a whole number". `name`: the name of a field is faulty. */
  | { readonly kind: 'value' | 'name'; readonly path: Path; readonly what: string }
  | {
      readonly kind: 'unknown';
      readonly path: Path;
      readonly name: string;
      readonly known: readonly string[];
    };

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/**
 * Yields the faults singly, because a document may have a million faults. If the name of a required field is misspelt, only the unknown
 * field is a fault.
 */
export function* shapeFaults(issues: readonly Issue[], base: Path = []): Generator<ShapeFault> {
  const unknown = new Map<string, z.core.$ZodIssueUnrecognizedKeys>();
  for (const issue of issues) if (issue.code === 'unrecognized_keys') unknown.set(nameOf(issue.path), issue);
  for (const issue of issues) {
    if (issue.message.startsWith('is missing')) {
      const beside = unknown.get(nameOf(issue.path.slice(0, -1)));
      if (beside && isMisspelt(String(issue.path.at(-1)), beside.keys, knownFields(beside))) continue;
    }
    yield* faultsOf(issue, [...base, ...issue.path]);
  }
}

/** As `fields` in `schema-parts.ts` writes them into the message. */
function knownFields({ message }: z.core.$ZodIssueUnrecognizedKeys): readonly string[] {
  return message.split(' ');
}

function* faultsOf(issue: Issue, path: Path): Generator<ShapeFault> {
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = knownFields(issue);
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

/** The author of a value of the wrong type meant another alternative of the union. */
function isWrongAsAWhole(issue: Issue): boolean {
  return issue.path.length === 0 && issue.code !== 'unrecognized_keys';
}

/** `plans.free.perMinute`, `keys[3].id`. */
export function nameOf(path: Path): string {
  if (path.length === 0) return 'the document';
  const name = path.reduce<string>((written, step) => {
    if (typeof step === 'number') return `${written}[${step}]`;
    return written === '' ? String(step) : `${written}.${String(step)}`;
  }, '');
  return `\`${name}\``;
}
