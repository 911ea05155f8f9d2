import { ChunkedBody } from './chunked-body.ts';
import {
  type InterimHead,
  type Malformed,
  malformed,
  parseResponseHead,
  type ResponseHead,
} from './response-head.ts';

/** Who hears of an answer while it is read. */
export interface ResponseListener {
  /** An interim response other than 100, ahead of the answer (RFC 9110 §15.2). */
  onInterim(head: InterimHead): void;
  /** @param wholeBody the body in Latin-1 when all of it came along with the head; otherwise it comes in pieces */
  onHead(head: ResponseHead, wholeBody: string | undefined): void;
  onPiece(piece: Buffer): void;
}

/** What they bound is told in `timeouts-and-sizes.ts`. */
export interface ResponseBounds {
  readonly upstreamHeadersBytesMax: number;
  readonly upstreamFieldsCountMax: number;
  readonly interimResponsesMax: number;
  readonly chunkExtensionsBytesMax: number;
}

/**
 * Where the answer stands after a read. `surplus`: octets came after its end, so that nobody can tell what the
 * connection will say next.
 */
export type Reading = { readonly kind: 'open' | 'complete' | 'surplus' } | Malformed;

/** Reads one answer after the other from a connection's octets, however they are cut into reads. */
export class ResponseReader {
  private readonly bounds: ResponseBounds;
  private readonly listener: ResponseListener;
  private method = '';
  /** The part of a head that has come; `headTail` holds its last octets, in which the end of the head may begin. */
  private headText = '';
  private headTail = '';
  /** Octets of the interim responses before this answer, and how many they were. */
  private interimBytes = 0;
  private interims = 0;
  private head: ResponseHead | undefined;
  /** Of a body with a length, octets still to come. */
  private remaining = 0;
  private chunkedBody: ChunkedBody | undefined;

  constructor(bounds: ResponseBounds, listener: ResponseListener) {
    this.bounds = bounds;
    this.listener = listener;
  }

  /** From now on the answer to a request of this method is read. */
  expect(method: string): void {
    this.method = method;
    this.headText = '';
    this.headTail = '';
    this.interimBytes = 0;
    this.interims = 0;
    this.head = undefined;
    this.chunkedBody = undefined;
  }

  /** @param bytes its first `length` octets are read; valid until it returns, pieces are copies */
  read(bytes: Buffer, length: number): Reading {
    return this.head === undefined
      ? this.readHead(bytes, length)
      : this.readBody(this.head, bytes, 0, length);
  }

  /** The connection ended: whether that ends the answer too. */
  isCompletedByEnd(): boolean {
    return this.head?.framing === 'until_close';
  }

  /** Looks at each octet once: a head that drips octet by octet costs no more than one that comes whole. */
  private readHead(bytes: Buffer, length: number): Reading {
    const piece = bytes.toString('latin1', 0, length);
    const unseen = this.headTail + piece;
    const found = unseen.indexOf(headEnd);
    if (found < 0) return this.awaitRest(piece, unseen);
    const end = this.headText.length - this.headTail.length + found + headEnd.length;
    return this.readHeads(this.headText + piece, end, bytes, length);
  }

  /** @param text begins with a whole head, which ends at `end`; its last octets are the last ones of `bytes` */
  private readHeads(text: string, end: number, bytes: Buffer, length: number): Reading {
    if (this.interimBytes + end - headEnd.length > this.bounds.upstreamHeadersBytesMax) return tooLong;
    const head = parseResponseHead(text.slice(0, end), this.method, this.bounds.upstreamFieldsCountMax);
    const rest = text.slice(end);
    switch (head.kind) {
      case 'malformed':
        return head;
      case 'answer':
        return this.beginBody(head, rest, bytes, length);
      case 'interim': {
        this.interims++;
        if (this.interims > this.bounds.interimResponsesMax) return tooManyInterims;
        this.interimBytes += end;
        this.headText = '';
        this.headTail = '';
        // The gateway forwards no Expect, so that no client waits for a 100.
        if (head.status !== 100) this.listener.onInterim(head);
        const next = rest.indexOf(headEnd);
        if (next < 0) return this.awaitRest(rest, rest);
        return this.readHeads(rest, next + headEnd.length, bytes, length);
      }
    }
  }

  /**
   * What cannot become an answer is refused at once: a peer that speaks another protocol may wait for us in turn.
   *
   * @param unseen `piece` and the octets before it in which something may have begun
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
   * A fault that came in the same read as the head is found before anybody hears of the answer.
   *
   * @param rest what came after the head: the last octets of `bytes`
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

  /** The content of all chunks of a read is one piece: small chunks cost no more than the octets they take. */
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
/** A bare LF, a bare CR, or another control character: no head has one (RFC 9112 §2.2, §5). */
const flaw = /[^\r]\n|\r[^\n]|[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;
const open = { kind: 'open' } as const;
const complete = { kind: 'complete' } as const;
const surplus = { kind: 'surplus' } as const;
const notHttp = malformed('an answer that is not HTTP/1');
const tooLong = malformed('a head beyond the limit');
const tooManyInterims = malformed('more interim responses than there may be');

/** @param octetsAfter how many came after the end of the answer */
function completion(octetsAfter: number): Reading {
  return octetsAfter === 0 ? complete : surplus;
}
