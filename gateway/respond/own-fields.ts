import type { RateLimitState } from '../model.ts';
import { rateLimitFields } from './rate-limit-fields.ts';

/**
 * The fields that every answer of the gateway carries, whoever made its body.
 *
 * @param operationFields those of the matched operation, if any
 * @param corsFields those for the caller's origin
 * @returns flat name, value, …
 */
export function ownFields(
  requestId: string,
  rateLimit: RateLimitState,
  operationFields: readonly string[] | undefined,
  corsFields: readonly string[],
): string[] {
  const fields = [...rateLimitFields(rateLimit), 'X-Request-Id', requestId, ...corsFields];
  if (operationFields !== undefined) fields.push(...operationFields);
  return fields;
}
