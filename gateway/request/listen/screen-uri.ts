import { refuseAsInvalid, type ScreenRefusal } from './screen-refusal.ts';

/**
 * Checks the URI of the request line. Only the origin form is accepted: a path with an optional query (RFC 9112 §3.2.1). The path
 * must have a spelling that all parsers read alike. The query may contain any printable ASCII except `#`.
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

/** Whether the segment at `start` is `.` or `..`. `escapeFault` finds segments with escaped dots. */
function isDotSegment(uri: string, start: number): boolean {
  const end = uri.charCodeAt(start + 1) === dot ? start + 2 : start + 1;
  return end === uri.length || uri.charCodeAt(end) === slash || uri.charCodeAt(end) === question;
}

/**
 * Finds a fault in the percent-escapes of a path. An escaped unreserved character is equivalent to the plain character (RFC 3986 §2.3). The
 * gateway would find no operation for `/%70ets`, but an upstream may decode this path to `/pets`. Escaped dots are also refused. A
 * separator that is escaped twice is refused, because it could bypass the path checks of an upstream that decodes twice.
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

/** Decodes the escape at `index` to an octet. Returns undefined when two hexadecimal digits are missing. */
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

/** Whether the escapes are valid UTF-8. Overlong forms such as `%c0%af` are invalid, but lenient decoders read them as a slash. */
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
/** The characters of a path: `pchar` of RFC 3986 §3.3 without the semicolon, and the slash. */
const pathBytes = byteTable(/[A-Za-z0-9\-._~%/!$&'()*+,=:@]/);
const queryBytes = byteTable(/[!"$-~]/);

/** Matches digits after `%25` that a second decoding turns into a slash, a backslash, a dot, NUL or another escape. */
const twiceEscaped = /^(?:2f|5c|2e|00|25)$/i;

/** Makes a lookup table of the 256 octets. The entry is 1 for each octet of the character class. */
function byteTable(characterClass: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    characterClass.test(String.fromCharCode(byte)) ? 1 : 0,
  );
}
