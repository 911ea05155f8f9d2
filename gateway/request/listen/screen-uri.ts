import { screenHost } from './screen-fields.ts';
import { refuseAsInvalid, type ScreenRefusal } from './screen-refusal.ts';

export interface ScreenedUri {
  readonly kind: 'accepted';
  /** The origin form (RFC 9112 §3.2.1): path and query as the client sent them. The upstream gets this target. */
  readonly target: string;
  readonly path: string;
  /**
   * The path with its escaped letters, digits, `-`, `.`, `_` and `~` decoded. Both spellings are equivalent (RFC 3986 §2.3). Operations
   * and pages are looked up by this path. All other escapes are kept, so `%2F` never separates segments.
   */
  readonly plainPath: string;
  /** The host and port of an absolute form, which replace `Host` (RFC 9112 §3.2.2); undefined for an origin form. */
  readonly host: string | undefined;
  /** Whether the URI has the scheme `https`, and therefore needs a connection with TLS. */
  readonly needsTls: boolean;
}

/**
 * Checks the URI of the request line. The URI is an origin form, or an absolute form with the scheme `http` or `https`. The path must have
 * a spelling that all parsers read alike. The query may contain any printable ASCII except `#`.
 */
export function screenUri(uri: string, method: string, bytesMax: number): ScreenedUri | ScreenRefusal {
  if (uri.length > bytesMax) return tooLong(bytesMax);
  return uri.charCodeAt(0) === slash ? screenOriginForm(uri) : screenAbsoluteForm(uri, method);
}

function screenAbsoluteForm(uri: string, method: string): ScreenedUri | ScreenRefusal {
  const [, scheme = '', authority = '', rest = ''] = absoluteForm.exec(uri) ?? [];
  if (scheme === '')
    return refuseAsInvalid(
      'The request target must be a path that begins with "/", or an http or https URL.',
    );
  // RFC 9110 §4.2.1 and §4.2.4. A user before the host is a common trick to hide the host.
  if (authority === '') return refuseAsInvalid('The request target must have a host.');
  if (authority.includes('@')) return refuseAsInvalid('The request target must not have a user.');
  const host = screenHost(authority);
  if (host === undefined) return refuseAsInvalid('The host of the request target is malformed.');
  // A proxy would have to send this request as `OPTIONS *` (RFC 9112 §3.2.4), which the gateway does not forward.
  if (rest === '' && method === 'OPTIONS')
    return refuseAsInvalid('OPTIONS must have a request target with a path.');
  const screened = screenOriginForm(rest.startsWith('/') ? rest : `/${rest}`);
  if (screened.kind === 'refused') return screened;
  return { ...screened, host, needsTls: scheme.toLowerCase() === 'https' };
}

/** Matches the scheme, the authority and the rest of an absolute form. */
const absoluteForm = /^(https?):\/\/([^/?#]*)(.*)$/is;

function screenOriginForm(target: string): ScreenedUri | ScreenRefusal {
  const { length } = target;
  let pathLength = length;
  let previous = slash;
  let hasEscape = false;
  let hasDotSegment = false;
  for (let i = 1; i < length; i++) {
    const byte = target.charCodeAt(i);
    if (byte === question) {
      pathLength = i;
      break;
    }
    if (pathBytes[byte] !== 1) return refuseAsInvalid(pathFault(byte));
    if (byte === slash && previous === slash)
      return refuseAsInvalid('The path must not have an empty segment ("//").');
    if (byte === percent) hasEscape = true;
    if (byte === dot && previous === slash) hasDotSegment ||= isDotSegment(target, i);
    previous = byte;
  }
  for (let i = pathLength + 1; i < length; i++) {
    if (queryBytes[target.charCodeAt(i)] !== 1) {
      return refuseAsInvalid(
        'The query must be printable ASCII without "#"; escape other characters with "%".',
      );
    }
  }
  if (hasDotSegment) return dotSegment;

  const path = pathLength === length ? target : target.slice(0, pathLength);
  const plainPath = hasEscape ? screenEscapes(path) : path;
  if (typeof plainPath !== 'string') return plainPath;
  return { kind: 'accepted', target, path, plainPath, host: undefined, needsTls: false };
}

/** Whether the segment at `start` is `.` or `..`. `screenEscapes` finds segments with escaped dots. */
function isDotSegment(target: string, start: number): boolean {
  const end = target.charCodeAt(start + 1) === dot ? start + 2 : start + 1;
  return end === target.length || target.charCodeAt(end) === slash || target.charCodeAt(end) === question;
}

/**
 * Checks the percent-escapes of a path, and decodes the unreserved characters. `%2F` is accepted here, because the operation's upstream
 * decides about it (`route/escape-fault.ts`). Dot segments are refused even beside an escaped slash. A separator that is escaped twice is
 * refused, because it could bypass the path checks of an upstream that decodes twice.
 *
 * @returns the path with decoded unreserved characters
 */
function screenEscapes(path: string): string | ScreenRefusal {
  let plain = '';
  let copied = 0;
  for (let i = path.indexOf('%'); i !== -1; i = path.indexOf('%', i + 1)) {
    const byte = escapedByte(path, i);
    if (byte === undefined)
      return refuseAsInvalid('The path has a "%" that two hexadecimal digits do not follow.');
    if (byte < 0x20 || byte === 0x7f)
      return refuseAsInvalid('The path must not have escaped control characters.');
    if (byte === backslash) return refuseAsInvalid('The path must not have an escaped backslash.');
    if (unreservedBytes[byte] === 1) {
      plain += path.slice(copied, i) + String.fromCharCode(byte);
      copied = i + 3;
    }
  }
  plain += path.slice(copied);
  if (dotSegments.test(plain)) return dotSegment;
  if (twiceEscaped.test(plain)) return refuseAsInvalid('The path must not have twice-escaped separators.');
  return isUtf8(path) ? plain : refuseAsInvalid('The escapes of the path must be valid UTF-8.');
}

const dotSegment = refuseAsInvalid('The path must not have the segments "." or "..".');

/** Matches a segment `.` or `..` if an escaped slash also separates segments. */
const dotSegments = /(?:\/|%2f)\.\.?(?:\/|%2f|$)/i;

/** Matches an escape that a second decoding turns into a slash, a backslash, a dot, NUL or another escape. */
const twiceEscaped = /%25(?:2f|5c|2e|00|25)/i;

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
/**
 * The characters of a path: `pchar` of RFC 3986 §3.3 without the semicolon, and the slash. Browsers also send `[`, `]` and `|` without an
 * escape, and no parser gives them another meaning.
 */
const pathBytes = byteTable(/[A-Za-z0-9\-._~%/!$&'()*+,=:@[\]|]/);
const queryBytes = byteTable(/[!"$-~]/);

/** Makes a lookup table of the 256 octets. The entry is 1 for each octet of the character class. */
function byteTable(characterClass: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    characterClass.test(String.fromCharCode(byte)) ? 1 : 0,
  );
}
