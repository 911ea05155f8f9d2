import { addressGroup } from '../address-group.ts';

export interface ConnectionCounts {
  /** Counts a connection; false, and it is not counted, when its address has as many as it may. */
  add(address: string): boolean;
  /** A connection that was counted is closed. */
  remove(address: string): void;
}

/** Open connections of each client address, told apart as the address bucket tells them: IPv6 by /64. */
export function createConnectionCounts({ max }: { readonly max: number }): ConnectionCounts {
  const counts = new Map<string, number>();
  return {
    add(address) {
      const group = addressGroup(address);
      const count = counts.get(group) ?? 0;
      if (count >= max) return false;
      counts.set(group, count + 1);
      return true;
    },
    remove(address) {
      const group = addressGroup(address);
      const count = (counts.get(group) ?? 1) - 1;
      if (count === 0) counts.delete(group);
      else counts.set(group, count);
    },
  };
}
