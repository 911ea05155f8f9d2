/**
 * A field's text without the whitespace that may stand around it: space and tab (RFC 9110 §5.6.3). `String.trim` takes
 * more, U+00A0 for one, which in a field is an octet of the value (obs-text, §5.5). A loop, since `/[\t ]+$/` takes
 * time that grows with the square of a run of spaces.
 *
 * @param from where the field's text begins in `text`, and `to` where it ends
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
