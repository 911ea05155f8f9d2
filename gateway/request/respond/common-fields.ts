import type { RateLimitState, Settings } from '../../shared/model.ts';
import type { KeyExpiry } from './key-expiry.ts';
import { type PolicyText, rateLimitFields } from './rate-limit-fields.ts';

/**
 * The header fields of every response, from the upstream and from the gateway. Add a field for every response here. The fields of
 * the connection (`Date`, `Connection`, `Keep-Alive`) are added when the response is written.
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

interface Known {
  readonly rateLimit: RateLimitState;
  /** Undefined without a valid key. */
  readonly policyText: PolicyText | undefined;
  /** Undefined unless the presented secret is valid and expires. */
  readonly keyExpiry: KeyExpiry | undefined;
  /** Undefined without an operation. */
  readonly operationFields: readonly string[] | undefined;
  readonly corsFields: readonly string[];
  /** Undefined for a response without TLS. */
  readonly hstsFields: readonly string[] | undefined;
}

/** `Strict-Transport-Security` (RFC 6797), flat name, value. Undefined when it is not configured. */
export function hstsFieldsOf(hsts: Settings['hsts']): readonly string[] | undefined {
  if (hsts === undefined) return undefined;
  const value = `max-age=${hsts.maxAgeSeconds}${hsts.includeSubDomains ? '; includeSubDomains' : ''}`;
  return ['Strict-Transport-Security', value];
}
