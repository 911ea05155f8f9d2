import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** Spans that are sent together. */
export interface Batch {
  /** The spans as JSON in ASCII, with commas between them. */
  readonly octets: Buffer;
  readonly spans: number;
}

/**
 * The spans that wait for the collector. Each span is written into the buffer of a batch at once, because the parts of a joined text take
 * three times the memory of the text. Full buffers wait in a queue with a bounded size.
 */
export class SpanQueue {
  private readonly bounds: Bounds;
  private readonly full: Batch[] = [];
  private buffer: Buffer | undefined;
  private length = 0;
  private spans = 0;
  /** The spans and octets of the full batches. */
  private waitingSpans = 0;
  private waitingBytes = 0;
  /** A buffer for the next batch, so that steady traffic allocates none. */
  private spare: Buffer | undefined;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
  }

  /** @param span JSON in ASCII @returns false if the queue has no room for the span */
  add(span: string): boolean {
    const { otelQueuedSpansMax, otelQueuedBytesMax, otelBatchSpansMax, otelBatchBytesMax } = this.bounds;
    const bytes = span.length + 1;
    if (this.waitingSpans + this.spans + 1 > otelQueuedSpansMax) return false;
    if (this.waitingBytes + this.length + bytes > otelQueuedBytesMax || bytes > otelBatchBytesMax)
      return false;
    if (this.spans >= otelBatchSpansMax || this.length + bytes > otelBatchBytesMax) this.close();
    this.buffer ??= this.spare ?? Buffer.allocUnsafeSlow(otelBatchBytesMax);
    this.spare = undefined;
    if (this.length > 0) this.buffer[this.length++] = comma;
    this.length += this.buffer.write(span, this.length, 'latin1');
    this.spans += 1;
    return true;
  }

  /** Whether a whole batch waits. */
  hasFull(): boolean {
    return this.full.length > 0 || this.spans >= this.bounds.otelBatchSpansMax;
  }

  isEmpty(): boolean {
    return this.full.length === 0 && this.spans === 0;
  }

  /** Takes the oldest spans; undefined if none wait. */
  take(): Batch | undefined {
    if (this.full.length === 0) this.close();
    const batch = this.full.shift();
    if (batch === undefined) return undefined;
    this.waitingSpans -= batch.spans;
    this.waitingBytes -= batch.octets.length;
    return batch;
  }

  /** The batch was sent or dropped, so its buffer can be used again. */
  release({ octets }: Batch): void {
    const whole = Buffer.from(octets.buffer);
    if (whole.length === this.bounds.otelBatchBytesMax) this.spare = whole;
  }

  /** Removes all spans. @returns their number */
  clear(): number {
    const spans = this.waitingSpans + this.spans;
    this.full.length = 0;
    this.waitingSpans = 0;
    this.waitingBytes = 0;
    this.buffer = undefined;
    this.spare = undefined;
    this.length = 0;
    this.spans = 0;
    return spans;
  }

  private close(): void {
    if (this.buffer === undefined || this.spans === 0) return;
    const batch = { octets: this.buffer.subarray(0, this.length), spans: this.spans };
    this.full.push(batch);
    this.waitingSpans += batch.spans;
    this.waitingBytes += batch.octets.length;
    this.buffer = undefined;
    this.length = 0;
    this.spans = 0;
  }
}

const comma = 0x2c;
