import type { BlockStore, LeakedSecret } from './block-store.ts';

/** The leaks of a single process without Redis. The leaks are lost when the process exits. */
export function createMemoryBlockStore(): BlockStore {
  const leaks = new Map<string, LeakedSecret>();
  let version = 0;

  return {
    started: Promise.resolve(),
    add(leaked) {
      const known = leaks.get(leaked.digest);
      if (known !== undefined && (known.leak.ended || !leaked.leak.ended)) {
        return Promise.resolve({ kind: 'known', leak: known.leak });
      }
      leaks.set(leaked.digest, leaked);
      version++;
      return Promise.resolve({ kind: 'added', leak: leaked.leak });
    },
    read(known) {
      const changed = known === version ? undefined : [...leaks.values()];
      return Promise.resolve({ kind: 'read', version, nowMs: 0, leaks: changed });
    },
    renew(digests) {
      // A single process has the only configuration, so the removal needs no delay.
      const needed = new Set(digests);
      for (const digest of leaks.keys()) {
        if (needed.has(digest)) continue;
        leaks.delete(digest);
        version++;
      }
      return Promise.resolve();
    },
    onReturn() {},
  };
}
