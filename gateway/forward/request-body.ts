import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

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

export interface StreamedBody {
  readonly stream: Readable;
  /** Reads the rest into the void, within the same limit: the backend answered without it. */
  discardRest(): void;
  /** Leaves the rest unread, for whoever writes the refusal. */
  letGo(): void;
}

interface StreamedBodyOptions {
  readonly req: IncomingMessage;
  readonly bodyBytesMax: number;
  /** Before the first byte is asked for, which is when a connection to a target stands. */
  readonly beforeRead: () => void;
  readonly onTooLarge: () => void;
}

/**
 * The body as a stream of its own: whoever destroys it (undici does, when an exchange ends early) must not destroy the
 * client's connection with it.
 */
export function streamBody({ req, bodyBytesMax, beforeRead, onTooLarge }: StreamedBodyOptions): StreamedBody {
  let received = 0;
  let reading = false;
  const stream = new Readable({
    read() {
      if (!reading) {
        reading = true;
        beforeRead();
        req.on('data', onData).on('end', onEnd);
      }
      req.resume();
    },
  });

  function onData(chunk: Buffer): void {
    received += chunk.length;
    if (received > bodyBytesMax) {
      letGo();
      onTooLarge();
    } else if (!stream.destroyed && !stream.push(chunk)) req.pause();
  }

  function onEnd(): void {
    if (!stream.destroyed) stream.push(null);
  }

  function letGo(): void {
    req.off('data', onData).off('end', onEnd).pause();
  }

  return {
    stream,
    discardRest() {
      if (!reading) req.on('data', onData);
      reading = true;
      req.resume();
    },
    letGo,
  };
}
