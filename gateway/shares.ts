/**
 * Something that many holders use and nobody may use up: connections, places in a queue, octets of memory. A holder may
 * take while it holds less than what is free. The first holder therefore gets half at most, n greedy ones get one part
 * in n + 1 each, and as large a part stays free for whoever comes next. This is the dynamic
 * threshold by which switches share their memory among ports (Choudhury and Hahne, IEEE/ACM Transactions on Networking
 * 6(2), 1998), with its factor at 1.
 */
export class Shares {
  private readonly max: number;
  private readonly held = new Map<string, number>();
  private taken = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** What nobody holds. */
  get free(): number {
    return this.max - this.taken;
  }

  heldBy(holder: string): number {
    return this.held.get(holder) ?? 0;
  }

  mayTake(holder: string, amount: number): boolean {
    return this.heldBy(holder) + amount <= this.free;
  }

  /** @returns false, and nothing is taken, when it would be more than the holder's share */
  take(holder: string, amount: number): boolean {
    if (!this.mayTake(holder, amount)) return false;
    this.taken += amount;
    this.held.set(holder, this.heldBy(holder) + amount);
    return true;
  }

  /** @param amount no more than the holder has taken */
  give(holder: string, amount: number): void {
    this.taken -= amount;
    const left = this.heldBy(holder) - amount;
    if (left === 0) this.held.delete(holder);
    else this.held.set(holder, left);
  }
}
