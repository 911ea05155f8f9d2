import { setTimeout as sleep } from 'node:timers/promises';
import { FairQueue } from './fair-queue.ts';

/**
 * Work of several holders: of each one thing at a time, and of so many holders at once. Where more wait, each holder has its
 * turn: one that asks for much waits for itself.
 */
export class Turns {
  private readonly waiting = new FairQueue<{ readonly holder: string; begin(): void }>();
  private readonly busy = new Set<string>();
  private readonly holdersMax: number;
  private readonly pauseMs: number;

  /** @param pauseMs how long a holder rests after each turn, so that the event loop is left to others */
  constructor({ holdersMax, pauseMs = 0 }: { readonly holdersMax: number; readonly pauseMs?: number }) {
    this.holdersMax = holdersMax;
    this.pauseMs = pauseMs;
  }

  /** @returns what the work does, once it was its turn */
  async take<T>(holder: string, work: () => T | Promise<T>): Promise<T> {
    if (this.mayBegin(holder)) this.busy.add(holder);
    else await new Promise<void>((begin) => this.waiting.push(holder, { holder, begin }));
    try {
      return await work();
    } finally {
      void this.rest().then(() => this.end(holder));
    }
  }

  private mayBegin(holder: string): boolean {
    return this.busy.size < this.holdersMax && !this.busy.has(holder);
  }

  private async rest(): Promise<void> {
    if (this.pauseMs > 0) await sleep(this.pauseMs);
  }

  private end(ended: string): void {
    this.busy.delete(ended);
    const next = this.waiting.shift((holder) => this.mayBegin(holder));
    if (next === undefined) return;
    // It has the turn from here on, before it goes on.
    this.busy.add(next.holder);
    next.begin();
  }
}
