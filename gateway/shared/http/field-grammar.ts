/** The characters of a token, the names of fields and methods (RFC 9110 §5.6.2), as the source of a regular expression. */
export const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";

/** Matches a token. */
export const tokenForm = new RegExp(`^${token}$`);

/**
 * Without spaces and tabs at both ends (RFC 9110 §5.6.3). `String.trim` would also remove U+00A0, which is an octet of the value here
 * (obs-text, §5.5). It is a loop, because `/[\t ]+$/` takes quadratic time for a run of spaces.
 */
export function withoutOptionalWhitespace(text: string, from = 0, to = text.length): string {
  let start = from;
  let end = to;
  while (start < end && isWhitespace(text.charCodeAt(start))) start++;
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isWhitespace(charCode: number): boolean {
  return charCode === 0x20 || charCode === 0x09;
}
