import { fieldValue } from '../field-value.ts';
import { hopByHopFields, namedInConnection } from './hop-by-hop.ts';
import { privateCacheControl } from './private-cache-control.ts';

export type ResponseHead =
  | { readonly kind: 'ok'; readonly fields: string[] }
  | { readonly kind: 'broken'; readonly cause: string };

interface ResponseHeadOptions {
  readonly status: number;
  /** By lower-case name; an array where the backend sent several lines. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Flat name, value, … that the gateway adds. */
  readonly ownFields: readonly string[];
}

/**
 * The fields of an answer as the client gets them: the backend's without hop-by-hop and without copies of ours, ours
 * after them. What a well-formed answer cannot have is told as broken.
 */
export function responseHead(options: ResponseHeadOptions): ResponseHead {
  const { status } = options;
  return status >= 200 && status <= 599
    ? responseFields(options)
    : { kind: 'broken', cause: `the answer has status ${status}` };
}

/** The same for a status that was judged already: the 101 that a handshake waits for. */
export function responseFields({ status, headers, ownFields }: ResponseHeadOptions): ResponseHead {
  const { connection = '' } = headers;
  const named = namedInConnection(typeof connection === 'string' ? connection : connection.join(','));
  const fields: string[] = [];
  let cacheControl: string | undefined;
  for (const name in headers) {
    const value = headers[name] ?? '';
    if (!isWellFormed(value)) return { kind: 'broken', cause: 'control character in a header field' };
    switch (name) {
      case 'cache-control':
        cacheControl = typeof value === 'string' ? value : value.join(', ');
        continue;
      case 'transfer-encoding':
        // Another coding would be taken off with the field and its content passed on as if it were plain.
        if (typeof value !== 'string' || value.toLowerCase() !== 'chunked') {
          return { kind: 'broken', cause: 'a transfer coding other than chunked' };
        }
        continue;
      case 'content-length':
        // RFC 9110 §8.6: never with 204.
        if (status === 204) continue;
        break;
      default:
        if (endsHere(name) || named?.has(name) || isAmong(ownFields, name)) continue;
    }
    if (typeof value === 'string') fields.push(name, value);
    else for (const line of value) fields.push(name, line);
  }
  fields.push('Cache-Control', privateCacheControl(cacheControl));
  for (const part of ownFields) fields.push(part);
  return { kind: 'ok', fields };
}

function isWellFormed(value: string | string[]): boolean {
  return typeof value === 'string' ? fieldValue.test(value) : value.every((line) => fieldValue.test(line));
}

const endingHere: ReadonlySet<string> = new Set([...hopByHopFields, 'x-request-id']);

function endsHere(name: string): boolean {
  return endingHere.has(name) || name.startsWith('x-ratelimit') || name.startsWith('ratelimit');
}

function isAmong(ownFields: readonly string[], name: string): boolean {
  for (let i = 0; i < ownFields.length; i += 2) {
    const own = ownFields[i] ?? '';
    if (own.length === name.length && own.toLowerCase() === name) return name !== 'link';
  }
  return false;
}
