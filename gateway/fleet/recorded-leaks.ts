import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { type KeyChange, leakIdentity } from './changes.ts';

/**
 * A repeated report records a leak again. The shared lists merge the records of several gateways, but a second record of the same gateway
 * would be a new entry.
 */
export function createRecordedLeaks({ leaksRememberedMax }: Pick<Bounds, 'leaksRememberedMax'>) {
  const recorded = new Set<string>();

  return {
    /** Whether this gateway recorded the leak before; false for any other change. */
    isRepeated(change: KeyChange): boolean {
      const identity = leakIdentity(change);
      if (identity === undefined) return false;
      const name = JSON.stringify(identity);
      if (recorded.has(name)) return true;
      recorded.add(name);
      const [oldest] = recorded;
      if (recorded.size > leaksRememberedMax && oldest !== undefined) recorded.delete(oldest);
      return false;
    },
  };
}
