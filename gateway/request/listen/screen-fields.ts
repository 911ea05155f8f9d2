import { tokenForm } from '../../shared/http/field-grammar.ts';
import { fieldValue } from '../respond/response-message.ts';
import { refuseAsInvalid, type ScreenRefusal } from './screen-refusal.ts';

export interface ScreenedFields {
  readonly kind: 'accepted';
  /** The host and port of the `Host` field. */
  readonly host: string;
  /** The raw value of the `Authorization` field. */
  readonly authorization: string | undefined;
}

/**
 * Checks the header fields of a request: names and values by allowlist, no duplicates of fields that must not be repeated, and only
 * unambiguous framing (RFC 9112 §6). Values may contain `obs-text` (octets above 0x7F), which is forwarded unchanged.
 *
 * @param rawHeaders the client's header fields, as a flat list of names and values
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
    if (!tokenForm.test(name)) return refuseAsInvalid('A header field has a malformed name.');
    if (!fieldValue.test(value))
      return refuseAsInvalid('A header field has a control character in its value.');
    const lowerName = singularName(name);
    if (lowerName === undefined) continue;
    if (singular[lowerName] !== undefined) return duplicate(lowerName);
    singular[lowerName] = value;
  }
  const { authorization, expect } = singular;
  const contentLength = singular['content-length'];
  const transferEncoding = singular['transfer-encoding'];

  // RFC 9112 §3.2 allows HTTP/1.0 requests without Host. The gateway requires Host, because today's HTTP/1.0 clients send it.
  if (singular.host === undefined) return refuseAsInvalid('The Host header field is missing.');
  const host = screenHost(singular.host);
  if (host === undefined) return refuseAsInvalid('The Host header field is malformed.');
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
  // HTTP/1.0 has no 100 response (RFC 9110 §15.2), so an HTTP/1.0 client would wait forever.
  if (expect !== undefined && (httpVersion === '1.0' || expect.toLowerCase() !== '100-continue')) {
    return unknownExpectation;
  }

  return { kind: 'accepted', host, authorization };
}

/** Fields that must not be repeated. Each name has a different length, so a comparison of lengths excludes most other fields. */
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

/**
 * Returns a host with its port; undefined if the host is malformed. An empty port is valid, and a normalizer omits it with its colon
 * (RFC 3986 §3.2.3).
 */
export function screenHost(host: string): string | undefined {
  if (!hostForm.test(host)) return undefined;
  return host.endsWith(':') ? host.slice(0, -1) : host;
}

/** Matches a name, an IPv4 or a bracketed IPv6 address, and an optional port. RFC 3986 §3.2.2 allows more forms of a host. */
const hostForm = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/;

/** Matches at most 15 digits, because a JavaScript number represents 15 digits exactly. */
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
