import { FairQueue } from './fair-queue.ts';

/** Work that is done one after the other: of several holders that wait, each has its turn. */
export class Turns {
  private readonly waiting = new FairQueue<() => void>();
  private isTaken = false;

  /** @returns what the work does, once it was its turn */
  async take<T>(holder: string, work: () => T | Promise<T>): Promise<T> {
    if (this.isTaken) await new Promise<void>((resolve) => this.waiting.push(holder, resolve));
    this.isTaken = true;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift(() => true);
      // Whoever is next has the turn from here on, before it goes on.
      if (next === undefined) this.isTaken = false;
      else next();
    }
  }
}
