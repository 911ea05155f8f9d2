/** Counts what is taken in each second of a monotonic clock. The clock is the argument `nowMs`. */
export class PerSecond {
  /** Asked in this second. */
  asked = 0;
  private taken = 0;
  private second = -1;
  private readonly byHolder = new Map<string, number>();

  /** Takes one if fewer than `max` are taken in this second. @param max depends on what was asked in this second */
  take(nowMs: number, max: (asked: number) => number): boolean {
    this.begin(nowMs);
    this.asked += 1;
    if (this.taken >= max(this.asked)) return false;
    this.taken += 1;
    return true;
  }

  /** Takes one for a holder. A holder takes at most `perHolderMax`, so that it leaves some to others. */
  takeFor(holder: string, nowMs: number, max: number, perHolderMax: number): boolean {
    this.begin(nowMs);
    const own = this.byHolder.get(holder) ?? 0;
    if (this.taken >= max || own >= perHolderMax) return false;
    this.taken += 1;
    this.byHolder.set(holder, own + 1);
    return true;
  }

  private begin(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    // A slow request may ask with the time of an earlier second, which must not begin again.
    if (second <= this.second) return;
    this.second = second;
    this.asked = 0;
    this.taken = 0;
    this.byHolder.clear();
  }
}
