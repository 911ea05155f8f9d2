import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { ChunkedBody } from './chunked-body.ts';
import {
  type InterimHead,
  type Malformed,
  malformed,
  parseResponseHead,
  type ResponseHead,
} from './response-head.ts';

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
  /** The received part of a head. `headTail` has its last three octets, in which the end of the head may begin. */
  private headText = '';
  private headTail = '';
  /** Size and number of the interim responses before this response. */
  private interimBytes = 0;
  private interims = 0;
  private head: ResponseHead | undefined;
  /** Octets of a body with a Content-Length that are still missing. */
  private remaining = 0;
  private chunkedBody: ChunkedBody | undefined;

  constructor(bounds: Bounds, listener: ResponseListener) {
    this.bounds = bounds;
    this.listener = listener;
  }

  /** Prepares for the response to a request with this method. */
  expect(method: string): void {
    this.method = method;
    this.headText = '';
    this.headTail = '';
    this.interimBytes = 0;
    this.interims = 0;
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

  /** Searches each octet only once, even if the head arrives octet by octet. */
  private readHead(bytes: Buffer, length: number): Reading {
    const piece = bytes.toString('latin1', 0, length);
    const unseen = this.headTail + piece;
    const found = unseen.indexOf(headEnd);
    if (found < 0) return this.awaitRest(piece, unseen);
    const end = this.headText.length - this.headTail.length + found + headEnd.length;
    return this.readHeads(this.headText + piece, end, bytes, length);
  }

  /** @param text a whole head, which ends at `end`, and the octets behind it up to the end of `bytes` */
  private readHeads(text: string, end: number, bytes: Buffer, length: number): Reading {
    if (this.interimBytes + end - headEnd.length > this.bounds.upstreamHeadersBytesMax) return tooLong;
    const head = parseResponseHead(text.slice(0, end), this.method, this.bounds.upstreamFieldsCountMax);
    const rest = text.slice(end);
    switch (head.kind) {
      case 'malformed':
        return head;
      case 'final':
        return this.beginBody(head, rest, bytes, length);
      case 'interim': {
        this.interims++;
        if (this.interims > this.bounds.interimResponsesMax) return tooManyInterims;
        this.interimBytes += end;
        this.headText = '';
        this.headTail = '';
        // No client waits for a target's 100, because the gateway answers `Expect: 100-continue` itself.
        if (head.status !== 100) this.listener.onInterim(head);
        const next = rest.indexOf(headEnd);
        if (next < 0) return this.awaitRest(rest, rest);
        return this.readHeads(rest, next + headEnd.length, bytes, length);
      }
    }
  }

  /**
   * The head continues. Octets with which no response can begin are malformed at once, because a target of another protocol may
   * wait for our octets and send no more.
   *
   * @param unseen `piece` with the last three octets before it
   */
  private awaitRest(piece: string, unseen: string): Reading {
    if (flaw.test(unseen)) return notHttp;
    const isBeginning = this.headText.length < protocol.length;
    this.headText += piece;
    this.headTail = unseen.slice(1 - headEnd.length);
    const { headText } = this;
    if (isBeginning && !headText.startsWith(protocol) && !protocol.startsWith(headText)) return notHttp;
    const bytes = this.interimBytes + headText.length;
    return bytes > this.bounds.upstreamHeadersBytesMax ? tooLong : open;
  }

  /**
   * Decodes the received part of a chunked body before it calls `onHead`. If that part is malformed, the client can still get 502.
   *
   * @param rest the octets behind the head, which are the last octets of `bytes`
   */
  private beginBody(head: ResponseHead, rest: string, bytes: Buffer, length: number): Reading {
    this.head = head;
    this.headText = '';
    this.headTail = '';
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

const protocol = 'HTTP/1.';
const headEnd = '\r\n\r\n';
/** A bare LF, a bare CR or another control character, which a head must not contain (RFC 9112 §2.2, RFC 9110 §5.5). */
const flaw = /[^\r]\n|\r[^\n]|[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;
const open = { kind: 'open' } as const;
const complete = { kind: 'complete' } as const;
const surplus = { kind: 'surplus' } as const;
const notHttp = malformed('a response that is not HTTP/1');
const tooLong = malformed('a head beyond the limit');
const tooManyInterims = malformed('more interim responses than there may be');

/** @param octetsAfter the number of octets behind the end of the response */
function completion(octetsAfter: number): Reading {
  return octetsAfter === 0 ? complete : surplus;
}
