import { RenewedMap } from './renewed-map.ts';

/** A round-robin queue of holders, such as keys or client addresses. The items of one holder keep their order. */
export class FairQueue<T> {
  /** A served holder moves to the end. */
  private readonly lines = new RenewedMap<string, T[]>();
  private count = 0;

  get length(): number {
    return this.count;
  }

  push(holder: string, item: T): void {
    const line = this.lines.get(holder);
    if (line === undefined) this.lines.set(holder, [item]);
    else line.push(item);
    this.count++;
  }

  /** The first item of the next holder that may be served; undefined when none may. */
  shift(mayServe: (holder: string) => boolean): T | undefined {
    for (const [holder, line] of this.lines) {
      if (!mayServe(holder)) continue;
      const item = line.shift();
      this.count--;
      this.lines.delete(holder);
      if (line.length > 0) this.lines.set(holder, line);
      return item;
    }
    return undefined;
  }

  /** @returns whether the item was in the queue */
  remove(holder: string, isItem: (item: T) => boolean): boolean {
    const line = this.lines.get(holder);
    const index = line?.findIndex(isItem) ?? -1;
    if (line === undefined || index < 0) return false;
    line.splice(index, 1);
    this.count--;
    if (line.length === 0) this.lines.delete(holder);
    return true;
  }

  hasOthers(holder: string): boolean {
    return this.lines.size > (this.lines.has(holder) ? 1 : 0);
  }

  drain(): T[] {
    const items = [...this.lines].flatMap(([, line]) => line);
    this.lines.clear();
    this.count = 0;
    return items;
  }
}
