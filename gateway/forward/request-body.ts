import type { IncomingMessage } from 'node:http';
import type { Shares } from '../shares.ts';
import type { BodySink, StreamedBody } from '../transport/target-request.ts';

/** Who hears of a body; at most one of the two that end it. */
export interface BodyListener {
  /**
   * All of it is here, or as much as is collected: the rest is read when it is started.
   *
   * @param whole undefined when it is to be streamed
   */
  onReady(whole: Buffer | undefined): void;
  /** It went beyond `bodyBytesMax`; no more is read. */
  onTooLarge(): void;
  /** Its key holds its share of what may be collected; no more is read. */
  onNoRoom(): void;
}

interface RequestBodyOptions {
  readonly req: IncomingMessage;
  /** Undefined when only its end tells. */
  readonly contentLength: number | undefined;
  readonly bodyBytesMax: number;
  readonly collectedBytesMax: number;
  /** The octets that all bodies of this process may be collected to. */
  readonly collected: Shares;
  readonly holder: string;
  readonly listener: BodyListener;
}

/**
 * A client's body on its way to a target. It is collected first, so that a slow client holds no connection to a target and
 * a failed connect can be tried again; a large one flows on from there, at the pace of the slower of the two sides.
 */
export class RequestBody implements StreamedBody {
  /** Octets received. */
  received = 0;
  private readonly options: RequestBodyOptions;
  private readonly onData = (chunk: Buffer) => this.take(chunk);
  private readonly onEnd = () => this.finish();
  /** What was collected and is not sent yet. */
  private chunks: Buffer[] = [];
  private collectedBytes = 0;
  private state: 'collecting' | 'ready' | 'flowing' | 'discarding' | 'left' = 'collecting';
  private sink: BodySink | undefined;

  constructor(options: RequestBodyOptions) {
    this.options = options;
  }

  /** Begins to collect. */
  read(): void {
    this.options.req.on('data', this.onData).on('end', this.onEnd).resume();
  }

  /** Whether the next octets are the client's to send. */
  isAwaited(): boolean {
    const { req } = this.options;
    return (this.state === 'collecting' || this.state === 'flowing') && !req.complete && !req.isPaused();
  }

  start(sink: BodySink): void {
    this.sink = sink;
    this.state = 'flowing';
    let hasRoom = true;
    for (const chunk of this.chunks) hasRoom = sink.write(chunk);
    this.release();
    if (hasRoom) this.options.req.resume();
  }

  resume(): void {
    this.options.req.resume();
  }

  /** Reads the rest into the void, within the same limit: the backend answered without it. */
  discardRest(): void {
    this.state = 'discarding';
    this.sink = undefined;
    this.options.req.resume();
  }

  /** Leaves the rest unread, for whoever writes the refusal. */
  leave(): void {
    this.state = 'left';
    this.options.req.off('data', this.onData).off('end', this.onEnd).pause();
  }

  /** Gives the memory of what was collected back. */
  release(): void {
    this.options.collected.give(this.options.holder, this.collectedBytes);
    this.collectedBytes = 0;
    this.chunks = [];
  }

  private take(chunk: Buffer): void {
    const { req, bodyBytesMax, listener } = this.options;
    this.received += chunk.length;
    if (this.received > bodyBytesMax) {
      this.leave();
      listener.onTooLarge();
    } else if (this.state === 'collecting') {
      this.collect(chunk);
    } else if (this.sink?.write(chunk) === false) req.pause();
  }

  private collect(chunk: Buffer): void {
    const { req, contentLength, collectedBytesMax, collected, holder, listener } = this.options;
    if (!collected.take(holder, chunk.length)) {
      this.leave();
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
