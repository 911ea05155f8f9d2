/** What is wrong with a path template; `other` is the one it conflicts with. */
export interface TemplateFault {
  readonly template: string;
  readonly message: string;
  readonly other?: string;
}

/** Finds templates that could never match a request that was let in, and pairs of which neither is the more specific. */
export function checkTemplates(templates: readonly string[]): TemplateFault[] {
  const faults: TemplateFault[] = [];
  const sound: string[] = [];
  for (const template of templates) {
    const message = unmatchable(template);
    if (message === undefined) sound.push(template);
    else faults.push({ template, message });
  }
  sound.forEach((template, index) => {
    for (const other of sound.slice(0, index)) {
      if (!areAmbiguous(template, other)) continue;
      const message = `a request could match \`${template}\` and \`${other}\` alike; change one of them`;
      faults.push({ template, message, other });
    }
  });
  return faults;
}

const parameter = /^\{[^{}/]+\}$/;
/** Unreserved characters and sub-delimiters (RFC 3986 §3.3) without `;` and `%`: paths are compared byte for byte. */
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

/** Some path matches both, and neither has literals wherever the other has. Two of one shape are the plainest case. */
function areAmbiguous(a: string, b: string): boolean {
  const left = a.split('/');
  const right = b.split('/');
  if (left.length !== right.length) return false;
  let leftIsNarrower = false;
  let rightIsNarrower = false;
  for (const [index, segment] of left.entries()) {
    const opposite = right[index] ?? '';
    const isLeftParameter = segment.startsWith('{');
    const isRightParameter = opposite.startsWith('{');
    if (!isLeftParameter && !isRightParameter && segment !== opposite) return false;
    if (!isLeftParameter && isRightParameter) leftIsNarrower = true;
    if (isLeftParameter && !isRightParameter) rightIsNarrower = true;
  }
  return leftIsNarrower === rightIsNarrower;
}
