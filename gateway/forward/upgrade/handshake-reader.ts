import {
  fieldLine,
  type InterimHead,
  type Malformed,
  malformed,
  parseResponseHead,
  type ResponseHead,
} from '../../transport/response-head.ts';
import type { Bounds } from '../upstream/targets.ts';

/** `open`: not complete yet; `switch`: a well-formed 101. */
export type HandshakeHead = { readonly kind: 'open' | 'switch' } | ResponseHead | Malformed;

/** Reads the target's octets up to the end of its answer's head, interim responses before it included. */
export class HandshakeReader {
  /** `open` until the head is complete. */
  head: HandshakeHead = { kind: 'open' };
  private readonly bounds: Bounds;
  private text = '';
  /** The last octets of it, in which the end of a head may begin. */
  private tail = '';
  /** Where the head begins that is not complete yet, and how many interim responses came before it. */
  private headStart = 0;
  private interims = 0;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
  }

  /**
   * Looks at each octet once while no head ends: one that drips costs no more than one that comes whole.
   *
   * @returns the interim responses that ended in this piece
   */
  read(piece: Buffer): readonly InterimHead[] {
    const interims: InterimHead[] = [];
    const text = piece.toString('latin1');
    const unseen = this.tail + text;
    this.text += text;
    this.tail = unseen.slice(1 - headEnd.length);
    if (this.text.length <= this.bounds.upstreamHeadersBytesMax && !unseen.includes(headEnd)) return interims;
    this.head = this.readHeads(interims);
    // The client's socket holds the reader for as long as the tunnel is open.
    if (this.head.kind !== 'open') this.text = '';
    return interims;
  }

  private readHeads(interims: InterimHead[]): HandshakeHead {
    for (;;) {
      const found = this.text.indexOf(headEnd, this.headStart);
      const end = found < 0 ? this.text.length : found + headEnd.length;
      if (end > this.bounds.upstreamHeadersBytesMax) return malformed('a head beyond the limit');
      if (found < 0) return { kind: 'open' };
      const head = parseHead(this.text.slice(this.headStart, end), this.bounds.upstreamFieldsCountMax);
      if (head.kind !== 'interim') return head;
      interims.push(head);
      this.interims++;
      if (this.interims > this.bounds.interimResponsesMax) return malformed('too many interim responses');
      this.headStart = end;
    }
  }
}

function parseHead(text: string, fieldsCountMax: number) {
  if (!switchForm.test(text)) return parseResponseHead(text, 'GET', fieldsCountMax);
  if (framingField.test(text)) return malformed('a switch with a length or a transfer coding');
  // Three of the parts are no fields: the status line, and two empty ones behind the last fields.
  if (text.split('\r\n').length - 3 > fieldsCountMax) return malformed('more fields than there may be');
  return { kind: 'switch' } as const;
}

/** HTTP/1.0 has no 1xx (RFC 9110 §15.2). */
const switchForm = new RegExp(
  `^HTTP/1\\.1 101(?: [\\t\\x20-\\x7e\\x80-\\xff]*)?\\r\\n(?:${fieldLine.source})*\\r\\n$`,
);

/** Neither may come with 1xx (RFC 9110 §8.6, RFC 9112 §6.1): a client that obeyed it would take a part of the tunnel for a body. */
const framingField = /\r\n(?:content-length|transfer-encoding):/i;

const headEnd = '\r\n\r\n';
