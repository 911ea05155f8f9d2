import type * as z from 'zod';
import { closestName } from '../../shared/schema/closest-name.ts';
import { nameOf, type ShapeFault, shapeFaults } from '../../shared/schema/schema-faults.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import { spaceAfterColon, unspacedName, type YamlSource } from '../source/parse-yaml.ts';

export function shapeProblems(error: z.ZodError, source: YamlSource): readonly Problem[] {
  const problems = createProblemList();
  for (const fault of shapeFaults(error.issues)) {
    if (problems.isFull()) break;
    const part = fault.kind === 'value' ? 'value' : 'name';
    problems.add(() => ({
      ...source.placeOf(fault.path, part),
      message: advisedMessage(fault, source.value),
    }));
  }
  return problems.problems;
}

/** A missing space after a colon, as in `{perMinute:60}`, makes the field part of another text. */
function advisedMessage(fault: ShapeFault, document: unknown): string {
  const written = fault.kind === 'unknown' ? fault.name : valueAt(document, fault.path);
  const isPlace = fault.kind === 'unknown' || /^must be a (?:mapping|list|key|plan)/.test(fault.what);
  const hasNoSpace = isPlace && typeof written === 'string' && unspacedName.test(written);
  return hasNoSpace ? spaceAfterColon : faultMessage(fault);
}

function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, step) => (Object.hasOwn(Object(value), step) ? Object(value)[step] : undefined),
    document,
  );
}

export function faultMessage(fault: ShapeFault): string {
  return fault.kind === 'unknown' ? unknownField(fault) : `${nameOf(fault.path)} ${fault.what}`;
}

/** Repeats only a name that resembles a known name, because any other name may be a secret. */
function unknownField({ name, known }: { readonly name: string; readonly known: readonly string[] }): string {
  const closest = closestName(name, known);
  return closest === undefined
    ? `this field is unknown; known here: ${known.join(', ')}`
    : `the field \`${name}\` is unknown; did you mean \`${closest}\`?`;
}
