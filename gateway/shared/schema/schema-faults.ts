import type * as z from 'zod';
import { isMisspelt } from './closest-name.ts';

/** A fault that a schema found in a value, with the path of the faulty part. */
export type ShapeFault =
  /**
   * In a message, the text `what` follows the name of the faulty part, for example "must be a whole number". The kind `name` reports a
   * faulty field name, and the kind `value` reports a faulty value.
   */
  | { readonly kind: 'value' | 'name'; readonly path: Path; readonly what: string }
  /** An unknown field, with the list of the known fields. */
  | {
      readonly kind: 'unknown';
      readonly path: Path;
      readonly name: string;
      readonly known: readonly string[];
    };

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/**
 * Yields the faults in a schema's issues one at a time, because a document may have a million faults. If the name of a required field is
 * misspelt, only the unknown field is a fault.
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

/** The known fields, which `fields` in `schema-parts.ts` writes into the message. */
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

/** Whether a value has the wrong type for this alternative of a union. The author of the value then meant another alternative. */
function isWrongAsAWhole(issue: Issue): boolean {
  return issue.path.length === 0 && issue.code !== 'unrecognized_keys';
}

/** The readable form of a path: `plans.free.perMinute`, `keys[3].id`. */
export function nameOf(path: Path): string {
  if (path.length === 0) return 'the document';
  const name = path.reduce<string>((written, step) => {
    if (typeof step === 'number') return `${written}[${step}]`;
    return written === '' ? String(step) : `${written}.${String(step)}`;
  }, '');
  return `\`${name}\``;
}
