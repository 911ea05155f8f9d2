/**
 * Puts work that comes close together into one round, at most one in so long a time: what many do at once takes less than
 * what each does alone. Whoever comes after a pause does not wait, nor who comes in the same turn of the event loop.
 */
export class Rounds {
  private readonly apartMs: number;
  private isOpen = false;
  /** When the next round may begin, of `performance.now()`. */
  private nextMs = 0;
  private next: Promise<void> | undefined;

  constructor(apartMs: number) {
    this.apartMs = apartMs;
  }

  /** Resolves when the round begins that the caller is in: now, or at most `apartMs` and a turn of the event loop later. */
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
