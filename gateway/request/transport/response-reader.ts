import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { ChunkedBody } from './chunked-body.ts';
import { HeadReader } from './head-reader.ts';
import { type InterimHead, type Malformed, parseResponseHead, type ResponseHead } from './response-head.ts';

/** Receives the parts of a response as they are read. */
export interface ResponseListener {
  /** Called with each interim response other than 100 (RFC 9110 §15.2). */
  onInterim(head: InterimHead): void;
  /** @param wholeBody the body in Latin-1 if all of it arrived with the head; undefined when the body follows in pieces */
  onHead(head: ResponseHead, wholeBody: string | undefined): void;
  onPiece(piece: Buffer): void;
}

/**
 * The result of a read. `open`: the response continues. `complete`: the response is complete. `surplus`: unexpected octets follow the
 * complete response, so the connection must not be reused.
 */
export type Reading = { readonly kind: 'open' | 'complete' | 'surplus' } | Malformed;

/** Reads the responses of one connection, one after the other, in pieces of any size. */
export class ResponseReader {
  private readonly bounds: Bounds;
  private readonly listener: ResponseListener;
  private method = '';
  private readonly heads: HeadReader<ResponseHead>;
  private head: ResponseHead | undefined;
  /** For a body with Content-Length, how many of its octets have not arrived yet. */
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

  /** Reads the first `length` octets of the buffer. The caller may overwrite the buffer afterwards, because the handler receives copies. */
  read(bytes: Buffer, length: number): Reading {
    return this.head === undefined
      ? this.readHead(bytes, length)
      : this.readBody(this.head, bytes, 0, length);
  }

  /** Whether the response ends regularly when the target closes the connection. */
  isCompletedByEnd(): boolean {
    return this.head?.framing === 'until_close';
  }

  private readHead(bytes: Buffer, length: number): Reading {
    const head = this.heads.read(bytes.toString('latin1', 0, length));
    if (head === undefined) return open;
    return head.kind === 'final' ? this.beginBody(head, this.heads.rest, bytes, length) : head;
  }

  /**
   * Reads the part of the body that arrived with the head. Chunks in this part are decoded before `onHead` is called, so the client can
   * still get a 502 for a malformed chunk.
   *
   * @param rest the octets after the head; these are the last octets of `bytes`
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

  /** Joins the content of all chunks of a read, so that many small chunks become one write. */
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

/** @param octetsAfter the number of octets after the end of the response */
function completion(octetsAfter: number): Reading {
  return octetsAfter === 0 ? complete : surplus;
}
