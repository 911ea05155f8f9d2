import { type ErrorCode, errorBody, errors, type WholeResponse } from '../../shared/errors.ts';

/** An error response of the gateway. `errors.ts` has the status and the public text of each code. */
export interface Refusal {
  readonly code: ErrorCode;
  /** Public; replaces the text of the catalogue. */
  readonly message?: string;
  /** The fields of this refusal, flat name, value, …: `Allow`, `Retry-After`. */
  readonly fields?: readonly string[];
}

/** Makes the response to a refused request. @param common the fields that every response has */
export function refusalResponse(refusal: Refusal, common: readonly string[]): WholeResponse {
  const body = errorBody(refusal.code, refusal.message);
  const fields = [
    ...common,
    'Content-Type',
    'application/json',
    'Content-Length',
    String(body.length),
    // A cache may store 404, 405, 410, 414 and 501 unasked (RFC 9110 §15.1); 429 and 431 it must not (RFC 6585 §4, §5).
    'Cache-Control',
    'no-store',
  ];
  const challenge = challenges.get(refusal.code);
  if (challenge !== undefined) fields.push('WWW-Authenticate', challenge);
  if (refusal.fields !== undefined) fields.push(...refusal.fields);
  return { status: errors[refusal.code].status, fields, body };
}

/** A challenge names an `error` only when a key was sent and is not valid (RFC 6750 §3.1). */
const challenges = new Map<ErrorCode, string>([
  ['missing_key', 'Bearer realm="api"'],
  ['invalid_key', 'Bearer realm="api", error="invalid_token"'],
  ['operation_not_allowed', 'Bearer realm="api", error="insufficient_scope"'],
]);
