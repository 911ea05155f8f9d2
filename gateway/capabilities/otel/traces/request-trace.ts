import { getRandomValues } from 'node:crypto';
import type { TraceParent } from '../../../observe/trace-id.ts';
import type { ExchangeTrace } from '../../../request/exchange.ts';
import type { Attempt, AttemptFields } from '../../../request/forward/forward-types.ts';
import { traceIdFrom } from './sampler.ts';

/**
 * The trace of one forwarded request: the ids of its spans, and its attempts. Each attempt is a span of its own, and the target gets this
 * span as its parent (OpenTelemetry, "Semantic conventions for HTTP spans" §HTTP request retries and redirects).
 */
export class RequestTrace implements ExchangeTrace, AttemptFields {
  traceId: string | undefined = undefined;
  spanId: string | undefined = undefined;
  parent: TraceParent | undefined = undefined;
  /** The ended attempts. */
  attempts: readonly Attempt[] = none;
  /** Whether the target gets the span of the request as its parent. */
  isSampled = false;
  private attemptIds: string[] | undefined = undefined;

  /** Gives the request its ids. @param parent the client's `traceparent`, if it is valid */
  record(requestId: string, parent: TraceParent | undefined): void {
    this.traceId = parent?.traceId ?? traceIdFrom(requestId);
    this.spanId = newSpanId();
    this.parent = parent;
  }

  /** Without a valid `traceparent` of the client, its `tracestate` is dropped, too (W3C Trace Context §Processing Model). */
  get replaced(): ReadonlySet<string> {
    return this.parent === undefined ? bothFields : parentField;
  }

  fieldsOf(attempt: number): readonly string[] {
    // The flag `random` of the client stays (W3C Trace Context Level 2 §Random Trace ID Flag).
    const flags = this.parent === undefined ? 1 : (this.parent.flags & 2) | 1;
    return ['traceparent', `00-${this.traceId}-${this.attemptId(attempt)}-0${flags}`];
  }

  /** @param attempt from 1 */
  attemptId(attempt: number): string {
    this.attemptIds ??= [];
    const known = this.attemptIds[attempt - 1];
    if (known !== undefined) return known;
    const made = newSpanId();
    this.attemptIds[attempt - 1] = made;
    return made;
  }

  addAttempt(attempt: Attempt): void {
    this.attempts = this.attempts === none ? [attempt] : [...this.attempts, attempt];
  }
}

/** Most requests are not recorded, and need no list of their own. */
const none: readonly Attempt[] = [];

const parentField: ReadonlySet<string> = new Set(['traceparent']);
const bothFields: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

/** Random octets for many ids, because each call of the generator takes 1 µs. */
const pool = Buffer.alloc(4_096);
let used = pool.length;

/** 16 hex digits, not all zero. */
function newSpanId(): string {
  if (used === pool.length) {
    getRandomValues(pool);
    used = 0;
  }
  const id = pool.toString('hex', used, used + 8);
  used += 8;
  return id === '0000000000000000' ? newSpanId() : id;
}
