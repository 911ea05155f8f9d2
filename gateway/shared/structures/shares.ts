/**
 * A fixed amount of something (connections, places in a queue, octets of memory) that holders share and none may use up.
 *
 * What a holder may hold falls with the cube of what is free: half of all when it is alone, less for each that comes after it.
 * One greedy holder gets half at most, and n greedy ones get at most 1/(n + 1) each. It is a dynamic threshold as switches
 * share their memory by (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998), theirs being what is free and not
 * its cube: of 256, nine holders that come one after the other then take 128, 64, 32 and so on, and all is gone. With the
 * cube that takes 39, since the last third goes to holders that have next to nothing.
 */
export class Shares {
  private readonly max: number;
  /** A holder stays here when it has given all back, so that taking and giving with every request is no work for the table. */
  private holders = new Map<string, Holding>();
  private holding = 0;
  private total = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** What all holders hold together. */
  get taken(): number {
    return this.total;
  }

  /** The part that nobody holds. */
  get free(): number {
    return this.max - this.total;
  }

  heldBy(holder: string): number {
    return this.holders.get(holder)?.amount ?? 0;
  }

  mayTake(holder: string, amount: number): boolean {
    return this.mayAdd(this.heldBy(holder), amount);
  }

  /** @returns false when that is more than the holder may take; nothing is taken then */
  take(holder: string, amount: number): boolean {
    const own = this.holders.get(holder) ?? this.addHolder(holder);
    if (!this.mayAdd(own.amount, amount)) return false;
    if (own.amount === 0 && amount > 0) this.holding++;
    own.amount += amount;
    this.total += amount;
    return true;
  }

  /** @param amount no more than the holder has taken */
  give(holder: string, amount: number): void {
    const own = this.holders.get(holder);
    if (own === undefined || amount === 0) return;
    own.amount -= amount;
    this.total -= amount;
    if (own.amount === 0) this.holding--;
  }

  /**
   * The holder's part may be four times the cube of the part that is left: one half is four times the cube of one half. That is
   * never more than what is left.
   */
  private mayAdd(held: number, amount: number): boolean {
    const left = (this.free - amount) / this.max;
    return held / this.max <= 4 * left * left * left;
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
