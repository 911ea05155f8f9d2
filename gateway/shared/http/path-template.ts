/**
 * A segment (OpenAPI 3.1 §4.8.8): its text, or the texts around its parameters. `{id}` becomes `['', '']`, and `{year}-{month}.json`
 * becomes `['', '-', '.json']`.
 */
export type TemplateSegment = string | readonly string[];

export interface PathTemplate {
  readonly segments: readonly TemplateSegment[];
  /** Whether it ends in `{name+}` or `{+name}`. Its last segment then also matches all further segments of a path. */
  readonly hasRest: boolean;
}

export function parseTemplate(template: string): PathTemplate {
  const segments = template.split('/').map((segment) => {
    const texts = segment.split(parameter);
    return texts.length === 1 ? segment : texts;
  });
  return { segments, hasRest: rest.test(template) };
}

export const parameter = /\{[^{}/]+\}/g;

/** A parameter that matches the rest of the path. `{proxy+}` is the form of AWS, and `{+name}` the form of RFC 6570. */
export const rest = /\{(?:\+[^{}/]+|[^{}/]+\+)\}$/;

/** Whether the whole segment is one parameter. */
export function isParameter(texts: readonly string[]): boolean {
  return texts.length === 2 && texts[0] === '' && texts[1] === '';
}

export function isSameSegment(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, i) => text === other[i]);
}

export function matchesSegment(template: TemplateSegment, segment: string): boolean {
  return typeof template === 'string' ? template === segment : matchesTexts(template, segment);
}

/** A parameter stands for at least one character. */
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

/** The matching segment with the most fixed characters takes precedence. */
export function fixedChars(texts: readonly string[]): number {
  return texts.reduce((chars, text) => chars + text.length, 0);
}

/** A node in the tree of path templates: a prefix of templates, with the possible next segments. */
export interface TemplateBranch<Value> {
  value: Value | undefined;
  /** The value of a template that ends here and also matches all further segments. */
  rest: Value | undefined;
  readonly literal: Map<string, TemplateBranch<Value>>;
  /** Segments of text and parameters, in order of precedence. */
  readonly mixed: { readonly texts: readonly string[]; readonly branch: TemplateBranch<Value> }[];
  parameter: TemplateBranch<Value> | undefined;
}

export function emptyBranch<Value>(): TemplateBranch<Value> {
  return { value: undefined, rest: undefined, literal: new Map(), mixed: [], parameter: undefined };
}

/** A template without a value gets the value of `create`. */
export function valueAt<Value>(
  root: TemplateBranch<Value>,
  { segments, hasRest }: PathTemplate,
  create: () => Value,
): Value {
  let branch = root;
  for (const segment of segments) branch = nextBranch(branch, segment);
  const end = hasRest ? 'rest' : 'value';
  branch[end] ??= create();
  return branch[end];
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
 * Concrete segments take precedence over templated ones, from left to right. A template that matches the rest of the path comes last. The
 * search visits each branch at most once.
 */
export function findByPath<Value>(
  branch: TemplateBranch<Value>,
  segments: readonly string[],
  index = 0,
): Value | undefined {
  const segment = segments[index];
  if (segment === undefined) return branch.value ?? branch.rest;
  const literal = branch.literal.get(segment);
  let found = literal && findByPath(literal, segments, index + 1);
  for (let i = 0; found === undefined && i < branch.mixed.length; i++) {
    const mixed = branch.mixed[i];
    if (mixed && matchesTexts(mixed.texts, segment)) found = findByPath(mixed.branch, segments, index + 1);
  }
  if (found === undefined && segment !== '' && branch.parameter !== undefined) {
    found = findByPath(branch.parameter, segments, index + 1);
  }
  return found ?? branch.rest;
}
