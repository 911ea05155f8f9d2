import type { RateLimitState } from '../model.ts';
import { rateLimitFields } from './rate-limit-fields.ts';

/**
 * The header fields that every response has in common, the upstream's and the gateway's own: a field for every response
 * is added here. Those that depend on the client's connection (`Date`, `Connection`, `Keep-Alive`) are added when the
 * response is written.
 *
 * @param operationFields those of the matched operation, if any
 * @param corsFields those for the page that sent the request
 * @returns flat name, value, …
 */
export function commonFields(
  requestId: string,
  rateLimit: RateLimitState,
  operationFields: readonly string[] | undefined,
  corsFields: readonly string[],
): string[] {
  const fields = [...rateLimitFields(rateLimit), 'X-Request-Id', requestId, ...corsFields];
  if (operationFields !== undefined) fields.push(...operationFields);
  return fields;
}
