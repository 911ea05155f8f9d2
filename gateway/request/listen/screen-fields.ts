import { fieldValue } from '../respond/response-message.ts';
import { refuseAsInvalid, type ScreenRefusal } from './screen-refusal.ts';

export interface ScreenedFields {
  readonly kind: 'accepted';
  /** The raw field value. */
  readonly authorization: string | undefined;
}

/**
 * Checks the header fields: names and values by allowlist, fields that may come only once, and a framing that every reader
 * understands alike (RFC 9112 §6). Accepts `obs-text` in values (octets above 0x7F), which is forwarded unchanged.
 *
 * @param rawHeaders flat name, value, … as the client sent them
 */
export function screenFields(
  rawHeaders: readonly string[],
  httpVersion: string,
  countMax: number,
): ScreenedFields | ScreenRefusal {
  if (rawHeaders.length > 2 * countMax) return tooMany(countMax);
  const singular: Record<SingularName, string | undefined> = {
    host: undefined,
    expect: undefined,
    'content-type': undefined,
    authorization: undefined,
    'content-length': undefined,
    'transfer-encoding': undefined,
  };
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    if (!token.test(name)) return refuseAsInvalid('A header field has a malformed name.');
    if (!fieldValue.test(value))
      return refuseAsInvalid('A header field has a control character in its value.');
    const lowerName = singularName(name);
    if (lowerName === undefined) continue;
    if (singular[lowerName] !== undefined) return duplicate(lowerName);
    singular[lowerName] = value;
  }
  const { host, authorization, expect } = singular;
  const contentLength = singular['content-length'];
  const transferEncoding = singular['transfer-encoding'];

  // HTTP/1.0 may leave out Host (RFC 9112 §3.2), but today's clients of HTTP/1.0 send it too.
  if (host === undefined) return refuseAsInvalid('The Host header field is missing.');
  if (!hostForm.test(host)) return refuseAsInvalid('The Host header field is malformed.');
  if (contentLength !== undefined && !contentLengthForm.test(contentLength)) {
    return refuseAsInvalid('The Content-Length must be one decimal number.');
  }
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined) {
      return refuseAsInvalid('Content-Length and Transfer-Encoding must not be combined.');
    }
    if (httpVersion === '1.0') return refuseAsInvalid('HTTP/1.0 does not allow Transfer-Encoding.');
    if (transferEncoding.toLowerCase() !== 'chunked') {
      return refuseAsInvalid('The Transfer-Encoding must be "chunked" alone.');
    }
  }
  // HTTP/1.0 has no 100 (RFC 9110 §15.2), so its client would wait in vain.
  if (expect !== undefined && (httpVersion === '1.0' || expect.toLowerCase() !== '100-continue')) {
    return unknownExpectation;
  }

  return { kind: 'accepted', authorization };
}

/** Fields that may come only once. Each name has another length, so the length alone rules out most other fields. */
const singularNames = [
  'host',
  'expect',
  'content-type',
  'authorization',
  'content-length',
  'transfer-encoding',
] as const;

type SingularName = (typeof singularNames)[number];

const singularByLength: (SingularName | undefined)[] = [];
for (const name of singularNames) singularByLength[name.length] = name;

function singularName(name: string): SingularName | undefined {
  const singular = singularByLength[name.length];
  return singular !== undefined && name.toLowerCase() === singular ? singular : undefined;
}

/** RFC 9110 §5.6.2. */
export const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** A name, an IPv4 or a bracketed IPv6 address, and perhaps a port. Narrower than RFC 3986 §3.2.2 on purpose. */
const hostForm = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$/;

/** At most 15 digits, which a JavaScript number holds exactly. */
const contentLengthForm = /^(?:0|[1-9][0-9]{0,14})$/;

function duplicate(name: SingularName): ScreenRefusal {
  const capitalised = name.replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());
  return refuseAsInvalid(`The ${capitalised} header field must not occur twice.`);
}

function tooMany(countMax: number): ScreenRefusal {
  const message = `There are more than ${countMax} header fields.`;
  return { kind: 'refused', code: 'headers_too_large', message };
}

const unknownExpectation: ScreenRefusal = {
  kind: 'refused',
  code: 'expectation_failed',
  message: 'Only "Expect: 100-continue" in HTTP/1.1 is understood.',
};
