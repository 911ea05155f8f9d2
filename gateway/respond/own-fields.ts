import type { Standing } from '../model.ts';
import { rateLimitFields } from './rate-limit-fields.ts';

/** What browsers may show to a page's script beside the safelisted fields (Fetch standard, CORS). */
const exposedFields = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Request-Id',
  'Deprecation',
  'Sunset',
  'Link',
  'X-Stability',
].join(', ');

/**
 * The fields that every answer of the gateway carries, whoever made its body.
 *
 * @param operationFields those of the matched operation, if any
 * @returns flat name, value, …
 */
export function ownFields(
  requestId: string,
  standing: Standing,
  operationFields: readonly string[] | undefined,
): string[] {
  const fields = [
    ...rateLimitFields(standing),
    'X-Request-Id',
    requestId,
    'Access-Control-Expose-Headers',
    exposedFields,
  ];
  if (operationFields !== undefined) fields.push(...operationFields);
  return fields;
}
