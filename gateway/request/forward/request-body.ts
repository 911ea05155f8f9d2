import type { IncomingMessage } from 'node:http';
import type { Shares } from '../../shared/structures/shares.ts';
import type { BodySink, StreamedBody } from '../transport/target-request.ts';

/** Receives the outcome of collecting a body in one of these calls. `onTooLarge` may also follow `onReady`. */
export interface BodyListener {
  /**
   * The body is collected, whole or up to `collectedBytesMax`. The rest is read while the body is sent.
   *
   * @param whole undefined when the body is to be streamed
   */
  onReady(whole: Buffer | undefined): void;
  /** The body is longer than `bodyBytesMax`. No more is read. */
  onTooLarge(): void;
  /** The key has used up its share of the memory for collected bodies. No more is read. */
  onNoRoom(): void;
}

interface RequestBodyOptions {
  readonly req: IncomingMessage;
  /** Undefined for a chunked body. */
  readonly contentLength: number | undefined;
  readonly bodyBytesMax: number;
  readonly collectedBytesMax: number;
  /** The memory of this process for collected bodies, shared among holders. */
  readonly collected: Shares;
  readonly holder: string;
  readonly listener: BodyListener;
}

/**
 * The body of a request on its way from the client to a target. It is collected first, so that a slow client takes no connection to a
 * target, and a failed attempt can be retried. A body longer than `collectedBytesMax` is then streamed, at the pace of the slower
 * side.
 */
export class RequestBody implements StreamedBody {
  /** Octets received so far. */
  received = 0;
  private readonly options: RequestBodyOptions;
  private readonly onData = (chunk: Buffer) => this.take(chunk);
  private readonly onEnd = () => this.finish();
  /** Collected and not sent yet. */
  private chunks: Buffer[] = [];
  private collectedBytes = 0;
  private state: 'collecting' | 'ready' | 'streaming' | 'discarding' | 'stopped' = 'collecting';
  private sink: BodySink | undefined;

  constructor(options: RequestBodyOptions) {
    this.options = options;
  }

  collect(): void {
    this.options.req.on('data', this.onData).on('end', this.onEnd).resume();
  }

  /** Whether the gateway waits for the client to send more of the body. */
  isAwaited(): boolean {
    const { req } = this.options;
    return (this.state === 'collecting' || this.state === 'streaming') && !req.complete && !req.isPaused();
  }

  start(sink: BodySink): void {
    this.sink = sink;
    this.state = 'streaming';
    let hasRoom = true;
    for (const chunk of this.chunks) hasRoom = sink.write(chunk);
    this.release();
    // Node may have reported the end before: it does so as soon as the whole body is read, even while reading is paused.
    if (this.options.req.readableEnded) sink.end();
    else if (hasRoom) this.options.req.resume();
  }

  resume(): void {
    this.options.req.resume();
  }

  /** Reads and drops the rest, up to `bodyBytesMax`, because the target answered without it. */
  discardRest(): void {
    this.state = 'discarding';
    this.sink = undefined;
    this.options.req.resume();
  }

  /** Leaves the rest unread. The writer of the refusal decides about it. */
  stopReading(): void {
    this.state = 'stopped';
    this.options.req.off('data', this.onData).off('end', this.onEnd).pause();
  }

  /** Frees the memory of the collected part. */
  release(): void {
    this.options.collected.give(this.options.holder, this.collectedBytes);
    this.collectedBytes = 0;
    this.chunks = [];
  }

  private take(chunk: Buffer): void {
    const { req, bodyBytesMax, listener } = this.options;
    this.received += chunk.length;
    if (this.received > bodyBytesMax) {
      this.stopReading();
      listener.onTooLarge();
    } else if (this.state === 'collecting') {
      this.keep(chunk);
    } else if (this.sink?.write(chunk) === false) req.pause();
  }

  private keep(chunk: Buffer): void {
    const { req, contentLength, collectedBytesMax, collected, holder, listener } = this.options;
    if (!collected.take(holder, chunk.length)) {
      this.stopReading();
      listener.onNoRoom();
      return;
    }
    this.collectedBytes += chunk.length;
    this.chunks.push(chunk);
    if (this.received === contentLength) {
      this.finish();
    } else if (this.received >= collectedBytesMax) {
      this.state = 'ready';
      req.pause();
      listener.onReady(undefined);
    }
  }

  private finish(): void {
    if (this.state === 'collecting') {
      this.state = 'ready';
      const [first, ...more] = this.chunks;
      this.options.listener.onReady(
        first !== undefined && more.length === 0 ? first : Buffer.concat(this.chunks),
      );
    } else this.sink?.end();
  }
}
