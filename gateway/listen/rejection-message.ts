import { STATUS_CODES } from 'node:http';
import type { ErrorAnswer } from '../errors.ts';

/** The bytes of an answer to what never became a request, as the last message of its connection. */
export function rejectionMessage({ status, fields, body }: ErrorAnswer, nowMs: number): string {
  let message = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n`;
  message += `Date: ${new Date(nowMs).toUTCString()}\r\n`;
  for (let i = 0; i < fields.length; i += 2) message += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return `${message}Connection: close\r\n\r\n${body}`;
}
