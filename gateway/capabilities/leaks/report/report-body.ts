import type { IncomingMessage } from 'node:http';
import type { ClientResponse } from '../../../request/respond/client-response.ts';
import type { Rejection } from '../../../shared/errors.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { ReportPlace } from './report-room.ts';

/** The body of a report, or the reason why it was not read. `client_gone`: the client has closed the connection. */
export type ReadBody =
  | { readonly kind: 'read'; readonly parts: readonly Buffer[] }
  | { readonly kind: 'too_large' | 'no_room' | 'client_gone' }
  | { readonly kind: 'rejected'; readonly rejection: Rejection };

interface BodyToRead {
  readonly req: IncomingMessage;
  readonly res: ClientResponse;
  /** The memory of the body. The caller gives it back. */
  readonly place: ReportPlace;
  readonly bounds: Pick<Bounds, 'leakReportBytesMax' | 'leakRoomWaitMs' | 'leakRoomTriedMs'>;
  /** Called with each part of the body as it arrives. */
  readonly onPart: (part: Buffer) => void;
}

/**
 * Reads a whole body. The listener limits the time in which the body must arrive. While there is no room for the next part, the body is not
 * read. The promise never rejects.
 */
export function readReportBody({ req, res, place, bounds, onPart }: BodyToRead): Promise<ReadBody> {
  const { leakReportBytesMax: bytesMax, leakRoomWaitMs, leakRoomTriedMs } = bounds;
  const { 'content-length': contentLength, 'transfer-encoding': coding, expect } = req.headers;
  const parts: Buffer[] = [];
  let waiting: NodeJS.Timeout | undefined;
  const { promise, resolve } = Promise.withResolvers<ReadBody>();
  if (res.rejection !== undefined) resolve({ kind: 'rejected', rejection: res.rejection });
  else if (res.destroyed) resolve({ kind: 'client_gone' });
  else if (Number(contentLength ?? 0) > bytesMax) resolve({ kind: 'too_large' });
  // Node emits no events for a request without a body.
  else if (coding === undefined && Number(contentLength ?? 0) === 0) finish();
  else begin();
  return promise;

  function begin(): void {
    place.begin(lose);
    res.on('close', leave);
    res.onRejected = refuse;
    if (expect !== undefined) res.writeContinue();
    req.on('data', take).on('end', finish).resume();
  }

  function take(chunk: Buffer): void {
    if (place.bytes + chunk.length > bytesMax) stop({ kind: 'too_large' });
    else if (!add(chunk)) wait(chunk);
  }

  function add(chunk: Buffer): boolean {
    if (!place.take(chunk.length)) return false;
    parts.push(chunk);
    onPart(chunk);
    return true;
  }

  /** Stops reading until there is room for the part. */
  function wait(chunk: Buffer): void {
    req.pause();
    const untilMs = performance.now() + leakRoomWaitMs;
    waiting = setInterval(() => {
      if (add(chunk)) {
        clearInterval(waiting);
        req.resume();
      } else if (performance.now() > untilMs) lose();
    }, leakRoomTriedMs);
  }

  function lose(): void {
    stop({ kind: 'no_room' });
  }

  function finish(): void {
    stop({ kind: 'read', parts });
  }

  function leave(): void {
    stop({ kind: 'client_gone' });
  }

  function refuse(): void {
    stop(
      res.rejection === undefined ? { kind: 'client_gone' } : { kind: 'rejected', rejection: res.rejection },
    );
  }

  function stop(read: ReadBody): void {
    clearInterval(waiting);
    place.end();
    req.off('data', take).off('end', finish);
    res.off('close', leave);
    res.onRejected = undefined;
    // The code that writes the response decides what happens to the rest of the body.
    if (read.kind !== 'read') req.pause();
    resolve(read);
  }
}
