import type { LookupAddress } from 'node:dns';
import { lookup as systemLookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';

/** Resolves a host name to its addresses. Rejects when the lookup fails. */
export type LookUp = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * Makes the lookup of host names for connections to several servers.
 *
 * All lookups of a process share two threads of Node. If the name server of a host does not answer, a lookup occupies its thread for 10 s or
 * longer. Therefore, connections to the same host share one lookup, and hosts whose last lookup was slow are looked up one after the other.
 * The other thread remains free for the hosts of other servers and of upstreams.
 */
export function createSharedLookup({
  lookUp = (hostname) => systemLookup(hostname, { all: true }),
  slowLookupMs,
  slowHostsMax,
}: {
  readonly lookUp?: LookUp;
  /** The time after which a lookup is slow. */
  readonly slowLookupMs: number;
  /** The maximum number of hosts that are remembered as slow. The oldest is forgotten first. */
  readonly slowHostsMax: number;
}): LookupFunction {
  const running = new Map<string, Promise<readonly LookupAddress[]>>();
  const slow = new Set<string>();
  let lastSlow: Promise<unknown> = Promise.resolve();

  function find(hostname: string): Promise<readonly LookupAddress[]> {
    const known = running.get(hostname);
    if (known !== undefined) return known;
    const found = (slow.has(hostname) ? findInTurn(hostname) : measure(hostname)).finally(() =>
      running.delete(hostname),
    );
    running.set(hostname, found);
    return found;
  }

  function findInTurn(hostname: string): Promise<readonly LookupAddress[]> {
    const found = lastSlow.then(() => measure(hostname));
    lastSlow = found.catch(() => {});
    return found;
  }

  async function measure(hostname: string): Promise<readonly LookupAddress[]> {
    const beganMs = performance.now();
    try {
      return await lookUp(hostname);
    } finally {
      slow.delete(hostname);
      if (performance.now() - beganMs > slowLookupMs) remember(hostname);
    }
  }

  function remember(hostname: string): void {
    slow.add(hostname);
    for (const oldest of slow) {
      if (slow.size <= slowHostsMax) return;
      slow.delete(oldest);
    }
  }

  return (hostname, { all }, callback) => {
    find(hostname).then(
      (found) => {
        const [first] = found;
        if (all) callback(null, [...found]);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };
}
