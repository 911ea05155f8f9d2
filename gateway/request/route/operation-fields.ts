import type { Operation } from '../../shared/model.ts';

/**
 * The header fields of every response of an operation: `Deprecation` (RFC 9745, the date of the deprecation), `Sunset` (RFC 8594,
 * the date of the removal), `Link` to the successor (RFC 5829 §3.6) and `X-Stability`.
 *
 * @returns flat name, value, …
 */
export function operationFields(operation: Operation, basePath: string): readonly string[] {
  const fields: string[] = [];
  const { deprecation, stability } = operation;
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
  return fields;
}

/** A template in the form of a field value. The names of its parameters may be any text. */
function inLink(template: string): string {
  return template.replaceAll(/[^\x21-\x7e]|["<>]/gu, encodeURIComponent);
}
