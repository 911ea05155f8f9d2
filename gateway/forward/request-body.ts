import type { IncomingMessage } from 'node:http';
import type { BodySink, StreamedBody } from '../transport/target-request.ts';

/**
 * Reads a whole small body, so that a slow client holds no connection to a target and a failed connect can be retried.
 *
 * @param contentLength what the client announced; Node's parser lets no more through
 */
export function collectBody(
  req: IncomingMessage,
  contentLength: number,
  onCollected: (body: Buffer) => void,
): void {
  const chunks: Buffer[] = [];
  let received = 0;
  req.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    received += chunk.length;
    if (received === contentLength) onCollected(chunks.length === 1 ? chunk : Buffer.concat(chunks));
  });
}

interface ClientBodyOptions {
  readonly req: IncomingMessage;
  readonly bodyBytesMax: number;
  /** Before the first byte is asked for, which is when a connection to a target stands. */
  readonly beforeRead: () => void;
  readonly onTooLarge: () => void;
}

/** A client's body on its way to a target, at the pace of the slower of the two. */
export class ClientBody implements StreamedBody {
  private readonly options: ClientBodyOptions;
  private readonly onData = (chunk: Buffer) => this.take(chunk);
  private readonly onEnd = () => this.sink?.end();
  private sink: BodySink | undefined;
  private isReading = false;
  private received = 0;

  constructor(options: ClientBodyOptions) {
    this.options = options;
  }

  start(sink: BodySink): void {
    this.sink = sink;
    this.options.beforeRead();
    this.read();
  }

  resume(): void {
    this.options.req.resume();
  }

  /** Reads the rest into the void, within the same limit: the backend answered without it. */
  discardRest(): void {
    this.sink = undefined;
    if (this.isReading) this.resume();
    else this.read();
  }

  /** Leaves the rest unread, for whoever writes the refusal. */
  letGo(): void {
    this.options.req.off('data', this.onData).off('end', this.onEnd).pause();
  }

  private read(): void {
    this.isReading = true;
    this.options.req.on('data', this.onData).on('end', this.onEnd).resume();
  }

  private take(chunk: Buffer): void {
    const { req, bodyBytesMax, onTooLarge } = this.options;
    this.received += chunk.length;
    if (this.received > bodyBytesMax) {
      this.letGo();
      onTooLarge();
    } else if (this.sink?.write(chunk) === false) req.pause();
  }
}
