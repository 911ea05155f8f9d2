import { withoutOptionalWhitespace } from '../optional-whitespace.ts';

/** The head of an answer as it stood on the wire, and what it says of the body and the connection. */
export interface ResponseHead {
  readonly kind: 'answer';
  /** From 200 to 599. */
  readonly status: number;
  /** Flat name, value, … as the backend sent them. */
  readonly fields: string[];
  /** How the body ends. */
  readonly framing: 'none' | 'length' | 'chunked' | 'until_close';
  /** Octets of the body; 0 where another framing says it. */
  readonly contentLength: number;
  /** Whether the connection may serve another request. */
  readonly persistent: boolean;
  /** The value of `Keep-Alive`, if any. */
  readonly keepAlive: string | undefined;
}

/** A response from 100 to 199 but 101; the answer follows it (RFC 9110 §15.2). */
export interface InterimHead {
  readonly kind: 'interim';
  readonly status: number;
  /** Flat name, value, … as the backend sent them. */
  readonly fields: string[];
}

export type ParsedHead = ResponseHead | InterimHead | Malformed;

export interface Malformed {
  readonly kind: 'malformed';
  readonly cause: string;
}

/**
 * Reads the head of an answer. It is stricter than clients are: a gateway hands on what it read, and where two readers
 * could understand an answer differently, the next one would be taken for somebody else's (RFC 9112 §11).
 *
 * @param text status line, fields and the empty line, in Latin-1
 * @param method of the request: it decides whether a body follows (RFC 9112 §6.3)
 * @param fieldsCountMax how many fields it may have
 */
export function parseResponseHead(text: string, method: string, fieldsCountMax: number): ParsedHead {
  if (!headForm.test(text)) return malformed('a head that is not of the form RFC 9112 gives it');
  const status = Number(text.slice(9, 12));
  // A switch to another protocol was not asked for.
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
    const name = text.slice(at, colon);
    const value = withoutOptionalWhitespace(text, colon + 1, lineEnd);
    fields.push(name, value);
    at = lineEnd + 2;
    switch (framingName(name)) {
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

  if (fields.length > 2 * fieldsCountMax) return malformed('more fields than there may be');
  if (status < 200) return { kind: 'interim', status, fields };

  // A proxy must not hand on a length it cannot read (RFC 9112 §6.3), nor one that a coding contradicts (§6.1).
  if (length !== undefined && !lengthForm.test(length))
    return malformed('a Content-Length that is no number');
  if (coding !== undefined) {
    if (length !== undefined) return malformed('both Content-Length and Transfer-Encoding');
    if (coding.toLowerCase() !== 'chunked') return malformed('a transfer coding other than chunked');
    if (text.startsWith('HTTP/1.0')) return malformed('Transfer-Encoding in HTTP/1.0');
  }
  const framing = framingOf({ status, method, length, coding });
  return {
    kind: 'answer',
    status,
    fields,
    framing,
    contentLength: framing === 'length' ? Number(length) : 0,
    persistent: !mayBeFollowed({ status, method, length, coding }) && isPersistent(text, connection),
    keepAlive,
  };
}

/**
 * A field of an answer or its trailers: it ends in CRLF, its name is a token that the colon follows at once, it is not
 * folded and has no control character (RFC 9112 §5; RFC 9110 §5.5).
 */
export const fieldLine = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n/;

/** RFC 9112 §4. Without a reason it may lack the space before it, as many do. */
const statusLine = /HTTP\/1\.[01] [0-9]{3}(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/;
const headForm = new RegExp(`^${statusLine.source}(?:${fieldLine.source})*\\r\\n$`);

const lengthForm = /^[0-9]{1,15}$/;

export function malformed(cause: string): Malformed {
  return { kind: 'malformed', cause };
}

/** The name in lower case, if it is one of those that say where an answer ends and what becomes of the connection. */
function framingName(name: string): string {
  const { length } = name;
  return length === 10 || length === 14 || length === 17 ? name.toLowerCase() : '';
}

interface FramingOptions {
  readonly status: number;
  readonly method: string;
  readonly length: string | undefined;
  readonly coding: string | undefined;
}

/** RFC 9112 §6.3, in its order. */
function framingOf({ status, method, length, coding }: FramingOptions): ResponseHead['framing'] {
  if (method === 'HEAD' || status === 204 || status === 304) return 'none';
  if (coding !== undefined) return 'chunked';
  return length === undefined ? 'until_close' : 'length';
}

/**
 * Whether octets may come behind the answer: those of a body that ends with the connection, or of one that must not be
 * there but that some backends send all the same, after HEAD and where a 204 or 304 announces one.
 */
function mayBeFollowed({ status, method, length, coding }: FramingOptions): boolean {
  if (method === 'HEAD') return true;
  if (status === 204 || status === 304) return coding !== undefined || Number(length ?? 0) > 0;
  return coding === undefined && length === undefined;
}

/** RFC 9112 §9.3. */
function isPersistent(text: string, connection: string): boolean {
  const isNewer = text.startsWith('HTTP/1.1');
  if (connection === '') return isNewer;
  const options = connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim());
  return !options.includes('close') && (isNewer || options.includes('keep-alive'));
}
