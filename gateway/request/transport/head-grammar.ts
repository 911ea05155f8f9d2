import { token } from '../../shared/http/field-grammar.ts';

/** The octets of a value or a reason phrase: no control characters except tab (RFC 9110 §5.5). */
const text = '[\\t\\x20-\\x7e\\x80-\\xff]*';

/** A status line (RFC 9112 §4). Many servers omit the required space before an empty reason phrase. */
const statusLine = `HTTP/1\\.[01] [0-9]{3}(?: ${text})?\\r\\n`;

/**
 * Matches a field line of a response or its trailers (RFC 9112 §5). A field line has a token, a colon, a value and CRLF. A folded line does
 * not match. A proxy removes blanks before the colon of a response's field (RFC 9112 §5.1).
 */
export const fieldLine = new RegExp(`${token}[\\t ]*:${text}\\r\\n`);

export const headForm = new RegExp(`^${statusLine}(?:${fieldLine.source})*\\r\\n$`);

const statusForm = new RegExp(`^${statusLine}$`);
const leadingToken = new RegExp(`^${token}`);
const notText = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Describes the first flaw of a malformed head. The text never contains the value of a field, because the value may be a secret.
 *
 * @param head the head in Latin-1, which may be incomplete
 */
export function headFlaw(head: string): string {
  const [status = '', ...lines] = head.split('\r\n');
  if (!statusForm.test(`${status}\r\n`)) {
    const at = status.search(notText);
    return at < 0 ? 'a malformed status line' : `the octet ${octet(status, at)} in the status line`;
  }
  let place = 'after the status line';
  for (const line of lines) {
    const flaw = line === '' ? undefined : fieldFlaw(line, place);
    if (flaw !== undefined) return flaw;
    place = `after the field ${shown(nameOf(line))}`;
  }
  return 'a head that does not follow the grammar of RFC 9112';
}

/**
 * Describes the first flaw of a field line, with the name of the field and the octet at fault; undefined without a flaw.
 *
 * @param line the line without its CRLF
 * @param place where the line is, for a line without a name
 */
export function fieldFlaw(line: string, place: string): string | undefined {
  const name = nameOf(line);
  const afterBlanks = name.length + line.slice(name.length).search(/[^\t ]|$/);
  if (name === '') return `the octet ${octet(line, 0)} ${place}, in place of a name`;
  if (afterBlanks === line.length) return `a line without a colon ${place}`;
  if (line[afterBlanks] !== ':') return flawInName(name, line);
  const from = afterBlanks + 1;
  const at = line.slice(from).search(notText);
  return at < 0 ? undefined : `the octet ${octet(line, from + at)} in the value of the field ${shown(name)}`;
}

/** Describes the octet of a field line that follows the name and should be a colon. */
export function flawInName(name: string, line: string): string {
  return `the octet ${octet(line, name.length)} in the name of the field ${shown(name)}`;
}

function nameOf(line: string): string {
  return leadingToken.exec(line)?.[0] ?? '';
}

/** A target may send a name of any length. */
function shown(name: string): string {
  return name.length > nameLengthMax ? `${name.slice(0, nameLengthMax)}…` : name;
}

const nameLengthMax = 64;

function octet(line: string, at: number): string {
  return `0x${line.charCodeAt(at).toString(16).padStart(2, '0')}`;
}
