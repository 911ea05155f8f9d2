import { type ErrorCode, errorBody, errors, type Refusal, type WholeResponse } from '../../shared/errors.ts';

/** Makes the response to a refused request. @param common the header fields that every response has */
export function refusalResponse(refusal: Refusal, common: readonly string[]): WholeResponse {
  const body = errorBody(refusal.code, refusal.message);
  const fields = [
    ...common,
    'Content-Type',
    'application/json',
    'Content-Length',
    String(body.length),
    // Caches store 404, 405, 410, 414 and 501 by default (RFC 9110 §15.1). Caches must not store 429 and 431 (RFC 6585 §4, §5).
    'Cache-Control',
    'no-store',
  ];
  const challenge = challenges.get(refusal.code);
  if (challenge !== undefined) fields.push('WWW-Authenticate', challenge);
  if (refusal.fields !== undefined) fields.push(...refusal.fields);
  return { status: errors[refusal.code].status, fields, body };
}

/** The values of WWW-Authenticate, with an `error` only if the request had a secret (RFC 6750 §3.1). */
const challenges = new Map<ErrorCode, string>([
  ['missing_key', 'Bearer realm="api"'],
  ['invalid_key', 'Bearer realm="api", error="invalid_token"'],
  // A 401 must name a scheme (RFC 9110 §15.5.2). There is no registered scheme for the signatures of GitHub.
  ['invalid_signature', 'Signature realm="leaks"'],
  ['operation_not_allowed', 'Bearer realm="api", error="insufficient_scope"'],
]);
