import {
  emptyBranch,
  fixedChars,
  isParameter,
  isSameSegment,
  matchesTexts,
  type PathTemplate,
  parameter,
  parseTemplate,
  rest,
  type TemplateBranch,
  type TemplateSegment,
  valueAt,
} from '../../shared/http/path-template.ts';

/** Why no accepted request can match a template. */
export function templateFault(template: string): string | undefined {
  if (!template.startsWith('/')) return 'a path begins with `/`';
  const segments = template.slice(1).split('/');
  // A template that ends in a slash has an empty last segment.
  const wrong = segments.find((segment, i) =>
    segment === '' ? i < segments.length - 1 : !isMatchable(segment),
  );
  if (wrong === undefined) return undefined;
  if (wrong === '') return 'remove the empty segment';
  if (/[{}]/.test(wrong.replaceAll(parameter, ''))) return 'write a parameter as `{petId}`';
  if (/[?#]/.test(wrong)) return 'a path ends before `?` and `#`';
  return `the segment \`${wrong}\` is refused in requests, or has another spelling`;
}

/** Why a parameter may not match what its author expects. */
export function parameterFault(template: string): string | undefined {
  const names = (template.match(parameter) ?? []).map((one) => one.replaceAll(/[{}+]/g, ''));
  const repeated = names.find((name, i) => names.indexOf(name) < i);
  if (repeated !== undefined) return `the parameter \`${repeated}\` occurs twice`;
  const ignored = template
    .replace(rest, '')
    .match(parameter)
    ?.find((one) => operator.test(one));
  if (ignored === undefined) return undefined;
  const matched = `\`${ignored}\` matches one or more characters of a segment, like \`{name}\``;
  return /^\{[?&]/.test(ignored)
    ? `${matched}; remove it, because a path matches with every query`
    : `${matched}; only \`{name+}\` at the end of a path matches more segments`;
}

/** An operator or a modifier of RFC 6570. Some programs mark the rest of a path with `*`. */
const operator = /^\{(?:[+#./;?&=,!@|*].*|.*(?:[*+]|:\d+))\}$/;

/** The characters of an accepted path without `%`, because paths are compared byte by byte. */
const literal = /^[A-Za-z0-9._~!$&'()*+,=:@[\]|-]*$/;

function isMatchable(segment: string): boolean {
  if (segment === '.' || segment === '..') return false;
  return literal.test(segment.replaceAll(parameter, ''));
}

/** Two templates that match the same path, while neither is more specific. */
export interface Overlap {
  /**
   * Receives a request whose path matches both. If the templates differ only in parameter names and only `other` has the request's method,
   * `other` receives it.
   */
  readonly winner: string;
  readonly other: string;
  /** Whether only the names of the parameters differ, so that both match exactly the same paths. */
  readonly isSameShape: boolean;
}

/**
 * Finds pairs of templates that match the same path, while each also matches paths that the other does not. Yields one pair at a time, so
 * that the caller can stop early.
 */
export function* overlaps(templates: readonly string[]): Generator<Overlap, void> {
  const root: Branch = emptyBranch();
  for (const template of templates) {
    const parsed = parseTemplate(template);
    const atRoot = { template: parsed, index: 0, first: 0, isNarrower: false, isWider: false };
    for (const { other, first, isSameShape } of overlapsIn(root, atRoot)) {
      yield first > 0
        ? { winner: template, other, isSameShape }
        : { winner: other, other: template, isSameShape };
    }
    valueAt(root, parsed, () => template);
  }
}

type Branch = TemplateBranch<string>;

/** A comparison between a new template and earlier templates, at one segment. */
interface Search {
  readonly template: PathTemplate;
  readonly index: number;
  /**
   * The order at the first segment in which the templates differ: positive if the new template takes precedence, 0 if no segment differs.
   */
  readonly first: number;
  readonly isNarrower: boolean;
  readonly isWider: boolean;
}

interface FoundOverlap {
  readonly other: string;
  readonly first: number;
  readonly isSameShape: boolean;
}

function* overlapsIn(branch: Branch, search: Search): Generator<FoundOverlap, void> {
  const { segments, hasRest } = search.template;
  const segment = segments[search.index];
  const isEnd = segment === undefined;
  if (branch.rest !== undefined) yield* compared(branch.rest, after(search, isEnd && hasRest ? 0 : 1));
  if (isEnd) {
    const atEnd = after(search, hasRest ? -1 : 0);
    if (branch.value !== undefined) yield* compared(branch.value, atEnd);
    if (hasRest && search.isNarrower) for (const other of below(branch)) yield* compared(other, atEnd);
    return;
  }
  for (const { next, order, isCrossed } of continuations(branch, segment)) {
    yield* overlapsIn(next, after(search, order, isCrossed));
  }
}

function after(search: Search, order: number, isCrossed = false): Search {
  const { template, index, first, isNarrower, isWider } = search;
  return {
    template,
    index: index + 1,
    first: first || order,
    isNarrower: isNarrower || isCrossed || order > 0,
    isWider: isWider || isCrossed || order < 0,
  };
}

function* compared(other: string, { first, isNarrower, isWider }: Search): Generator<FoundOverlap, void> {
  if (isNarrower === isWider) yield { other, first, isSameShape: !isNarrower };
}

/** Yields the templates that are longer than the path to a branch. */
function* below(branch: Branch): Generator<string, void> {
  const mixed = branch.mixed.map((one) => one.branch);
  for (const next of [...branch.literal.values(), ...mixed, branch.parameter]) {
    if (next === undefined) continue;
    if (next.value !== undefined) yield next.value;
    if (next.rest !== undefined) yield next.rest;
    yield* below(next);
  }
}

interface Continuation {
  readonly next: Branch;
  /** Positive if the new segment takes precedence, negative if the earlier one does. */
  readonly order: number;
  /** Whether each segment matches texts that the other does not. */
  readonly isCrossed?: boolean;
}

/** Yields the branches whose segment can match the same text as the given segment. */
function* continuations(branch: Branch, segment: TemplateSegment): Generator<Continuation, void> {
  if (typeof segment === 'string') {
    const same = branch.literal.get(segment);
    if (same !== undefined) yield { next: same, order: 0 };
    for (const mixed of branch.mixed) {
      if (matchesTexts(mixed.texts, segment)) yield { next: mixed.branch, order: 1 };
    }
    if (branch.parameter !== undefined && segment !== '') yield { next: branch.parameter, order: 1 };
    return;
  }
  const isWhole = isParameter(segment);
  for (const [text, next] of branch.literal) if (matchesTexts(segment, text)) yield { next, order: -1 };
  for (const { texts, branch: next } of branch.mixed) {
    if (isWhole) yield { next, order: -1 };
    else if (isSameSegment(texts, segment)) yield { next, order: 0 };
    else if (mayMeet(segment, texts)) {
      yield { next, order: fixedChars(segment) - fixedChars(texts), isCrossed: true };
    }
  }
  if (branch.parameter !== undefined) yield { next: branch.parameter, order: isWhole ? 0 : 1 };
}

/** Compares only the fixed beginnings and ends. */
function mayMeet(one: readonly string[], other: readonly string[]): boolean {
  const [start, end] = [one[0] ?? '', one.at(-1) ?? ''];
  const [otherStart, otherEnd] = [other[0] ?? '', other.at(-1) ?? ''];
  return (
    (start.startsWith(otherStart) || otherStart.startsWith(start)) &&
    (end.endsWith(otherEnd) || otherEnd.endsWith(end))
  );
}
