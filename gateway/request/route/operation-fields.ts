import type { Operation } from '../../shared/model.ts';

/**
 * Makes the header fields that every response of an operation has, as a flat list of names and values.
 *
 * | field | value |
 * |---|---|
 * | `Deprecation` (RFC 9745) | the date of the deprecation |
 * | `Sunset` (RFC 8594) | the date of the removal |
 * | `Link` (RFC 5829 §3.6) | the successor |
 * | `X-Stability` | the stability of the operation |
 * | `X-RateLimit-Cost` | the cost, if it is not 1 unit |
 */
export function operationFields(operation: Operation, basePath: string): readonly string[] {
  const fields: string[] = [];
  const { deprecation, stability, cost = 1 } = operation;
  if (deprecation !== undefined) {
    if (deprecation.sinceMs !== undefined) {
      fields.push('Deprecation', `@${Math.floor(deprecation.sinceMs / 1000)}`);
    }
    if (deprecation.sunsetMs !== undefined) {
      fields.push('Sunset', new Date(deprecation.sunsetMs).toUTCString());
    }
    if (deprecation.successor !== undefined) {
      fields.push('Link', `<${basePath}${inLink(deprecation.successor)}>; rel="successor-version"`);
    }
  }
  if (stability !== undefined) fields.push('X-Stability', stability);
  if (cost !== 1) fields.push('X-RateLimit-Cost', String(cost));
  return fields;
}

/** Escapes a path template for a header field. The names of a template's parameters may contain any character. */
function inLink(template: string): string {
  return template.replaceAll(/[^\x21-\x7e]|["<>]/gu, encodeURIComponent);
}
