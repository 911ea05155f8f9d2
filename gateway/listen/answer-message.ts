import { STATUS_CODES } from 'node:http';
import type { ErrorAnswer } from '../errors.ts';
import { fieldValue } from '../field-value.ts';
import { rememberLast } from '../remember-last.ts';

/**
 * The bytes of an answer that the gateway makes itself, in Latin-1 (RFC 9112 §3).
 *
 * @param answer its body is left out where a HEAD is answered
 * @throws on a value that no field can carry: it might split the answer
 */
export function answerMessage(
  { status, fields, body }: ErrorAnswer,
  options: { readonly nowMs: number; readonly keepAlive: boolean; readonly head: boolean },
): string {
  let message = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n`;
  for (let i = 0; i < fields.length; i += 2) {
    const [name, value] = [fields[i] ?? '', fields[i + 1] ?? ''];
    if (!fieldValue.test(value)) throw new Error(`a malformed value for the field ${name}`);
    message += `${name}: ${value}\r\n`;
  }
  const { nowMs, keepAlive, head } = options;
  const connection = keepAlive ? 'keep-alive' : 'close';
  message += `Date: ${dateOfSecond(Math.floor(nowMs / 1000))}\r\nConnection: ${connection}\r\n\r\n`;
  return head ? message : message + body;
}

const dateOfSecond = rememberLast((second: number) => new Date(second * 1000).toUTCString());
