import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { fieldFlaw, fieldLine } from './head-grammar.ts';
import { type Malformed, malformed } from './response-head.ts';

/** Decodes a chunked body (RFC 9112 §7.1) that arrives in pieces of any size. Checks and drops chunk extensions and trailers. */
export class ChunkedBody {
  private readonly bounds: Bounds;
  /** The maximum length of an incomplete line. `bounds` limits the total length of complete lines. */
  private readonly lineLengthMax: number;
  /** The kind of the next octets. `content_end` is the CRLF after a chunk. */
  private expected: 'size' | 'content' | 'content_end' | 'trailers' = 'size';
  /** How many octets of the current chunk have not arrived yet. */
  private remaining = 0;
  /** The beginning of an incomplete line. */
  private line = '';
  /** The total length of all chunk extensions so far. */
  private extensionsLength = 0;
  private trailersLength = 0;
  private trailersCount = 0;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
    this.lineLengthMax =
      sizeLineLengthMax + Math.max(bounds.chunkExtensionsBytesMax, bounds.upstreamHeadersBytesMax);
  }

  /**
   * @param content receives the parts of `bytes` that are content
   * @returns the index after the body's end; undefined when the body continues; the fault when the body is malformed
   */
  read(bytes: Buffer, from: number, to: number, content: Buffer[]): number | Malformed | undefined {
    let at = from;
    while (at < to) {
      if (this.expected === 'content') {
        const end = Math.min(to, at + this.remaining);
        content.push(bytes.subarray(at, end));
        this.remaining -= end - at;
        if (this.remaining === 0) this.expected = 'content_end';
        at = end;
        continue;
      }
      const newline = bytes.subarray(at, to).indexOf(0x0a);
      const stop = newline < 0 ? to : at + newline + 1;
      this.line += bytes.toString('latin1', at, stop);
      at = stop;
      if (this.line.length > this.lineLengthMax) return tooMuch;
      if (newline < 0) return undefined;
      const { line } = this;
      this.line = '';
      const flaw = this.readLine(line);
      if (flaw !== undefined) return flaw;
      if (this.expected === 'trailers' && line === '\r\n') return at;
    }
    return undefined;
  }

  private readLine(line: string): Malformed | undefined {
    switch (this.expected) {
      case 'size': {
        const [, digits = '', extensions = ''] = sizeForm.exec(line) ?? [];
        this.extensionsLength += extensions.length;
        if (this.extensionsLength > this.bounds.chunkExtensionsBytesMax) return tooMuch;
        const size = digits === '' ? Number.NaN : Number.parseInt(digits, 16);
        if (!Number.isSafeInteger(size)) return malformed('a chunk size that is not a number');
        this.remaining = size;
        this.expected = size === 0 ? 'trailers' : 'content';
        return undefined;
      }
      case 'content_end':
        this.expected = 'size';
        return line === '\r\n' ? undefined : malformed('a chunk longer than its size');
      default:
        this.trailersLength += line.length;
        this.trailersCount++;
        if (this.trailersLength > this.bounds.upstreamHeadersBytesMax) return tooMuch;
        if (this.trailersCount > this.bounds.upstreamFieldsCountMax) return tooMuch;
        if (trailerForm.test(line)) return undefined;
        return malformed(fieldFlaw(line.replace(/\r\n$/, ''), 'in the trailers') ?? 'a malformed trailer');
    }
  }
}

const sizeForm = /^([0-9A-Fa-f]{1,16})([\t ]*;[\t\x20-\x7e\x80-\xff]*)?\r\n$/;
/** The maximum length of a chunk size line without extensions: 16 digits and CRLF. */
const sizeLineLengthMax = 18;
const tooMuch = malformed('too many chunk extensions or trailers');
const trailerForm = new RegExp(`^(?:${fieldLine.source}|\\r\\n)$`);
