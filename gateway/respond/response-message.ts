import { STATUS_CODES } from 'node:http';
import type { OwnResponse } from '../errors.ts';
import { rememberLast } from '../remember-last.ts';
import { bounds } from '../timeouts-and-sizes.ts';

/** What a field's value may consist of (RFC 9110 §5.5): visible characters, space, tab and obs-text. */
export const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * The bytes of an answer that the gateway makes itself, in Latin-1 (RFC 9112 §3).
 *
 * @param answer its body is left out where a HEAD is answered
 * @throws on a value that no field can carry: it might split the answer
 */
export function responseMessage(
  { status, fields, body }: OwnResponse,
  options: { readonly nowMs: number; readonly keepAlive: boolean; readonly head: boolean },
): string {
  const { nowMs, keepAlive, head } = options;
  const connection = keepAlive ? `keep-alive\r\nKeep-Alive: ${keepAliveValue}` : 'close';
  const message =
    headBeginning(status, fields) +
    `Date: ${dateOfSecond(Math.floor(nowMs / 1000))}\r\nConnection: ${connection}\r\n\r\n`;
  return head ? message : message + body;
}

/** The bytes of an interim response, in Latin-1. @throws as `responseMessage` */
export function interimMessage(status: number, fields: readonly string[]): string {
  return `${headBeginning(status, fields)}\r\n`;
}

/** What a client is told of how long its idle connection stays open. */
export const keepAliveValue = `timeout=${bounds.keepAliveAnnouncedSeconds}`;

function headBeginning(status: number, fields: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
  for (let i = 0; i < fields.length; i += 2) {
    const [name, value] = [fields[i] ?? '', fields[i + 1] ?? ''];
    if (!fieldValue.test(value)) throw new Error(`a malformed value for the field ${name}`);
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

const dateOfSecond = rememberLast((second: number) => new Date(second * 1000).toUTCString());
