import * as z from 'zod';

/** Messages follow the name of the field, so all have one form. */
export function expects(what: string) {
  return {
    error: ({ input }: { readonly input?: unknown }) =>
      input === undefined ? `is missing; write ${what}` : `must be ${what}`,
  };
}

/**
 * A mapping of known fields. For an unknown one the message is the list of the known ones: `shapeProblems` makes the
 * sentence, since it may need several.
 */
export function fields<Shape extends z.core.$ZodLooseShape>(what: string, shape: Shape) {
  const { error } = expects(what);
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : error(issue)),
  });
}

export function text(what: string, pattern = /^.+$/s) {
  const wanted = expects(what);
  const error = (issue: { readonly input?: unknown }) =>
    // Unquoted, 1234 is a number and true a boolean.
    typeof issue.input === 'number' || typeof issue.input === 'boolean'
      ? `${wanted.error(issue)}; put it in quotes`
      : wanted.error(issue);
  return z.string({ error }).regex(pattern, { ...wanted, abort: true });
}

export function wholeNumber(min: number, max: number) {
  const what = expects(`a whole number from ${min} to ${max}`);
  return z.int(what).min(min, what).max(max, what);
}

export function flag() {
  return z.boolean(expects('true or false'));
}

export function list<Entry extends z.ZodType>(entry: Entry, what: string) {
  return z.array(entry, expects(what));
}

export function digestOf(what: 'secret' | 'token') {
  return text(`the SHA-256 digest of the whole ${what}, 64 hex digits`, /^[0-9a-fA-F]{64}$/)
    .transform((digest) => digest.toLowerCase())
    .describe(`Hex SHA-256 digest of the whole ${what}: printf %s ${what.toUpperCase()} | sha256sum`);
}
