import type { LeakedSecret } from './block-store.ts';
import type { BlockedSecrets } from './blocked-secrets.ts';

/**
 * The leaks of a process without Redis, which are only recorded. No secret ends, because a restart would admit it again. The process forgets
 * the leaks when it exits.
 *
 * @param isInConfiguration whether the configuration has the secret with this digest
 */
export function createRecordedOnly(isInConfiguration: (digest: string) => boolean): BlockedSecrets {
  const leaks = new Map<string, LeakedSecret>();
  let revision = 0;

  return {
    started: Promise.resolve(undefined),
    has: () => false,
    find: (digest) => leaks.get(digest),
    all: () => leaks.values(),
    revision: () => revision,
    readMs: () => 0,
    read: () => Promise.resolve(true),
    readAgain: () => Promise.resolve(true),
    async add(leaked) {
      // An edit has added `redis`, with which a leaked secret ends.
      if (leaked.leak.ended) {
        const reason = 'the gateway uses Redis from its next start on';
        return { kind: 'away', mayHaveRun: false, reason };
      }
      const known = leaks.get(leaked.digest);
      if (known !== undefined) return { kind: 'known', leak: known.leak };
      leaks.set(leaked.digest, leaked);
      revision++;
      return { kind: 'added', leak: leaked.leak };
    },
    async renew() {
      for (const digest of leaks.keys()) if (!isInConfiguration(digest) && leaks.delete(digest)) revision++;
    },
    close() {},
  };
}
