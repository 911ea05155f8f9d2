/** Version, trace id, parent id and flags in lower-case hex. Neither id is zero, and version `ff` does not exist. */
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/;
const version00Length = 55;

/**
 * The trace id in a `traceparent` field. Undefined when the field is not valid. A version above 00 may have further members behind
 * those of 00 (W3C Trace Context §3.2.4).
 */
export function traceIdOf(field: string | string[] | undefined): string | undefined {
  // A field that is sent twice is joined with a comma and not valid.
  if (typeof field !== 'string' || !traceparent.test(field)) return undefined;
  if (field.startsWith('00') && field.length !== version00Length) return undefined;
  return field.slice(3, 35);
}
