/**
 * Something that many holders use and nobody may use up: connections, places in a queue, octets of memory. A holder may
 * take while it holds less than what is free. The first holder therefore gets half at most, n greedy ones get one part
 * in n + 1 each, and as large a part stays free for whoever comes next. This is the dynamic
 * threshold by which switches share their memory among ports (Choudhury and Hahne, IEEE/ACM Transactions on Networking
 * 6(2), 1998), with its factor at 1.
 */
export class Shares {
  private readonly max: number;
  /** Holders stay when they have given all back: one that takes and gives with every request would churn the table. */
  private readonly holders = new Map<string, Holding>();
  private holding = 0;
  private taken = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** What nobody holds. */
  get free(): number {
    return this.max - this.taken;
  }

  heldBy(holder: string): number {
    return this.holders.get(holder)?.amount ?? 0;
  }

  mayTake(holder: string, amount: number): boolean {
    return this.heldBy(holder) + amount <= this.free;
  }

  /** @returns false, and nothing is taken, when it would be more than the holder's share */
  take(holder: string, amount: number): boolean {
    const own = this.holders.get(holder) ?? this.addHolder(holder);
    if (own.amount + amount > this.free) return false;
    if (own.amount === 0 && amount > 0) this.holding++;
    own.amount += amount;
    this.taken += amount;
    return true;
  }

  /** @param amount no more than the holder has taken */
  give(holder: string, amount: number): void {
    const own = this.holders.get(holder);
    if (own === undefined || amount === 0) return;
    own.amount -= amount;
    this.taken -= amount;
    if (own.amount === 0) this.holding--;
  }

  private addHolder(holder: string): Holding {
    if (this.holders.size > 2 * this.holding + idleHoldersMax) {
      for (const [name, { amount }] of this.holders) if (amount === 0) this.holders.delete(name);
    }
    const own = { amount: 0 };
    this.holders.set(holder, own);
    return own;
  }
}

interface Holding {
  amount: number;
}

/** Holders that hold nothing and are remembered, beside twice as many as hold something. */
const idleHoldersMax = 1_024;
