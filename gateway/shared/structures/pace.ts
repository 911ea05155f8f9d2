import { FairQueue } from './fair-queue.ts';

/**
 * Starts work at a limited rate, with a limited burst after a pause. A flood therefore uses a limited share of the CPU time. Holders (such
 * as client addresses) take turns, so a holder waits for at most one piece of work of each other holder.
 */
export class Pace {
  private readonly waiting = new FairQueue<() => boolean>();
  private readonly perMs: number;
  private readonly atOnceMax: number;
  /** How many pieces of work could start at the time `countedMs`, on the clock of `performance.now()`. */
  private left: number;
  private countedMs = performance.now();
  private timer: NodeJS.Timeout | undefined;
  /** True while `begin` runs work. If the running work calls `take`, the new work waits until the running work returns. */
  private isBeginning = false;

  constructor(perSecondMax: number, atOnceMax: number) {
    this.perMs = perSecondMax / 1_000;
    this.atOnceMax = atOnceMax;
    this.left = atOnceMax;
  }

  /** @param work begins now or later, and returns false if there was nothing left to do, which is not counted */
  take(holder: string, work: () => boolean): void {
    this.waiting.push(holder, work);
    // A running timer means that earlier work waits.
    if (this.timer === undefined && !this.isBeginning) this.begin();
  }

  private begin(): void {
    this.timer = undefined;
    const nowMs = performance.now();
    this.left = Math.min(this.atOnceMax, this.left + (nowMs - this.countedMs) * this.perMs);
    this.countedMs = nowMs;
    this.isBeginning = true;
    while (this.left >= 1) {
      const work = this.waiting.shift(() => true);
      if (work === undefined) break;
      if (work()) this.left -= 1;
    }
    this.isBeginning = false;
    if (this.waiting.length > 0) this.timer = setTimeout(() => this.begin(), (1 - this.left) / this.perMs);
  }
}
