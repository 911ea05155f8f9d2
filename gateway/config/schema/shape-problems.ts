import type * as z from 'zod';
import { closestName } from '../problems/closest-name.ts';
import type { Problem } from '../problems/problem.ts';
import { createProblemList, type ProblemList } from '../problems/problem-list.ts';
import type { YamlSource } from '../source/parse-yaml.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Turns the issues that a schema found in a document into problems with their places. */
export function shapeProblems(error: z.ZodError, source: YamlSource): readonly Problem[] {
  const problems = createProblemList();
  addIssues(error.issues, { source, base: [], problems });
  return problems.problems;
}

interface IssueContext {
  readonly source: YamlSource;
  /** The path of the value that the issues are about. */
  readonly base: Path;
  readonly problems: ProblemList;
}

function addIssues(issues: readonly Issue[], context: IssueContext): void {
  for (const issue of issues) {
    if (context.problems.isFull()) return;
    addIssue(issue, context);
  }
}

function addIssue(issue: Issue, { source, base, problems }: IssueContext): void {
  const path = [...base, ...issue.path];
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = issue.message.split(' ');
      for (const name of issue.keys) {
        if (problems.isFull()) return;
        problems.add(() => ({
          ...source.placeOf([...path, name], 'name'),
          message: unknownField(name, known),
        }));
      }
      return;
    }
    case 'invalid_union': {
      const meant = issue.errors.find((branch) => !branch.some(isWrongAsAWhole));
      if (meant !== undefined) addIssues(meant, { source, base: path, problems });
      else problems.add(() => ({ ...source.placeOf(path), message: `${nameOf(path)} ${issue.message}` }));
      return;
    }
    case 'invalid_key': {
      const [inner] = issue.issues;
      const message = `${nameOf(path)} ${inner?.message ?? issue.message}`;
      problems.add(() => ({ ...source.placeOf(path, 'name'), message }));
      return;
    }
    default:
      problems.add(() => ({ ...source.placeOf(path), message: `${nameOf(path)} ${issue.message}` }));
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
