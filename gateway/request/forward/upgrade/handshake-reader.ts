import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import {
  fieldLine,
  type InterimHead,
  type Malformed,
  malformed,
  parseResponseHead,
  type ResponseHead,
} from '../../transport/response-head.ts';

/** A target's answer to a handshake: incomplete (`open`), a well-formed 101 (`switch`), or another response. */
export type HandshakeHead = { readonly kind: 'open' | 'switch' } | ResponseHead | Malformed;

/** Reads the head of a target's response to a handshake, and the interim responses before it. */
export class HandshakeReader {
  /** `open` until the head is complete. */
  head: HandshakeHead = { kind: 'open' };
  private readonly bounds: Bounds;
  private text = '';
  /** The last three octets of `text`, in which the end of a head may begin. */
  private tail = '';
  /** The index in `text` at which the incomplete head begins, and the number of interim responses before it. */
  private headStart = 0;
  private interims = 0;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
  }

  /**
   * Searches each octet only once, even if the head arrives octet by octet.
   *
   * @returns the interim responses that end in this piece
   */
  read(piece: Buffer): readonly InterimHead[] {
    const interims: InterimHead[] = [];
    const text = piece.toString('latin1');
    const unseen = this.tail + text;
    this.text += text;
    this.tail = unseen.slice(1 - headEnd.length);
    if (this.text.length <= this.bounds.upstreamHeadersBytesMax && !unseen.includes(headEnd)) return interims;
    this.head = this.readHeads(interims);
    // The reader is referenced while the tunnel is open, but its text is no longer needed.
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
  // Three parts are not fields: the status line, and two empty strings behind the last CRLFs.
  if (text.split('\r\n').length - 3 > fieldsCountMax) return malformed('more fields than there may be');
  return { kind: 'switch' } as const;
}

/** HTTP/1.1 only: HTTP/1.0 defines no 1xx (RFC 9110 §15.2). */
const switchForm = new RegExp(
  `^HTTP/1\\.1 101(?: [\\t\\x20-\\x7e\\x80-\\xff]*)?\\r\\n(?:${fieldLine.source})*\\r\\n$`,
);

/**
 * A 1xx has neither field (RFC 9110 §8.6, RFC 9112 §6.1). A client that trusts one would take the beginning of the tunnel for a
 * body.
 */
const framingField = /\r\n(?:content-length|transfer-encoding):/i;

const headEnd = '\r\n\r\n';
