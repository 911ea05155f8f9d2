/**
 * Groups work into rounds, because a batch takes less time than the same work in separate pieces. A round begins at least `apartMs` after
 * the previous round. Work that arrives after this time begins a new round immediately. Work that arrives in the same turn of the event
 * loop as a round joins the round.
 */
export class Rounds {
  private readonly apartMs: number;
  private isOpen = false;
  /** The earliest time of the next round, on the clock of `performance.now()`. */
  private nextMs = 0;
  private next: Promise<void> | undefined;

  constructor(apartMs: number) {
    this.apartMs = apartMs;
  }

  /** Resolves when the caller's round begins: immediately, or at most `apartMs` plus one turn of the event loop later. */
  join(): Promise<void> {
    if (this.isOpen) return Promise.resolve();
    if (this.next !== undefined) return this.next;
    const waitMs = this.nextMs - performance.now();
    if (waitMs <= 0) {
      this.begin();
      return Promise.resolve();
    }
    this.next = new Promise((resolve) => {
      setTimeout(() => {
        this.begin();
        resolve();
      }, waitMs);
    });
    return this.next;
  }

  private begin(): void {
    this.next = undefined;
    this.nextMs = performance.now() + this.apartMs;
    this.isOpen = true;
    setImmediate(() => {
      this.isOpen = false;
    });
  }
}
