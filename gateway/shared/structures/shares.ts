/**
 * A fixed amount (connections, places in a queue, octets of memory) that holders share. A holder cannot use up the whole amount.
 *
 * The limit of a holder falls with the cube of the free amount: a single holder gets at most half, and n greedy holders get at most 1/(n +
 * 1) each. Network switches let a holder have as much as is still free (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2),
 * 1998). Then nine holders would use up an amount of 256: 128, 64, and so on. With the cube (128, 41, and so on), 39 holders would.
 */
export class Shares {
  private readonly max: number;
  /** Holders with amount 0 stay in the map, so that most requests do not resize its table. */
  private holders = new Map<string, Holding>();
  private holding = 0;
  private total = 0;

  constructor(max: number) {
    this.max = max;
  }

  get taken(): number {
    return this.total;
  }

  get free(): number {
    return this.max - this.total;
  }

  heldBy(holder: string): number {
    return this.holders.get(holder)?.amount ?? 0;
  }

  mayTake(holder: string, amount: number): boolean {
    return this.mayAdd(this.heldBy(holder), amount);
  }

  /** @returns false, without a change, when the amount is more than the holder may take */
  take(holder: string, amount: number): boolean {
    const entry = this.holders.get(holder) ?? this.addHolder(holder);
    if (!this.mayAdd(entry.amount, amount)) return false;
    if (entry.amount === 0 && amount > 0) this.holding++;
    entry.amount += amount;
    this.total += amount;
    return true;
  }

  /** @param amount at most what the holder has taken */
  give(holder: string, amount: number): void {
    const entry = this.holders.get(holder);
    if (entry === undefined || amount === 0) return;
    entry.amount -= amount;
    this.total -= amount;
    if (entry.amount === 0) this.holding--;
  }

  /** At most four times the cube of the free share, so a single holder gets at most half. */
  private mayAdd(held: number, amount: number): boolean {
    const left = (this.free - amount) / this.max;
    return held / this.max <= 4 * left * left * left;
  }

  private addHolder(holder: string): Holding {
    if (this.holders.size > 2 * this.holding + idleHoldersMax) {
      this.holders = new Map([...this.holders].filter(([, { amount }]) => amount > 0));
    }
    const entry = { amount: 0 };
    this.holders.set(holder, entry);
    return entry;
  }
}

interface Holding {
  amount: number;
}

/** Holders with amount 0 are dropped when they outnumber the others by more than this. */
const idleHoldersMax = 1_024;
