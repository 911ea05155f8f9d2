import { refuseAsInvalid, type ScreenRefusal } from './screen-refusal.ts';

/**
 * Checks the URI of the request line. Accepts the origin form (RFC 9112 §3.2.1): a path and perhaps a query, in a spelling that
 * every reader reads as the same path. The query may be any printable ASCII except `#`.
 *
 * @returns the raw path without the query
 */
export function screenUri(uri: string, bytesMax: number): string | ScreenRefusal {
  const { length } = uri;
  if (length > bytesMax) return tooLong(bytesMax);
  if (uri.charCodeAt(0) !== slash)
    return refuseAsInvalid('The request target must be a path that begins with "/".');

  let pathLength = length;
  let previous = slash;
  let hasEscape = false;
  let hasDotSegment = false;
  for (let i = 1; i < length; i++) {
    const byte = uri.charCodeAt(i);
    if (byte === question) {
      pathLength = i;
      break;
    }
    if (pathBytes[byte] !== 1) return refuseAsInvalid(pathFault(byte));
    if (byte === slash && previous === slash)
      return refuseAsInvalid('The path must not have an empty segment ("//").');
    if (byte === percent) hasEscape = true;
    if (byte === dot && previous === slash) hasDotSegment ||= isDotSegment(uri, i);
    previous = byte;
  }
  for (let i = pathLength + 1; i < length; i++) {
    if (queryBytes[uri.charCodeAt(i)] !== 1) {
      return refuseAsInvalid(
        'The query must be printable ASCII without "#"; escape other characters with "%".',
      );
    }
  }
  if (hasDotSegment) return refuseAsInvalid('The path must not have the segments "." or "..".');

  const path = pathLength === length ? uri : uri.slice(0, pathLength);
  return (hasEscape ? escapeFault(path) : undefined) ?? path;
}

/** Whether `.` or `..` is a whole segment. `escapeFault` finds escaped dots. */
function isDotSegment(uri: string, start: number): boolean {
  const end = uri.charCodeAt(start + 1) === dot ? start + 2 : start + 1;
  return end === uri.length || uri.charCodeAt(end) === slash || uri.charCodeAt(end) === question;
}

/**
 * Finds the fault in a path's escapes, if any. An escaped unreserved character is equivalent to the plain character (RFC 3986
 * §2.3): `/%70ets` would be unknown here and `/pets` at an upstream that decodes it. This rule also refuses escaped dot segments.
 * A separator that is escaped twice would get past the check of an upstream that decodes twice.
 */
function escapeFault(path: string): ScreenRefusal | undefined {
  for (let i = path.indexOf('%'); i !== -1; i = path.indexOf('%', i + 1)) {
    const byte = escapedByte(path, i);
    if (byte === undefined)
      return refuseAsInvalid('The path has a "%" that two hexadecimal digits do not follow.');
    if (byte < 0x20 || byte === 0x7f)
      return refuseAsInvalid('The path must not have escaped control characters.');
    if (byte === slash || byte === backslash)
      return refuseAsInvalid('The path must not have escaped slashes.');
    if (unreservedBytes[byte] === 1) {
      return refuseAsInvalid('The path must not escape letters, digits, "-", ".", "_" or "~".');
    }
    if (byte === percent && twiceEscaped.test(path.slice(i + 3, i + 5))) {
      return refuseAsInvalid('The path must not have twice-escaped separators.');
    }
  }
  return isUtf8(path) ? undefined : refuseAsInvalid('The escapes of the path must be valid UTF-8.');
}

/** The octet that the escape at `index` stands for. Undefined without two hexadecimal digits. */
function escapedByte(path: string, index: number): number | undefined {
  const high = hexValue(path.charCodeAt(index + 1));
  const low = hexValue(path.charCodeAt(index + 2));
  return high === undefined || low === undefined ? undefined : high * 16 + low;
}

function hexValue(byte: number): number | undefined {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const upper = byte & 0xdf;
  return upper >= 0x41 && upper <= 0x46 ? upper - 0x37 : undefined;
}

/** Rejects overlong forms such as `%c0%af`, which lax decoders read as a slash. */
function isUtf8(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

function pathFault(byte: number): string {
  switch (byte) {
    case backslash:
      return 'The path must not have a backslash.';
    case semicolon:
      return 'The path must not have path parameters (";").';
    case hash:
      return 'The request target must not have a fragment ("#").';
    default:
      return 'The path has a character that must be escaped with "%".';
  }
}

function tooLong(bytesMax: number): ScreenRefusal {
  const message = `The request target is longer than ${bytesMax} bytes.`;
  return { kind: 'refused', code: 'uri_too_long', message };
}

const slash = 0x2f;
const backslash = 0x5c;
const dot = 0x2e;
const percent = 0x25;
const question = 0x3f;
const semicolon = 0x3b;
const hash = 0x23;

const unreservedBytes = byteTable(/[A-Za-z0-9\-._~]/);
/** `pchar` of RFC 3986 §3.3 and the slash, without the semicolon. */
const pathBytes = byteTable(/[A-Za-z0-9\-._~%/!$&'()*+,=:@]/);
const queryBytes = byteTable(/[!"$-~]/);

/** Digits that a second decoding would turn into a separator, a dot, the end of a string or a further escape. */
const twiceEscaped = /^(?:2f|5c|2e|00|25)$/i;

/** A lookup table of the 256 octets: 1 for each octet of the character class. */
function byteTable(characterClass: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    characterClass.test(String.fromCharCode(byte)) ? 1 : 0,
  );
}
