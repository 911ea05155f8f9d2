import type { WholeResponse } from '../../shared/errors.ts';
import { http } from '../../shared/http/node-http.ts';
import { rememberLast } from '../../shared/structures/remember-last.ts';

/** Matches a field value (RFC 9110 §5.5): visible characters, spaces, tabs and obs-text. */
export const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface MessageOptions {
  /** The current time for `Date`, epoch ms. */
  readonly nowMs: number;
  /** The idle timeout for `Keep-Alive`; undefined when the connection closes. */
  readonly keepAliveSeconds: number | undefined;
  /** Whether the request is a HEAD. The response then describes a body in its header fields, but has no body. */
  readonly head: boolean;
}

/**
 * Returns a whole response in Latin-1: status line (RFC 9112 §4), header fields and body. A body that is a buffer is omitted.
 *
 * @throws on a malformed field value, because it could split the response
 */
export function responseMessage({ status, fields, body }: WholeResponse, options: MessageOptions): string {
  const { nowMs, keepAliveSeconds, head } = options;
  // The gateway keeps a target's Date (RFC 9110 §6.6.1).
  const date = hasDate(fields) ? '' : `Date: ${dateOfSecond(Math.floor(nowMs / 1000))}\r\n`;
  const connection =
    keepAliveSeconds === undefined
      ? 'close'
      : `keep-alive\r\nKeep-Alive: ${keepAliveValue(keepAliveSeconds)}`;
  const message = `${headBeginning(status, fields)}${date}Connection: ${connection}\r\n\r\n`;
  return head || typeof body !== 'string' ? message : message + body;
}

/** Returns an interim response or a 101 in Latin-1. @throws like `responseMessage` */
export function interimMessage(status: number, fields: readonly string[]): string {
  return `${headBeginning(status, fields)}\r\n`;
}

export function keepAliveValue(seconds: number): string {
  return `timeout=${seconds}`;
}

export function reasonPhrase(status: number): string {
  return http.STATUS_CODES[status] ?? 'Unknown';
}

function headBeginning(status: number, fields: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\n`;
  for (let i = 0; i < fields.length; i += 2) {
    const [name, value] = [fields[i] ?? '', fields[i + 1] ?? ''];
    if (!fieldValue.test(value)) throw new Error(`a malformed value for the field ${name}`);
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

function hasDate(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'date') return true;
  }
  return false;
}

/** Cached, because all responses of a second have the same `Date`. */
const dateOfSecond = rememberLast((second: number) => new Date(second * 1000).toUTCString());
