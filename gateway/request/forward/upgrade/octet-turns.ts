import type { Duplex } from 'node:stream';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import { FairQueue } from '../../../shared/structures/fair-queue.ts';

/**
 * Limits how many octets all WebSockets of this process transfer in one turn of the event loop, so that HTTP requests do not wait long.
 * When the limit is reached, the remaining WebSockets wait for the next turn. Waiting WebSockets are served round-robin by key.
 */
export class OctetTurns {
  private readonly waiting = new FairQueue<() => void>();
  private readonly bytesPerTurn: number;
  private readonly atTurnEnd: AtTurnEnd;
  private bytesLeft: number;
  private isTurnEndAwaited = false;

  constructor(bytesPerTurn: number, atTurnEnd: AtTurnEnd) {
    this.bytesPerTurn = bytesPerTurn;
    this.atTurnEnd = atTurnEnd;
    this.bytesLeft = bytesPerTurn;
  }

  /**
   * Copies all octets of one socket to the other socket, and then ends the other socket.
   *
   * @returns a function that stops copying: later octets are read and dropped
   */
  relay({ holder, from, to }: { holder: string; from: Duplex; to: Duplex }): () => void {
    /** `due`: the relay waits for its turn. `blocked`: the relay waits until the socket `to` has sent its write buffer. */
    let state: 'idle' | 'due' | 'blocked' = 'idle';
    let isDropping = false;

    const onReadable = () => {
      if (state !== 'idle') return;
      state = 'due';
      this.takeTurn(holder, move);
    };
    const move = () => {
      state = 'idle';
      const piece: Buffer | null = from.read();
      if (piece === null) return;
      this.bytesLeft -= Math.max(piece.length, pieceBytesMin);
      if (isDropping || !to.writable || to.write(piece)) return;
      state = 'blocked';
      to.once('drain', unblock);
    };
    const unblock = () => {
      if (state === 'blocked') state = 'idle';
      onReadable();
    };

    from.on('readable', onReadable);
    from.once('end', () => to.end());
    return () => {
      isDropping = true;
      unblock();
    };
  }

  private takeTurn(holder: string, move: () => void): void {
    this.awaitTurnEnd();
    if (this.bytesLeft > 0) move();
    else this.waiting.push(holder, move);
  }

  private awaitTurnEnd(): void {
    if (this.isTurnEndAwaited) return;
    this.isTurnEndAwaited = true;
    this.atTurnEnd(() => this.endTurn());
  }

  private endTurn(): void {
    this.isTurnEndAwaited = false;
    this.bytesLeft = this.bytesPerTurn;
    while (this.bytesLeft > 0) {
      const move = this.waiting.shift(() => true);
      if (move === undefined) return;
      this.awaitTurnEnd();
      move();
    }
  }
}

/** A piece of less than 4 KiB counts as 4 KiB, because a small piece needs about as much CPU time as a piece of 4 KiB. */
const pieceBytesMin = 4_096;
