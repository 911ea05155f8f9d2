import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorBody } from './errors.ts';
import { createErrorBody } from './errors.ts';

/** Responds to a request that Node's HTTP parser rejected before it reached a route, and closes the connection. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const body = toErrorBody(error.code);
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${body.status} ${STATUS_CODES[body.status]}\r\n` +
      'content-type: application/json; charset=utf-8\r\n' +
      `content-length: ${Buffer.byteLength(text)}\r\n` +
      `connection: close\r\n\r\n${text}`,
    () => socket.destroy(),
  );
}

function toErrorBody(parserCode: string | undefined): ErrorBody {
  switch (parserCode) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return createErrorBody('request_timeout', 'the request did not arrive in time');
    case 'HPE_HEADER_OVERFLOW':
      return createErrorBody('headers_too_large', 'the header fields are too large');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return createErrorBody('payload_too_large', 'the chunk extensions are too large');
    default:
      return createErrorBody('invalid_request', 'the request is not valid HTTP');
  }
}
