import type { RateLimitState, Settings } from '../../shared/model.ts';
import type { KeyExpiry } from './key-expiry.ts';
import { type PolicyText, rateLimitFields } from './rate-limit-fields.ts';

/**
 * Makes the header fields that every response has, whether it comes from the upstream or from the gateway. Add a field for all
 * responses here. `Date`, `Connection` and `Keep-Alive` are added when the response is written.
 *
 * @returns a flat list of names and values
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
  /** The cached `RateLimit-Policy` of the key; undefined without a valid key. */
  readonly policyText: PolicyText | undefined;
  /** The expiry of the presented secret; undefined when the secret is not valid or never expires. */
  readonly keyExpiry: KeyExpiry | undefined;
  /** The header fields of the operation; undefined when no operation was found. */
  readonly operationFields: readonly string[] | undefined;
  readonly corsFields: readonly string[];
  /** `Strict-Transport-Security`; undefined for a response without TLS. */
  readonly hstsFields: readonly string[] | undefined;
}

/** Returns name and value of `Strict-Transport-Security` (RFC 6797); undefined when the field is not configured. */
export function hstsFieldsOf(hsts: Settings['hsts']): readonly string[] | undefined {
  if (hsts === undefined) return undefined;
  const value = `max-age=${hsts.maxAgeSeconds}${hsts.includeSubDomains ? '; includeSubDomains' : ''}`;
  return ['Strict-Transport-Security', value];
}
