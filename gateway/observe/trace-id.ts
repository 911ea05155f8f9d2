/** Version, trace id, parent id and flags in lower-case hex; neither id is zero. Version `ff` does not exist. */
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/;
const version00Length = 55;

/**
 * The trace id in a `traceparent` field; undefined when the field is not valid. Of a version above 00 only the members of
 * 00 are read, and more may follow them (W3C Trace Context §3.2.4).
 */
export function traceIdOf(field: string | string[] | undefined): string | undefined {
  // Sent twice it is joined with a comma, and not valid.
  if (typeof field !== 'string' || !traceparent.test(field)) return undefined;
  if (field.startsWith('00') && field.length !== version00Length) return undefined;
  return field.slice(3, 35);
}
