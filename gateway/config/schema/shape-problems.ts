import type * as z from 'zod';
import { shapeFaults } from '../../shapes/shape-faults.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList } from '../problems/problem-list.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

/** Turns the issues that a schema found in a document into problems with their places. */
export function shapeProblems(error: z.ZodError, source: YamlSource): readonly Problem[] {
  const problems = createProblemList();
  for (const { path, part, message } of shapeFaults(error.issues)) {
    if (problems.isFull()) break;
    problems.add(() => ({ ...source.placeOf(path, part), message }));
  }
  return problems.problems;
}
