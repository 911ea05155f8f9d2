import { FairQueue } from './fair-queue.ts';

/**
 * Starts work at a limited rate, with a limited burst after a pause, so that a flood uses a limited share of the CPU. Holders (such as
 * client addresses) take turns: each waits for at most one piece of work of each other holder.
 */
export class Pace {
  private readonly waiting = new FairQueue<() => boolean>();
  private readonly perMs: number;
  private readonly atOnceMax: number;
  /** Pieces of work that could start at `countedMs`, on the clock of `performance.now()`. */
  private left: number;
  private countedMs = performance.now();
  private timer: NodeJS.Timeout | undefined;
  /** Work that the running work adds waits until the running work returns. */
  private isBeginning = false;

  constructor(perSecondMax: number, atOnceMax: number) {
    this.perMs = perSecondMax / 1_000;
    this.atOnceMax = atOnceMax;
    this.left = atOnceMax;
  }

  /** @param work begins now or later; returns false if there was nothing left to do, which is not counted */
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
