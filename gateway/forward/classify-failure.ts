import type { ErrorCode } from '../errors.ts';

/** How far an attempt came before it failed: what may be tried again depends on nothing else. */
export type Reach =
  /** No byte of the request can have arrived. */
  | 'not_reached'
  /** The request was written, no byte of an answer came. */
  | 'unanswered'
  /** An answer had begun. */
  | 'answering';

export interface Failure {
  readonly code: ErrorCode;
  readonly cause: string;
  /** The target could not be connected to: it is ejected until a health check passes. */
  readonly isConnectFailure: boolean;
}

/** What a failed attempt means to the client, from undici's error and how far the attempt came. */
export function classifyFailure(error: Error, reach: Reach): Failure {
  // undici's parser errors have a `code` that may be undefined.
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return {
    code: errorCode(code, reach),
    cause: `${code}: ${error.message}`,
    isConnectFailure: reach === 'not_reached' && !ownErrors.has(code),
  };
}

/** undici refused the request itself, or the pool was being closed by a reload. */
const ownErrors: ReadonlySet<string> = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
]);

function errorCode(code: string, reach: Reach): ErrorCode {
  if (code === 'UND_ERR_INVALID_ARG') return 'invalid_request';
  if (reach === 'not_reached') return 'upstream_unavailable';
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return 'upstream_timeout';
  return 'upstream_failed';
}
