import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { ChunkedBody } from './chunked-body.ts';
import { HeadReader } from './head-reader.ts';
import { type InterimHead, type Malformed, parseResponseHead, type ResponseHead } from './response-head.ts';

/** Receives the parts of a response while it is read. */
export interface ResponseListener {
  /** An interim response other than 100 (RFC 9110 §15.2). */
  onInterim(head: InterimHead): void;
  /** @param wholeBody the body in Latin-1 if all of it arrived with the head; undefined when pieces follow */
  onHead(head: ResponseHead, wholeBody: string | undefined): void;
  onPiece(piece: Buffer): void;
}

/**
 * The result of a read: the response continues (`open`), is `complete`, or is complete and followed by unexpected octets
 * (`surplus`). The connection cannot be trusted after these.
 */
export type Reading = { readonly kind: 'open' | 'complete' | 'surplus' } | Malformed;

/** Reads the responses of one connection, one after the other, in pieces of any size. */
export class ResponseReader {
  private readonly bounds: Bounds;
  private readonly listener: ResponseListener;
  private method = '';
  private readonly heads: HeadReader<ResponseHead>;
  private head: ResponseHead | undefined;
  /** Octets of a body with a Content-Length that are still missing. */
  private remaining = 0;
  private chunkedBody: ChunkedBody | undefined;

  constructor(bounds: Bounds, listener: ResponseListener) {
    this.bounds = bounds;
    this.listener = listener;
    this.heads = new HeadReader(
      bounds,
      (text) => parseResponseHead(text, this.method, bounds.upstreamFieldsCountMax),
      (head) => listener.onInterim(head),
    );
  }

  /** Prepares for the response to a request with this method. */
  expect(method: string): void {
    this.method = method;
    this.heads.reset();
    this.head = undefined;
    this.chunkedBody = undefined;
  }

  /** Reads the first `length` octets. The caller may then overwrite the buffer, because pieces are copies. */
  read(bytes: Buffer, length: number): Reading {
    return this.head === undefined
      ? this.readHead(bytes, length)
      : this.readBody(this.head, bytes, 0, length);
  }

  /** Whether the end of the connection is also the regular end of the response. */
  isCompletedByEnd(): boolean {
    return this.head?.framing === 'until_close';
  }

  private readHead(bytes: Buffer, length: number): Reading {
    const head = this.heads.read(bytes.toString('latin1', 0, length));
    if (head === undefined) return open;
    return head.kind === 'final' ? this.beginBody(head, this.heads.rest, bytes, length) : head;
  }

  /**
   * Decodes the received part of a chunked body before it calls `onHead`. If that part is malformed, the client can still get 502.
   *
   * @param rest the octets behind the head, which are the last octets of `bytes`
   */
  private beginBody(head: ResponseHead, rest: string, bytes: Buffer, length: number): Reading {
    this.head = head;
    const { framing, contentLength } = head;
    if (framing === 'chunked') return this.beginChunks(head, bytes, length - rest.length, length);
    if (framing !== 'until_close' && rest.length >= contentLength) {
      this.listener.onHead(head, rest.length === contentLength ? rest : rest.slice(0, contentLength));
      return completion(rest.length - contentLength);
    }
    this.remaining = contentLength;
    this.listener.onHead(head, undefined);
    return this.readBody(head, bytes, length - rest.length, length);
  }

  private beginChunks(head: ResponseHead, bytes: Buffer, from: number, to: number): Reading {
    const body = new ChunkedBody(this.bounds);
    const content: Buffer[] = [];
    const end = body.read(bytes, from, to, content);
    if (typeof end === 'object') return end;
    this.chunkedBody = body;
    const piece = Buffer.concat(content);
    if (end !== undefined) {
      this.listener.onHead(head, piece.toString('latin1'));
      return completion(to - end);
    }
    this.listener.onHead(head, undefined);
    if (piece.length > 0) this.listener.onPiece(piece);
    return open;
  }

  private readBody(head: ResponseHead, bytes: Buffer, from: number, to: number): Reading {
    if (from === to) return open;
    if (this.chunkedBody !== undefined) return this.readChunks(this.chunkedBody, bytes, to);
    if (head.framing === 'until_close') {
      this.listener.onPiece(Buffer.from(bytes.subarray(from, to)));
      return open;
    }
    const end = Math.min(to, from + this.remaining);
    this.remaining -= end - from;
    this.listener.onPiece(Buffer.from(bytes.subarray(from, end)));
    return this.remaining > 0 ? open : completion(to - end);
  }

  /** Joins the content of all chunks of a read, so that many small chunks are one write. */
  private readChunks(body: ChunkedBody, bytes: Buffer, to: number): Reading {
    const content: Buffer[] = [];
    const end = body.read(bytes, 0, to, content);
    if (content.length > 0) this.listener.onPiece(Buffer.concat(content));
    if (typeof end === 'object') return end;
    return end === undefined ? open : completion(to - end);
  }
}

const open = { kind: 'open' } as const;
const complete = { kind: 'complete' } as const;
const surplus = { kind: 'surplus' } as const;

/** @param octetsAfter the number of octets behind the end of the response */
function completion(octetsAfter: number): Reading {
  return octetsAfter === 0 ? complete : surplus;
}
