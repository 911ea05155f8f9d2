import type { IncomingMessage } from 'node:http';
import type { Shares } from '../../shared/structures/shares.ts';
import type { BodySink, StreamedBody } from '../transport/target-request.ts';

/** Only one of these functions is called, except that `onTooLarge` may follow `onReady`. */
export interface BodyListener {
  /**
   * Called when the whole body, or its first `collectedBytesMax` octets, are buffered. The gateway reads the rest of a larger body while it
   * sends the body to the target.
   *
   * @param whole undefined when the body is larger and must be streamed
   */
  onReady(whole: Buffer | undefined): void;
  /** Called when the body is longer than `bodyBytesMax`. The rest of the body is not read. */
  onTooLarge(): void;
  /** Called when the key has used up its share of the memory for bodies. The rest of the body is not read. */
  onNoRoom(): void;
}

interface RequestBodyOptions {
  readonly req: IncomingMessage;
  /** The length of the body; undefined for a chunked body. */
  readonly contentLength: number | undefined;
  readonly bodyBytesMax: number;
  readonly collectedBytesMax: number;
  /** The memory of this process for buffered bodies. Keys share this memory. */
  readonly collected: Shares;
  readonly holder: string;
  readonly listener: BodyListener;
}

/**
 * The body of a request. The gateway buffers the body before it takes a connection to a target. A slow client therefore occupies no
 * connection, and a failed attempt can be retried. If a body is longer than `collectedBytesMax`, its rest is streamed with backpressure.
 */
export class RequestBody implements StreamedBody {
  /** Octets received so far. */
  received = 0;
  private readonly options: RequestBodyOptions;
  private readonly onData = (chunk: Buffer) => this.take(chunk);
  private readonly onEnd = () => this.finish();
  /** The buffered part of the body that is not sent yet. */
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
    // Node may already have emitted `end`, because Node emits it even while reading is paused.
    if (this.options.req.readableEnded) sink.end();
    else if (hasRoom) this.options.req.resume();
  }

  resume(): void {
    this.options.req.resume();
  }

  /** Called when the target has responded before it read the whole body. Reads and drops the rest of the body, up to `bodyBytesMax`. */
  discardRest(): void {
    this.state = 'discarding';
    this.sink = undefined;
    this.options.req.resume();
  }

  /** Stops reading the body. The code that writes the error response decides what happens to the rest of the body. */
  stopReading(): void {
    this.state = 'stopped';
    this.options.req.off('data', this.onData).off('end', this.onEnd).pause();
  }

  /** Releases the memory of the buffered part of the body. */
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
