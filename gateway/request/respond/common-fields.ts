import type { RateLimitState, Settings } from '../../shared/model.ts';
import type { KeyExpiry } from './key-expiry.ts';
import { type PolicyText, rateLimitFields } from './rate-limit-fields.ts';

/**
 * The header fields that every response has in common, the upstream's and the gateway's own: a field for every response
 * is added here. Those that depend on the client's connection (`Date`, `Connection`, `Keep-Alive`) are added when the
 * response is written.
 *
 * @returns flat name, value, …
 */
export function commonFields(
  requestId: string,
  { rateLimit, policyText, keyExpiry, operationFields, corsFields, hstsFields }: Known,
): string[] {
  const fields = [...rateLimitFields(rateLimit, policyText), 'X-Request-Id', requestId, ...corsFields];
  if (keyExpiry !== undefined && rateLimit.nowMs >= keyExpiry.announcedFromMs) {
    fields.push('X-Key-Expires', keyExpiry.date);
  }
  if (operationFields !== undefined) fields.push(...operationFields);
  if (hstsFields !== undefined) fields.push(...hstsFields);
  return fields;
}

/** What is known of the request. */
interface Known {
  readonly rateLimit: RateLimitState;
  /** Of its key, if it has a valid one. */
  readonly policyText: PolicyText | undefined;
  /** Of the secret that was presented, if it is valid and expires. */
  readonly keyExpiry: KeyExpiry | undefined;
  /** Those of the matched operation, if any. */
  readonly operationFields: readonly string[] | undefined;
  /** Those for the page that sent the request. */
  readonly corsFields: readonly string[];
  /** `Strict-Transport-Security`, for a response over TLS. */
  readonly hstsFields: readonly string[] | undefined;
}

/** `Strict-Transport-Security` (RFC 6797), flat name, value; undefined where it is not configured. */
export function hstsFieldsOf(hsts: Settings['hsts']): readonly string[] | undefined {
  if (hsts === undefined) return undefined;
  const value = `max-age=${hsts.maxAgeSeconds}${hsts.includeSubDomains ? '; includeSubDomains' : ''}`;
  return ['Strict-Transport-Security', value];
}
