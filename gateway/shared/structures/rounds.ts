/**
 * Groups work into rounds, because a batch takes less time than the same work in pieces. A round begins at least `apartMs` after the
 * previous one. Work that arrives later begins a round immediately, and work in the same turn of the event loop joins it.
 */
export class Rounds {
  private readonly apartMs: number;
  private isOpen = false;
  /** On the clock of `performance.now()`. */
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
