/**
 * A fixed amount of something (connections, places in a queue, octets of memory) that holders share and none may use up.
 * A holder may take more as long as it then holds no more than what is free. So one greedy holder gets half at most, n
 * greedy ones get 1/(n + 1) each, and as much stays free for the next holder. Switches share their memory among ports in
 * this way: it is the dynamic threshold of Choudhury and Hahne (IEEE/ACM Transactions on Networking 6(2), 1998) with the
 * factor 1.
 */
export class Shares {
  private readonly max: number;
  /** A holder stays here when it has given all back, so that taking and giving with every request is no work for the table. */
  private holders = new Map<string, Holding>();
  private holding = 0;
  private taken = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** The part that nobody holds. */
  get free(): number {
    return this.max - this.taken;
  }

  heldBy(holder: string): number {
    return this.holders.get(holder)?.amount ?? 0;
  }

  mayTake(holder: string, amount: number): boolean {
    return this.heldBy(holder) + amount <= this.free;
  }

  /** @returns false when that is more than the holder may take; nothing is taken then */
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
      this.holders = new Map([...this.holders].filter(([, { amount }]) => amount > 0));
    }
    const own = { amount: 0 };
    this.holders.set(holder, own);
    return own;
  }
}

interface Holding {
  amount: number;
}

/** Holders are forgotten, those that hold nothing, when there are this many more than twice those that hold something. */
const idleHoldersMax = 1_024;
