import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { FairQueue } from './fair-queue.ts';

export interface TurnsOptions {
  /** Holders that have a turn at once. */
  readonly holdersMax: number;
  /** How long a holder rests after each turn. */
  readonly pauseMs: number;
  /** So many times as long as the event loop was busy in its turns a holder needs before the next one; the rest is for others. */
  readonly restFactor?: number;
  /** It may run ahead of that by so much. */
  readonly aheadMaxMs?: number;
}

/** Of something that may have to wait for its turn. */
export interface Waiting {
  /** It does not wait any longer: its turn never comes. Set while it waits. */
  leave?: () => void;
}

/**
 * Work of several holders: of each one thing at a time, and of so many holders at once. Where more wait, each holder has its
 * turn: one that asks for much waits for itself.
 */
export class Turns {
  private readonly queue = new FairQueue<{ readonly holder: string; begin(): void }>();
  private readonly busy = new Set<string>();
  /** Until when the turns of a holder have taken the event loop, at its pace; of `performance.now()`. */
  private readonly takenUntilMs = new Map<string, number>();
  private readonly options: TurnsOptions;

  constructor(options: TurnsOptions) {
    this.options = options;
  }

  /** @returns what the work does, once it was its turn; undefined when it left before */
  async take<T>(holder: string, work: () => Promise<T>, waiting: Waiting = {}): Promise<T | undefined> {
    if (this.mayBegin(holder)) this.busy.add(holder);
    else if (!(await this.wait(holder, waiting))) return undefined;
    const before = performance.eventLoopUtilization();
    try {
      return await work();
    } finally {
      const { active } = performance.eventLoopUtilization(before);
      void sleep(this.restMs(holder, active)).then(() => this.end(holder));
    }
  }

  private mayBegin(holder: string): boolean {
    return this.busy.size < this.options.holdersMax && !this.busy.has(holder);
  }

  /** @returns whether it is its turn */
  private wait(holder: string, waiting: Waiting): Promise<boolean> {
    return new Promise((resolve) => {
      const item = { holder, begin: () => resolve(true) };
      this.queue.push(holder, item);
      waiting.leave = () => {
        if (this.queue.remove(holder, (one) => one === item)) resolve(false);
      };
    });
  }

  private restMs(holder: string, busyMs: number): number {
    const { pauseMs, restFactor = 0, aheadMaxMs = 0 } = this.options;
    const nowMs = performance.now();
    const untilMs = Math.max(nowMs, this.takenUntilMs.get(holder) ?? 0) + restFactor * busyMs;
    this.takenUntilMs.set(holder, untilMs);
    return Math.max(pauseMs, untilMs - nowMs - aheadMaxMs);
  }

  private end(ended: string): void {
    this.busy.delete(ended);
    const next = this.queue.shift((holder) => this.mayBegin(holder));
    if (next === undefined) return;
    // It has the turn from here on, before it goes on.
    this.busy.add(next.holder);
    next.begin();
  }
}
