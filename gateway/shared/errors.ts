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
