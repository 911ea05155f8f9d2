import { withoutOptionalWhitespace } from '../../shared/http/field-grammar.ts';
import { flawInName, headFlaw, headForm } from './head-grammar.ts';

/** The head of a final response, with the framing of its body and the persistence of its connection. */
export interface ResponseHead {
  readonly kind: 'final';
  /** The status code, from 200 to 599. */
  readonly status: number;
  /** The target's header fields, as a flat list of names and values. */
  readonly fields: string[];
  /** How the end of the body is found. */
  readonly framing: 'none' | 'length' | 'chunked' | 'until_close';
  /** The length of the body in octets; 0 unless `framing` is `length`. */
  readonly contentLength: number;
  /** Whether the connection may serve another request. */
  readonly persistent: boolean;
  /** The value of `Keep-Alive`, if any. */
  readonly keepAlive: string | undefined;
}

/** The head of an interim response: 100 to 199 except 101. A final response follows an interim response (RFC 9110 §15.2). */
export interface InterimHead {
  readonly kind: 'interim';
  readonly status: number;
  /** The target's header fields, as a flat list of names and values. */
  readonly fields: string[];
}

export type ParsedHead = ResponseHead | InterimHead | Malformed;

export interface Malformed {
  readonly kind: 'malformed';
  readonly cause: string;
}

/**
 * Parses the head of a response more strictly than usual clients. A head that two parsers could read differently is malformed. The
 * gateway could otherwise send octets of one key's response to another key.
 *
 * @param text status line, fields and the empty line, in Latin-1
 * @param method the method of the request, which decides whether a body follows (RFC 9112 §6.3)
 * @param fieldsCountMax the maximum number of fields in the head
 */
export function parseResponseHead(text: string, method: string, fieldsCountMax: number): ParsedHead {
  if (!headForm.test(text)) return malformed(headFlaw(text));
  const status = Number(text.slice(9, 12));
  // The request has no Upgrade field, so the target must not respond with 101.
  if (status < 100 || status === 101 || status > 599) return malformed(`status ${status}`);

  const fields: string[] = [];
  let length: string | undefined;
  let coding: string | undefined;
  let connection = '';
  let keepAlive: string | undefined;
  const end = text.length - 2;
  for (let at = text.indexOf('\r\n') + 2; at < end; ) {
    const colon = text.indexOf(':', at);
    const lineEnd = text.indexOf('\r\n', colon);
    const name = withoutOptionalWhitespace(text, at, colon);
    const value = withoutOptionalWhitespace(text, colon + 1, lineEnd);
    fields.push(name, value);
    const lowerName = framingName(name);
    // Parsers disagree about the end of a body if a framing field has blanks before its colon.
    if (name.length < colon - at && isFraming(lowerName)) {
      return malformed(flawInName(name, text.slice(at, lineEnd)));
    }
    at = lineEnd + 2;
    switch (lowerName) {
      case 'content-length':
        if (length !== undefined) return malformed('two Content-Length fields');
        length = value;
        break;
      case 'transfer-encoding':
        if (coding !== undefined) return malformed('two Transfer-Encoding fields');
        coding = value;
        break;
      case 'connection':
        connection = connection === '' ? value : `${connection},${value}`;
        break;
      case 'keep-alive':
        keepAlive = value;
        break;
    }
  }

  if (fields.length > 2 * fieldsCountMax) return malformed('too many fields');
  if (status < 200) return { kind: 'interim', status, fields };

  // A proxy responds with 502 to an invalid Content-Length (RFC 9112 §6.3, rule 5). Rule 3 recommends an error for a response with both
  // Content-Length and Transfer-Encoding.
  if (length !== undefined && !lengthForm.test(length))
    return malformed('a Content-Length that is no number');
  if (coding !== undefined) {
    if (length !== undefined) return malformed('both Content-Length and Transfer-Encoding');
    if (coding.toLowerCase() !== 'chunked') return malformed('a transfer coding other than chunked');
    if (text.startsWith('HTTP/1.0')) return malformed('Transfer-Encoding in HTTP/1.0');
  }
  const framing = framingOf({ status, method, length, coding });
  return {
    kind: 'final',
    status,
    fields,
    framing,
    contentLength: framing === 'length' ? Number(length) : 0,
    persistent: !mayBeFollowed({ status, method, length, coding }) && isPersistent(text, connection),
    keepAlive,
  };
}

const lengthForm = /^[0-9]{1,15}$/;

export function malformed(cause: string): Malformed {
  return { kind: 'malformed', cause };
}

/**
 * Returns the name in lower case if the name is as long as one of the names in `parseResponseHead`. Otherwise returns an empty text, which
 * saves the CPU time of the conversion to lower case.
 */
function framingName(name: string): string {
  const { length } = name;
  return length === 10 || length === 14 || length === 17 ? name.toLowerCase() : '';
}

function isFraming(lowerName: string): boolean {
  return lowerName === 'content-length' || lowerName === 'transfer-encoding';
}

interface FramingOptions {
  readonly status: number;
  readonly method: string;
  readonly length: string | undefined;
  readonly coding: string | undefined;
}

/** Applies the rules of RFC 9112 §6.3 for responses, in the order of the RFC. */
function framingOf({ status, method, length, coding }: FramingOptions): ResponseHead['framing'] {
  if (method === 'HEAD' || status === 204 || status === 304) return 'none';
  if (coding !== undefined) return 'chunked';
  return length === undefined ? 'until_close' : 'length';
}

/**
 * Whether unexpected octets may follow this response. Some servers send a forbidden body after HEAD, or after a 204 or 304 that announces a
 * body. The gateway would read a forbidden body as the next response. A body without a length ends only with the connection, so octets may
 * always follow.
 */
function mayBeFollowed({ status, method, length, coding }: FramingOptions): boolean {
  if (method === 'HEAD') return true;
  if (status === 204 || status === 304) return coding !== undefined || Number(length ?? 0) > 0;
  return coding === undefined && length === undefined;
}

/** Whether the target keeps the connection open (RFC 9112 §9.3). */
function isPersistent(text: string, connection: string): boolean {
  const isNewer = text.startsWith('HTTP/1.1');
  if (connection === '') return isNewer;
  const options = connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim());
  return !options.includes('close') && (isNewer || options.includes('keep-alive'));
}
