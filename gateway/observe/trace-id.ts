/** Matches a `traceparent`: version, trace id, parent id and flags in lower-case hex. An id of zeros and the version `ff` are invalid. */
const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/;
const version00Length = 55;

/** The parent of a request in its trace. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  /** The octet of flags. Bit 0 means that the caller records the trace, and bit 1 that the trace id is random. */
  readonly flags: number;
}

/** Reads a `traceparent` field; undefined when the field is not valid. */
export function traceParentOf(field: string | string[] | undefined): TraceParent | undefined {
  const traceId = traceIdOf(field);
  if (traceId === undefined || typeof field !== 'string') return undefined;
  return { traceId, spanId: field.slice(36, 52), flags: Number.parseInt(field.slice(53, 55), 16) };
}

/**
 * Returns the trace id in a `traceparent` field; undefined when the field is not valid. A version above 00 may have
 * further members after the members of version 00 (W3C Trace Context §3.2.4).
 */
export function traceIdOf(field: string | string[] | undefined): string | undefined {
  // If a client sends the field twice, Node joins both values with a comma, and the result is invalid.
  if (typeof field !== 'string' || !traceparent.test(field)) return undefined;
  if (field.startsWith('00') && field.length !== version00Length) return undefined;
  return field.slice(3, 35);
}
