import {
  branchAt,
  emptyBranch,
  fixedChars,
  isParameter,
  isSameSegment,
  matchesTexts,
  parameter,
  segmentsOf,
  type TemplateBranch,
  type TemplateSegment,
} from '../../shared/path-template.ts';

/** Returns the reason why no accepted request can match a template, or undefined if a request can match the template. */
export function templateFault(template: string): string | undefined {
  if (!template.startsWith('/')) return `\`${template}\` could never match; a path begins with \`/\``;
  const names = template.match(parameter) ?? [];
  if (new Set(names).size < names.length) return `\`${template}\` names a parameter twice`;
  const segments = template.slice(1).split('/');
  // A template that ends in a slash has an empty last segment.
  const wrong = segments.find((segment, i) =>
    segment === '' ? i < segments.length - 1 : !isMatchable(segment),
  );
  if (wrong === undefined) return undefined;
  if (wrong === '') return `\`${template}\` could never match; remove the empty segment`;
  if (/[{}]/.test(wrong.replaceAll(parameter, ''))) {
    return `\`${template}\` could never match; write a parameter as \`{petId}\``;
  }
  return `\`${template}\` could never match; the segment \`${wrong}\` is refused in requests, or has another spelling`;
}

/** The characters of an accepted path without `%`, because paths are compared byte by byte. */
const literal = /^[A-Za-z0-9._~!$&'()*+,=:@[\]|-]*$/;

function isMatchable(segment: string): boolean {
  if (segment === '.' || segment === '..') return false;
  return literal.test(segment.replaceAll(parameter, ''));
}

/** Two templates that match the same path, while neither template is more specific. */
export interface Overlap {
  /**
   * The template that receives a request whose path matches both templates. If the templates differ only in parameter names and only
   * `other` has the request's method, `other` receives the request.
   */
  readonly winner: string;
  readonly other: string;
  /** Whether the templates differ only in the names of their parameters, so that they match exactly the same paths. */
  readonly isSameShape: boolean;
}

/**
 * Finds pairs of templates that match the same path. Each template of a pair also matches paths that the other template does not match. The
 * generator yields one pair at a time, so that the caller can stop early.
 */
export function* overlaps(templates: readonly string[]): Generator<Overlap, void> {
  const root: Branch = emptyBranch();
  for (const template of templates) {
    const segments = segmentsOf(template);
    const atRoot = { segments, index: 0, first: 0, isNarrower: false, isWider: false };
    for (const { other, first, isSameShape } of overlapsIn(root, atRoot)) {
      yield first > 0
        ? { winner: template, other, isSameShape }
        : { winner: other, other: template, isSameShape };
    }
    branchAt(root, segments).value ??= template;
  }
}

type Branch = TemplateBranch<string>;

/** The state of a comparison between a new template and earlier templates, at one segment. */
interface Search {
  readonly segments: readonly TemplateSegment[];
  readonly index: number;
  /**
   * The result of the comparison at the first segment in which the templates differ. The result is positive if the new template takes
   * precedence, and 0 if no compared segment differs.
   */
  readonly first: number;
  /** Whether the new template is more specific in some segment. */
  readonly isNarrower: boolean;
  readonly isWider: boolean;
}

interface FoundOverlap {
  readonly other: string;
  readonly first: number;
  readonly isSameShape: boolean;
}

function* overlapsIn(branch: Branch, search: Search): Generator<FoundOverlap, void> {
  const { segments, index, first, isNarrower, isWider } = search;
  const segment = segments[index];
  if (segment === undefined) {
    if (branch.value !== undefined && isNarrower === isWider) {
      yield { other: branch.value, first, isSameShape: !isNarrower };
    }
    return;
  }
  for (const { next, order, isCrossed = false } of continuations(branch, segment)) {
    yield* overlapsIn(next, {
      segments,
      index: index + 1,
      first: first || order,
      isNarrower: isNarrower || isCrossed || order > 0,
      isWider: isWider || isCrossed || order < 0,
    });
  }
}

interface Continuation {
  readonly next: Branch;
  /** Positive if the new segment takes precedence, and negative if the earlier segment takes precedence. */
  readonly order: number;
  /** Whether each of the two segments matches texts that the other does not match. */
  readonly isCrossed?: boolean;
}

/** Yields the branches of the template tree whose segment can match the same text as the given segment. */
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

/**
 * Whether two segments with parameters may match the same text. Only the fixed beginnings and ends of the segments are compared.
 */
function mayMeet(one: readonly string[], other: readonly string[]): boolean {
  const [start, end] = [one[0] ?? '', one.at(-1) ?? ''];
  const [otherStart, otherEnd] = [other[0] ?? '', other.at(-1) ?? ''];
  return (
    (start.startsWith(otherStart) || otherStart.startsWith(start)) &&
    (end.endsWith(otherEnd) || otherEnd.endsWith(end))
  );
}
