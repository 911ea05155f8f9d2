/**
 * A segment of a path template (OpenAPI 3.1 §4.8.8): its text, or the list of the texts around its parameters. For example, `{id}` becomes
 * `['', '']`, and `{year}-{month}.json` becomes `['', '-', '.json']`.
 */
export type TemplateSegment = string | readonly string[];

export function segmentsOf(template: string): readonly TemplateSegment[] {
  return template.split('/').map((segment) => {
    const texts = segment.split(parameter);
    return texts.length === 1 ? segment : texts;
  });
}

export const parameter = /\{[^{}/]+\}/g;

/** Whether the whole segment is one parameter. */
export function isParameter(texts: readonly string[]): boolean {
  return texts.length === 2 && texts[0] === '' && texts[1] === '';
}

export function isSameSegment(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, i) => text === other[i]);
}

/** Whether a segment of a request path matches a template segment with parameters. Each parameter stands for at least one character. */
export function matchesTexts(texts: readonly string[], segment: string): boolean {
  const first = texts[0] ?? '';
  const last = texts.at(-1) ?? '';
  if (!segment.startsWith(first) || !segment.endsWith(last)) return false;
  let end = first.length;
  for (let i = 1; i < texts.length - 1; i++) {
    const text = texts[i] ?? '';
    // The search takes the earliest match, which leaves the most characters for the remaining texts.
    const start = segment.indexOf(text, end + 1);
    if (start === -1) return false;
    end = start + text.length;
  }
  return end < segment.length - last.length;
}

/**
 * The number of fixed characters in a segment with parameters. The matching segment with
 * the most fixed characters takes precedence.
 */
export function fixedChars(texts: readonly string[]): number {
  return texts.reduce((chars, text) => chars + text.length, 0);
}

/** A node in the tree of path templates: a prefix of templates, with the possible next segments. */
export interface TemplateBranch<Value> {
  /** The value of the template that ends at this branch. */
  value: Value | undefined;
  readonly literal: Map<string, TemplateBranch<Value>>;
  /** The branches for segments that combine text and parameters, in order of precedence. */
  readonly mixed: { readonly texts: readonly string[]; readonly branch: TemplateBranch<Value> }[];
  /** The branch for a segment that is a single parameter. */
  parameter: TemplateBranch<Value> | undefined;
}

/** An empty tree of templates. */
export function emptyBranch<Value>(): TemplateBranch<Value> {
  return { value: undefined, literal: new Map(), mixed: [], parameter: undefined };
}

/** Finds the branch at which a template ends, and creates missing branches. */
export function branchAt<Value>(
  root: TemplateBranch<Value>,
  segments: readonly TemplateSegment[],
): TemplateBranch<Value> {
  let branch = root;
  for (const segment of segments) branch = nextBranch(branch, segment);
  return branch;
}

function nextBranch<Value>(from: TemplateBranch<Value>, segment: TemplateSegment): TemplateBranch<Value> {
  if (typeof segment === 'string') {
    const next = from.literal.get(segment) ?? emptyBranch();
    from.literal.set(segment, next);
    return next;
  }
  if (isParameter(segment)) {
    from.parameter ??= emptyBranch();
    return from.parameter;
  }
  const known = from.mixed.find(({ texts }) => isSameSegment(texts, segment));
  if (known !== undefined) return known.branch;
  const branch = emptyBranch<Value>();
  from.mixed.push({ texts: segment, branch });
  from.mixed.sort((a, b) => fixedChars(b.texts) - fixedChars(a.texts));
  return branch;
}

/**
 * Finds the value of the template that matches a path. Concrete segments take precedence over templated segments, from left to right. The
 * search visits each branch at most once.
 */
export function findByPath<Value>(
  branch: TemplateBranch<Value>,
  segments: readonly string[],
  index = 0,
): Value | undefined {
  const segment = segments[index];
  if (segment === undefined) return branch.value;
  const literal = branch.literal.get(segment);
  let found = literal && findByPath(literal, segments, index + 1);
  for (let i = 0; found === undefined && i < branch.mixed.length; i++) {
    const mixed = branch.mixed[i];
    if (mixed && matchesTexts(mixed.texts, segment)) found = findByPath(mixed.branch, segments, index + 1);
  }
  if (found !== undefined || segment === '' || branch.parameter === undefined) return found;
  return findByPath(branch.parameter, segments, index + 1);
}
