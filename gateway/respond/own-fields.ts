import type { Standing } from '../model.ts';
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
  standing: Standing,
  operationFields: readonly string[] | undefined,
  corsFields: readonly string[],
): string[] {
  const fields = [...rateLimitFields(standing), 'X-Request-Id', requestId, ...corsFields];
  if (operationFields !== undefined) fields.push(...operationFields);
  return fields;
}
