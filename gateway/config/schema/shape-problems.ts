import type * as z from 'zod';
import { closestName } from '../../shared/schema/closest-name.ts';
import { nameOf, type ShapeFault, shapeFaults } from '../../shared/schema/schema-faults.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

/** Converts the issues of a schema check into problems with lines and columns. */
export function shapeProblems(error: z.ZodError, source: YamlSource): readonly Problem[] {
  const problems = createProblemList();
  for (const fault of shapeFaults(error.issues)) {
    if (problems.isFull()) break;
    const part = fault.kind === 'value' ? 'value' : 'name';
    problems.add(() => ({ ...source.placeOf(fault.path, part), message: faultMessage(fault) }));
  }
  return problems.problems;
}

/** Makes a sentence that names the part and its fault. */
export function faultMessage(fault: ShapeFault): string {
  return fault.kind === 'unknown' ? unknownField(fault) : `${nameOf(fault.path)} ${fault.what}`;
}

/**
 * The message for an unknown field. The message repeats only a name that resembles a known name, because any other name may be a
 * secret.
 */
function unknownField({ name, known }: { readonly name: string; readonly known: readonly string[] }): string {
  const closest = closestName(name, known);
  return closest === undefined
    ? `this field is unknown; known here: ${known.join(', ')}`
    : `the field \`${name}\` is unknown; did you mean \`${closest}\`?`;
}
