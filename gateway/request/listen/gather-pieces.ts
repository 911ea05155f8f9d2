import type { IncomingMessage } from 'node:http';

/**
 * Has the body of a request read in few pieces, however small its chunks or packets are. Node hands over the content of each
 * chunk apart, which takes half a kilobyte while it waits: 60,000 octets in chunks of one took 28 MB, and a write to the
 * target for each. To be called when the head has been parsed.
 */
export function gatherPieces(req: IncomingMessage): void {
  const passOn = req.push.bind(req);
  let pieces = 0;
  /** Small pieces that came in this turn of the event loop, and how much of it they fill. */
  let gathered: Buffer | undefined;
  let length = 0;

  /** @returns false when the reader has enough for now */
  function passOnGathered(): boolean {
    if (gathered === undefined) return true;
    const piece = gathered.subarray(0, length);
    gathered = undefined;
    length = 0;
    return passOn(piece);
  }

  // Node calls it with each piece, and with null at the end of the body.
  req.push = (piece: Buffer | null) => {
    pieces++;
    if (piece === null || pieces <= singlePiecesMax || piece.length >= gatheredBytesMax) {
      passOnGathered();
      return passOn(piece);
    }
    const wantsMore = length + piece.length <= gatheredBytesMax || passOnGathered();
    if (gathered === undefined) {
      gathered = Buffer.allocUnsafeSlow(gatheredBytesMax);
      setImmediate(passOnGathered);
    }
    length += piece.copy(gathered, length);
    return wantsMore;
  };
}

/** So many pieces are handed over as they come, which is all of most bodies. */
const singlePiecesMax = 32;
/** Of smaller pieces after those, so many octets are handed over at once. */
const gatheredBytesMax = 4_096;
