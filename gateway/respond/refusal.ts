import { type ErrorCode, errorBody, errors, type OwnResponse } from '../errors.ts';

/** An answer that the gateway makes itself instead of the backend: always an error. */
export interface Refusal {
  readonly code: ErrorCode;
  /** Says more than the catalogue's text; public. */
  readonly message?: string;
  /** Further fields, flat name, value, …: `Allow`, `Retry-After`. */
  readonly fields?: readonly string[];
}

/** Makes a refusal's answer out of the catalogue; `own` are the fields that every answer carries. */
export function refusalResponse(refusal: Refusal, own: readonly string[]): OwnResponse {
  const body = errorBody(refusal.code, refusal.message);
  const fields = [
    ...own,
    'Content-Type',
    'application/json',
    'Content-Length',
    String(body.length),
    // 404, 405, 410, 414 and 501 are heuristically cacheable (RFC 9111 §4.2.2); 429 and 431 must not be stored.
    'Cache-Control',
    'no-store',
  ];
  const challenge = challenges.get(refusal.code);
  if (challenge !== undefined) fields.push('WWW-Authenticate', challenge);
  if (refusal.fields !== undefined) fields.push(...refusal.fields);
  return { status: errors[refusal.code].status, fields, body };
}

/** `error` only when a key was sent and is bad (RFC 6750 §3.1). */
const challenges = new Map<ErrorCode, string>([
  ['missing_key', 'Bearer realm="api"'],
  ['invalid_key', 'Bearer realm="api", error="invalid_token"'],
]);
