import { type AnswerHead, type Malformed, malformed, parseAnswerHead } from './answer-head.ts';
import { ChunkedBody } from './chunked-body.ts';

/** Who hears of an answer while it is read. */
export interface AnswerListener {
  /** @param wholeBody the body in Latin-1 when all of it came along with the head; otherwise it comes in pieces */
  onHead(head: AnswerHead, wholeBody: string | undefined): void;
  onPiece(piece: Buffer): void;
}

/**
 * Where the answer stands after a read. `surplus`: octets came after its end, so that nobody can tell what the
 * connection will say next.
 */
export type Reading = { readonly kind: 'open' | 'complete' | 'surplus' } | Malformed;

/** Reads one answer after the other from a connection's octets, however they are cut into reads. */
export class AnswerReader {
  private readonly headBytesMax: number;
  private readonly listener: AnswerListener;
  private method = '';
  /** What came of a head that is not complete. */
  private headText = '';
  private head: AnswerHead | undefined;
  /** Of a body with a length, octets still to come. */
  private remaining = 0;
  private chunkedBody: ChunkedBody | undefined;

  constructor(headBytesMax: number, listener: AnswerListener) {
    this.headBytesMax = headBytesMax;
    this.listener = listener;
  }

  /** From now on the answer to a request of this method is read. */
  expect(method: string): void {
    this.method = method;
    this.headText = '';
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

  private readHead(bytes: Buffer, length: number): Reading {
    let text = this.headText + bytes.toString('latin1', 0, length);
    for (;;) {
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return this.awaitRest(text);
      if (end > this.headBytesMax) return tooLong;
      const head = parseAnswerHead(text.slice(0, end + 4), this.method);
      switch (head.kind) {
        case 'malformed':
          return head;
        case 'interim':
          text = text.slice(end + 4);
          continue;
        case 'answer':
          return this.beginBody(head, text.slice(end + 4), bytes, length);
      }
    }
  }

  /** What can be no answer is refused at once: a peer that speaks something else may wait for us in turn. */
  private awaitRest(text: string): Reading {
    this.headText = text;
    const mayBeHttp = text.startsWith(protocol) || protocol.startsWith(text);
    if (!mayBeHttp || bareLineFeed.test(text)) return malformed('an answer that is not HTTP/1');
    return text.length > this.headBytesMax ? tooLong : open;
  }

  /** @param rest what came after the head: the last octets of `bytes` */
  private beginBody(head: AnswerHead, rest: string, bytes: Buffer, length: number): Reading {
    this.head = head;
    this.headText = '';
    const { framing, contentLength } = head;
    if ((framing === 'none' || framing === 'length') && rest.length >= contentLength) {
      this.listener.onHead(head, rest.length === contentLength ? rest : rest.slice(0, contentLength));
      return rest.length === contentLength ? complete : surplus;
    }
    this.remaining = contentLength;
    if (framing === 'chunked') this.chunkedBody = new ChunkedBody(this.headBytesMax);
    this.listener.onHead(head, undefined);
    return this.readBody(head, bytes, length - rest.length, length);
  }

  private readBody(head: AnswerHead, bytes: Buffer, from: number, to: number): Reading {
    if (from === to) return open;
    if (this.chunkedBody !== undefined) return this.readChunks(this.chunkedBody, bytes, from, to);
    if (head.framing === 'until_close') {
      this.listener.onPiece(Buffer.from(bytes.subarray(from, to)));
      return open;
    }
    const end = Math.min(to, from + this.remaining);
    this.remaining -= end - from;
    this.listener.onPiece(Buffer.from(bytes.subarray(from, end)));
    return completion(this.remaining > 0 ? -1 : to - end);
  }

  /** The content of all chunks of a read is one piece: small chunks cost no more than the octets they take. */
  private readChunks(body: ChunkedBody, bytes: Buffer, from: number, to: number): Reading {
    const content: Buffer[] = [];
    const end = body.read(bytes, from, to, content);
    if (content.length > 0) this.listener.onPiece(Buffer.concat(content));
    if (typeof end === 'object') return end;
    return completion(end === undefined ? -1 : to - end);
  }
}

const protocol = 'HTTP/1.';
const bareLineFeed = /(?<!\r)\n/;
const open = { kind: 'open' } as const;
const complete = { kind: 'complete' } as const;
const surplus = { kind: 'surplus' } as const;
const tooLong = malformed('a head beyond the limit');

/** @param octetsAfter how many came after the end; less than none when it has not ended */
function completion(octetsAfter: number): Reading {
  if (octetsAfter < 0) return open;
  return octetsAfter === 0 ? complete : surplus;
}
