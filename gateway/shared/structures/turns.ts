import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { FairQueue } from './fair-queue.ts';

export interface TurnsOptions {
  /** Holders with a turn at the same time. */
  readonly holdersMax: number;
  /** After each turn. */
  readonly pauseMs: number;
  /** On average, a holder keeps the event loop busy for at most 1/`restFactor` of the time. */
  readonly restFactor?: number;
  /** By how long a holder may postpone the pauses that `restFactor` requires. */
  readonly aheadMaxMs?: number;
}

export interface Waiting {
  /** Removes the work from the queue; present only while the work waits. */
  leave?: () => void;
}

/**
 * Runs work of several holders, such as tokens or keys, each with at most one piece in progress. Waiting holders take turns, so a holder
 * with much work delays only itself.
 */
export class Turns {
  private readonly queue = new FairQueue<{ readonly holder: string; begin(): void }>();
  private readonly busy = new Set<string>();
  /** The end of the pauses that `restFactor` requires, on the clock of `performance.now()`. */
  private readonly takenUntilMs = new Map<string, number>();
  private readonly options: TurnsOptions;

  constructor(options: TurnsOptions) {
    this.options = options;
  }

  /** @returns undefined when the work left the queue before its turn */
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

  /** @returns false when the work left the queue */
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
    // Timers are exact only to the millisecond.
    if ((this.takenUntilMs.get(ended) ?? 0) <= performance.now() + 1) this.takenUntilMs.delete(ended);
    const next = this.queue.shift((holder) => this.mayBegin(holder));
    if (next === undefined) return;
    // The holder is busy from now on, although its work continues only in a later microtask.
    this.busy.add(next.holder);
    next.begin();
  }
}
