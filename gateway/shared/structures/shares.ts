/**
 * A fixed amount of a resource (connections, places in a queue, octets of memory) that holders share. No holder can use up the whole
 * amount.
 *
 * The limit of a holder falls with the cube of the free amount: a single holder gets at most half, and n greedy holders get at most 1/(n +
 * 1) each. Network switches use a simpler limit: a holder may have as much as is still free (Choudhury and Hahne, IEEE/ACM Transactions on
 * Networking 6(2), 1998). With this simpler limit, nine holders would use up an amount of 256: the first takes 128, the next 64, and so on.
 * With the cube, the first holder takes 128, the next 41, and so on. It takes 39 holders to use up 256.
 */
export class Shares {
  private readonly max: number;
  /** The amount of each holder. Holders with amount 0 stay in the map, so that most requests do not resize the table of the map. */
  private holders = new Map<string, Holding>();
  private holding = 0;
  private total = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** The total amount that all holders have. */
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

  /**
   * A holder's share is at most four times the cube of the free share, so a single holder gets at most one half. No holder can take more
   * than the free amount.
   */
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

/** Holders with amount 0 are dropped when they outnumber the other holders by more than this number. */
const idleHoldersMax = 1_024;
