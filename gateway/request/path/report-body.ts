import type { IncomingMessage } from 'node:http';
import type { Rejection } from '../../shared/errors.ts';
import type { Shares } from '../../shared/structures/shares.ts';
import type { ClientResponse } from '../respond/client-response.ts';

/** The body of a report, or the reason why it was not read. `client_gone`: the client has closed the connection. */
export type ReadBody =
  | { readonly kind: 'read'; readonly parts: readonly Buffer[] }
  | { readonly kind: 'too_large' | 'no_room' | 'client_gone' }
  | { readonly kind: 'rejected'; readonly rejection: Rejection };

interface BodyToRead {
  readonly req: IncomingMessage;
  readonly res: ClientResponse;
  /** The memory of the body. The caller releases it. */
  readonly memory: BodyMemory;
  readonly bytesMax: number;
  /** Called with each part of the body as it arrives. */
  readonly onPart: (part: Buffer) => void;
}

/** The share of one report in the memory for bodies. */
export class BodyMemory {
  private readonly shares: Shares;
  private readonly holder: string;
  private bytes = 0;

  constructor(shares: Shares, holder: string) {
    this.shares = shares;
    this.holder = holder;
  }

  take(bytes: number): boolean {
    if (!this.shares.take(this.holder, bytes)) return false;
    this.bytes += bytes;
    return true;
  }

  get taken(): number {
    return this.bytes;
  }

  release(): void {
    this.shares.give(this.holder, this.bytes);
    this.bytes = 0;
  }
}

/** Reads a whole body. The listener limits the time in which the body must arrive. The promise never rejects. */
export function readReportBody({ req, res, memory, bytesMax, onPart }: BodyToRead): Promise<ReadBody> {
  const { 'content-length': contentLength, 'transfer-encoding': coding, expect } = req.headers;
  const parts: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<ReadBody>();
  if (res.rejection !== undefined) resolve({ kind: 'rejected', rejection: res.rejection });
  else if (res.destroyed) resolve({ kind: 'client_gone' });
  else if (Number(contentLength ?? 0) > bytesMax) resolve({ kind: 'too_large' });
  // Node emits no events for a request without a body.
  else if (coding === undefined && Number(contentLength ?? 0) === 0) finish();
  else begin();
  return promise;

  function begin(): void {
    res.on('close', leave);
    res.onRejected = refuse;
    if (expect !== undefined) res.writeContinue();
    req.on('data', take).on('end', finish).resume();
  }

  function take(chunk: Buffer): void {
    if (memory.taken + chunk.length > bytesMax) stop({ kind: 'too_large' });
    else if (!memory.take(chunk.length)) stop({ kind: 'no_room' });
    else {
      parts.push(chunk);
      onPart(chunk);
    }
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
    req.off('data', take).off('end', finish);
    res.off('close', leave);
    res.onRejected = undefined;
    // The code that writes the response decides what happens to the rest of the body.
    if (read.kind !== 'read') req.pause();
    resolve(read);
  }
}
