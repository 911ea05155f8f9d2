import { ResponseReader } from '../../../gateway/request/transport/response-reader.ts';
import { type Bounds, defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';

export interface ReadResponse {
  /** `open`: the response is still incomplete. */
  readonly end: 'open' | 'complete' | 'surplus' | 'malformed';
  readonly status: number | undefined;
  /** The part of the body that the reader has returned so far, in Latin-1. */
  readonly body: string;
  /** The statuses of the interim responses before the final response. */
  readonly interims: readonly number[];
}

interface ReadResponseOptions {
  readonly method: string;
  /** The response's octets as Latin-1, one string for each read. */
  readonly reads: readonly string[];
  /** Whether the connection ends after the last read. */
  readonly closes: boolean;
  readonly bounds?: Partial<Bounds>;
}

/**
 * Parses the octets of the given reads as a response. The buffer of each read is overwritten after the read, as on a
 * connection.
 */
export function readResponse({
  method,
  reads,
  closes,
  bounds: overrides,
}: ReadResponseOptions): ReadResponse {
  let status: number | undefined;
  let body = '';
  const interims: number[] = [];
  const reader = new ResponseReader(
    { ...defaultBounds, ...overrides },
    {
      onInterim: (head) => interims.push(head.status),
      onHead(head, wholeBody = '') {
        status = head.status;
        body = wholeBody;
      },
      onPiece(piece) {
        body += piece.toString('latin1');
      },
    },
  );
  const buffer = Buffer.alloc(reads.reduce((longest, { length }) => Math.max(longest, length), 1));
  reader.expect(method);
  let end: ReadResponse['end'] = 'open';
  for (const read of reads) {
    if (read === '' || end === 'malformed') continue;
    if (end === 'complete') end = 'surplus';
    if (end === 'surplus') break;
    end = reader.read(buffer, buffer.write(read, 'latin1')).kind;
    buffer.fill('!');
  }
  if (end === 'open' && closes && reader.isCompletedByEnd()) end = 'complete';
  return { end, status, body, interims };
}
