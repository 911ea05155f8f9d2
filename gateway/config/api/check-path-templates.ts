/** A fault of a path template; `other` is the template that it conflicts with. */
export interface TemplateFault {
  readonly template: string;
  readonly message: string;
  readonly other?: string;
}

/**
 * Finds templates that no accepted request can match, and ambiguous pairs: templates that match the same path although neither
 * is more specific. It yields one fault at a time, so that the caller can stop early. 10,000 templates of one shape make 50
 * million pairs.
 */
export function* checkTemplates(templates: readonly string[]): Generator<TemplateFault, void> {
  const sound = new Map<number, SplitTemplate[]>();
  for (const template of templates) {
    const message = unmatchable(template);
    if (message !== undefined) {
      yield { template, message };
      continue;
    }
    const segments = template.split('/').map((segment) => (segment.startsWith('{') ? undefined : segment));
    const sameLength = sound.get(segments.length) ?? [];
    sound.set(segments.length, sameLength);
    for (const other of sameLength) {
      if (!areAmbiguous(segments, other.segments)) continue;
      const conflict = `a request could match \`${template}\` and \`${other.template}\` alike; change one of them`;
      yield { template, message: conflict, other: other.template };
    }
    sameLength.push({ template, segments });
  }
}

interface SplitTemplate {
  readonly template: string;
  readonly segments: Segments;
}

/** Literal segments as text, parameters as undefined. */
type Segments = readonly (string | undefined)[];

const parameter = /^\{[^{}/]+\}$/;
/** Unreserved characters and sub-delimiters (RFC 3986 §3.3) without `;` and `%`, because paths are compared byte by byte. */
const literal = /^[A-Za-z0-9._~!$&'()*+,=:@-]+$/;

function unmatchable(template: string): string | undefined {
  if (!template.startsWith('/')) return `\`${template}\` could never match; a path begins with \`/\``;
  const segments = template.slice(1).split('/');
  const names = segments.filter((segment) => parameter.test(segment));
  if (new Set(names).size < names.length) return `\`${template}\` names a parameter twice`;
  // The path of the base URL itself is `/`.
  const wrong = template === '/' ? undefined : segments.find((segment) => !isMatchable(segment));
  if (wrong === undefined) return undefined;
  if (wrong === '') return `\`${template}\` could never match; remove the empty segment`;
  if (wrong.includes('{') || wrong.includes('}')) {
    return `\`${template}\` could never match; a parameter is a whole segment, as in /pets/{petId}`;
  }
  return `\`${template}\` could never match; the segment \`${wrong}\` would be refused or written otherwise`;
}

function isMatchable(segment: string): boolean {
  if (segment === '.' || segment === '..') return false;
  return parameter.test(segment) || literal.test(segment);
}

/** Whether some path matches both, and neither has a literal segment wherever the other has one. */
function areAmbiguous(left: Segments, right: Segments): boolean {
  let leftIsNarrower = false;
  let rightIsNarrower = false;
  for (let index = 0; index < left.length; index++) {
    const segment = left[index];
    const opposite = right[index];
    if (segment === opposite) continue;
    if (segment !== undefined && opposite !== undefined) return false;
    if (opposite === undefined) leftIsNarrower = true;
    else rightIsNarrower = true;
  }
  return leftIsNarrower === rightIsNarrower;
}
