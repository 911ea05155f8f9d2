/**
 * The closed catalogue of errors: the `code` for clients, the HTTP status, a public text, and the side at fault. Causes are only logged;
 * clients never see them.
 */
import { rememberLast } from './structures/remember-last.ts';
import { catalogue } from './words/errors.js';

/** The side that must act so that the request succeeds, for the access line. */
export type Fault = 'client' | 'gateway' | 'upstream';

interface ErrorEntry {
  readonly status: number;
  readonly message: string;
  readonly fault: Fault;
}

export type ErrorCode = keyof typeof catalogue;

export const errors: Readonly<Record<ErrorCode, ErrorEntry>> = catalogue;

/** When a client gets each error: sentences for `config/reference/errors.md`, in Markdown. */
export const aboutErrors: Readonly<Record<ErrorCode, string>> = {
  invalid_request:
    'The request is malformed or ambiguous HTTP, or has a query, body or header field that a path of the gateway does not accept. The message names the fault.',
  missing_key:
    'The request has no `Authorization: Bearer`. If the key is in another usual place, such as `X-API-Key`, `?api_key=` or `Authorization` without `Bearer`, the message names this place.',
  invalid_key:
    'The secret or link is unknown or has ended, or its key is disabled or on no plan of the configuration.',
  invalid_signature: 'A report of leaked secrets has no valid signature.',
  address_not_allowed:
    'The key may not be used from the client’s address, which the message names. The request is charged to this address like a request without a valid key.',
  operation_not_allowed:
    'The key may not call this operation. Or the operation costs more than a limit of the key: then the message says so, and the request is not charged. Or the secret cannot be rotated.',
  not_found: 'No operation has this path.',
  method_not_allowed: 'The path does not have this method. `Allow` lists its methods.',
  request_timeout:
    'The request did not arrive in time, or its body arrived at less than 500 octets a second.',
  gone: 'The operation was removed. If it has a successor, `Link` names it. A response with `Retry-After` only rehearses the removal: its message states the end of the rehearsal and the date of the removal.',
  payload_too_large:
    'The body is too large. The API accepts 1 MiB, unless the API team has set `bodyBytesMax`.',
  uri_too_long: 'The request target is longer than 8 KiB.',
  expectation_failed: '`Expect` is not `100-continue`, or is in a request of HTTP/1.0.',
  rate_limited:
    'A window of the key has too few units left, or another limit is used up, such as for requests without a valid key. The message names it, the time to wait, and the cost if not 1 unit.',
  too_many_concurrent:
    'The key has reached its limit of requests in progress, and each open WebSocket counts as a request. The refused request is not charged, and does not count towards a ban.',
  key_banned:
    'The key is banned because it kept sending requests after 429, or by the operator of the API. The message states when the ban ends.',
  headers_too_large:
    'The request line and the header fields are longer than 32 KiB, or there are more than 100 fields.',
  internal: 'A bug of the gateway.',
  method_not_implemented: 'The method is unknown, `CONNECT` or `TRACE`.',
  upstream_failed: 'The API did not send a well-formed response.',
  store_unavailable: 'The gateway cannot get data that it needs, mostly from its store.',
  too_many_uploads: 'The unfinished request bodies of the key have used its share of the memory.',
  too_many_websockets: 'The key has reached its limit of open WebSockets.',
  upstream_unavailable: 'The API cannot be reached or is too busy.',
  upstream_timeout: 'The API did not answer in time.',
};

/** The Error body of the specification. It is ASCII, so its length in octets equals its length in characters. @param message public */
export function errorBody(code: ErrorCode, message: string = errors[code].message): string {
  return bodies[code](message);
}

/** Cached for each code, because all refusals of a flood have the same message for a second. */
const bodies = Object.fromEntries(
  Object.keys(catalogue).map((code) => [
    code,
    rememberLast((message: string) => bodyOf(code as ErrorCode, message)),
  ]),
) as Readonly<Record<ErrorCode, (message: string) => string>>;

function bodyOf(code: ErrorCode, message: string): string {
  const text = JSON.stringify({ code, message, status: errors[code].status });
  return text.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The gateway's own response (an error, a preflight, a page), or a target's response whose head and body arrived together. */
export interface WholeResponse {
  readonly status: number;
  /**
   * Flat: name, value, … It has `Content-Length` if there is a body, and never `Connection`. Only the response of a target may have a
   * `Date`.
   */
  readonly fields: readonly string[];
  /** The body in Latin-1, or as a buffer if many responses share a large body. */
  readonly body: string | Buffer;
}

export interface Refusal {
  readonly code: ErrorCode;
  /** Replaces the text of the catalogue. */
  readonly message?: string | undefined;
  /** Further fields such as `Allow` and `Retry-After`; flat: name, value, … */
  readonly fields?: readonly string[] | undefined;
  /** The name in the usage record; absent if only the status is counted. */
  readonly countedAs?: string | undefined;
}

/** A fault that Node's parser or a check of the raw request has found. */
export interface Rejection {
  readonly code: ErrorCode;
  /** Public, without input of the client. */
  readonly message: string;
}
