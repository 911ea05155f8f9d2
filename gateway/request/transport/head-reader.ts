import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { headFlaw } from './head-grammar.ts';
import { type InterimHead, type Malformed, malformed } from './response-head.ts';

/**
 * Reads the head of a response that arrives in pieces of any size, and the interim responses before it. Each octet is searched only
 * once, even if the head arrives octet by octet.
 */
export class HeadReader<Final extends { readonly kind: string }> {
  /** The octets after the final head, in Latin-1. */
  rest = '';
  private readonly bounds: Bounds;
  private readonly parse: (text: string) => Final | InterimHead | Malformed;
  private readonly onInterim: (head: InterimHead) => void;
  /** The received part of a head. `tail` is its last three octets, which may be the first part of the empty line. */
  private text = '';
  private tail = '';
  /** The total size of the interim responses before this response. */
  private interimBytes = 0;
  private interims = 0;

  /**
   * @param parse parses a complete head
   * @param onInterim called with each interim response other than 100. No client waits for a target's 100, because the gateway
   *   answers `Expect: 100-continue` itself
   */
  constructor(
    bounds: Bounds,
    parse: (text: string) => Final | InterimHead | Malformed,
    onInterim: (head: InterimHead) => void,
  ) {
    this.bounds = bounds;
    this.parse = parse;
    this.onInterim = onInterim;
  }

  /** Prepares for the next response. */
  reset(): void {
    this.text = '';
    this.tail = '';
    this.rest = '';
    this.interimBytes = 0;
    this.interims = 0;
  }

  /** @returns the final head; the fault when it is malformed; undefined while the head is incomplete */
  read(piece: string): Final | Malformed | undefined {
    const unseen = this.tail + piece;
    const found = unseen.indexOf(headEnd);
    if (found < 0) return this.awaitRest(piece, unseen);
    const end = this.text.length - this.tail.length + found + headEnd.length;
    return this.readHeads(this.text + piece, end);
  }

  /** @param text a whole head, which ends at `end`, and the octets behind it */
  private readHeads(text: string, end: number): Final | Malformed | undefined {
    if (this.interimBytes + end - headEnd.length > this.bounds.upstreamHeadersBytesMax) return tooLong;
    const head = this.parse(text.slice(0, end));
    this.rest = text.slice(end);
    this.text = '';
    this.tail = '';
    if (!isInterim(head)) return head;
    this.interims++;
    if (this.interims > this.bounds.interimResponsesMax) return tooManyInterims;
    this.interimBytes += end;
    if (head.status !== 100) this.onInterim(head);
    const { rest } = this;
    const next = rest.indexOf(headEnd);
    return next < 0 ? this.awaitRest(rest, rest) : this.readHeads(rest, next + headEnd.length);
  }

  /**
   * Stores an incomplete head. Octets that cannot start an HTTP response count as malformed immediately, because a target with another
   * protocol may send nothing more.
   *
   * @param unseen `piece` with the last three octets before it
   */
  private awaitRest(piece: string, unseen: string): Malformed | undefined {
    const isBeginning = this.text.length < protocol.length;
    this.text += piece;
    this.tail = unseen.slice(1 - headEnd.length);
    const { text } = this;
    if (isBeginning && !text.startsWith(protocol) && !protocol.startsWith(text)) return notHttp;
    if (flaw.test(unseen)) return malformed(headFlaw(text));
    return this.interimBytes + text.length > this.bounds.upstreamHeadersBytesMax ? tooLong : undefined;
  }
}

function isInterim(head: { readonly kind: string }): head is InterimHead {
  return head.kind === 'interim';
}

const protocol = 'HTTP/1.';
const headEnd = '\r\n\r\n';
/** Matches octets that a head must not contain: bare LF, bare CR, other control characters (RFC 9112 §2.2, RFC 9110 §5.5). */
const flaw = /[^\r]\n|\r[^\n]|[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;
const notHttp = malformed('a response that is not HTTP/1');
const tooLong = malformed('a head above the limit');
const tooManyInterims = malformed('too many interim responses');
