import type { Rejection } from '../../shared/errors.ts';
import { token } from '../../shared/http/field-grammar.ts';

/** The error of Node's parser for refused input. `rawPacket` is the packet that contains the fault. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly reason?: string;
  readonly bytesParsed?: number;
  readonly rawPacket?: Buffer;
}

/** Returns the error response to a parser error; undefined when the connection itself has failed. */
export function parserRejection(error: ParserError): Rejection | undefined {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { code: 'request_timeout', message: 'The request did not arrive in time.' };
    case 'HPE_HEADER_OVERFLOW':
      return isRequestLine(lineUpToError(error))
        ? { code: 'uri_too_long', message: 'The request target is too long.' }
        : { code: 'headers_too_large', message: 'The request line and header fields are too large.' };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { code: 'payload_too_large', message: 'The chunk extensions of the body are too large.' };
    case 'HPE_INVALID_METHOD':
      return isWholeRequestLine(lineAroundError(error))
        ? { code: 'method_not_implemented', message: 'The gateway does not know this method.' }
        : malformed(error);
    case 'HPE_PAUSED_H2_UPGRADE':
      // This error usually means that a proxy in front of the gateway uses HTTP/2 for its backends.
      return { code: 'invalid_request', message: 'This is HTTP/2, and the gateway speaks HTTP/1.1 only.' };
    default:
      return error.code?.startsWith('HPE_') ? malformed(error) : undefined;
  }
}

/**
 * Whether the refused request was a HEAD. The response to a HEAD has no body (RFC 9110 §9.3.2). A HEAD is only recognised if its
 * request line is in the same packet as the fault.
 */
export function isHead({ code, rawPacket, bytesParsed = 0 }: ParserError): boolean {
  // The parser accepts HEAD as a method, so a request with an invalid method is not a HEAD.
  if (rawPacket === undefined || code === 'HPE_INVALID_METHOD') return false;
  let start = lineStart(rawPacket, bytesParsed);
  let line = rawPacket.toString('latin1', start, bytesParsed);
  // The fault may be in the request line itself. If the fault is in a later line, the nearest earlier line with an HTTP version is the
  // request line.
  if (line.startsWith('HEAD ')) return true;
  while (start > 0 && line !== '\r\n') {
    const end = start;
    start = lineStart(rawPacket, end - 1);
    line = rawPacket.toString('latin1', start, end);
    if (/ HTTP\/1\.[01]\r\n$/.test(line)) return line.startsWith('HEAD ');
  }
  return false;
}

/** Returns a 400 with the parser's reason. The reason is a fixed text without input of the client. */
function malformed({ reason }: ParserError): Rejection {
  return {
    code: 'invalid_request',
    message: `The request is malformed: ${reason ?? 'it cannot be parsed'}.`,
  };
}

/**
 * Whether a line is a method and the start of a URI. If a URI began in an earlier packet, the function returns false, and the client gets
 * `headers_too_large`.
 */
function isRequestLine(line: string): boolean {
  return requestLineStart.test(line);
}

const requestLineStart = new RegExp(`^${token} [^ ]*$`);

function isWholeRequestLine(line: string): boolean {
  return requestLine.test(line);
}

const requestLine = new RegExp(`^${token} [!-~]+ HTTP/1\\.[01]\\r$`);

function lineUpToError({ rawPacket, bytesParsed = 0 }: ParserError): string {
  return rawPacket?.toString('latin1', lineStart(rawPacket, bytesParsed), bytesParsed) ?? '';
}

function lineAroundError({ rawPacket, bytesParsed = 0 }: ParserError): string {
  if (rawPacket === undefined) return '';
  const end = rawPacket.indexOf('\n', bytesParsed);
  return end === -1 ? '' : rawPacket.toString('latin1', lineStart(rawPacket, bytesParsed), end);
}

function lineStart(packet: Buffer, position: number): number {
  return position === 0 ? 0 : packet.lastIndexOf('\n', position - 1) + 1;
}
