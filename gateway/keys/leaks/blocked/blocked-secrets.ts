import type { Away } from '../../../redis/redis-reply.ts';
import { joinNextRun } from '../../../shared/structures/join-next-run.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { Added, BlockStore, LeakedSecret, LeaksRead } from './block-store.ts';

export type BlockedSecrets = ReturnType<typeof createBlockedSecrets>;

/**
 * A copy of the leaked secrets of the configuration. It is read again every `leaksReadIntervalMs`, when a decision shows that a secret of a
 * key has leaked (`quota/marks.lua`), and when Redis is available again.
 *
 * Redis may lose leaks, by a restart without persistence or by a failover. The process then writes the leaks of its configuration again.
 */
export function createBlockedSecrets({
  store,
  isInConfiguration,
  bounds,
}: {
  readonly store: BlockStore;
  readonly isInConfiguration: (digest: string) => boolean;
  readonly bounds: Bounds;
}) {
  let leaks = new Map<string, LeakedSecret>();
  /** Undefined when the next read must read all leaks. */
  let version: number | undefined = 0;
  let readMs = 0;
  let revision = 0;
  let isClockKnown = false;
  const read = joinNextRun(readOnce);
  const beganMs = performance.now();
  const timer = setInterval(() => void read(), bounds.leaksReadIntervalMs).unref();
  store.onReturn(() => void read());
  const started = store.started.then(read);

  return {
    /** After the first attempt to read the leaks, before which a process serves no request. */
    started: started.then(() => undefined),
    has: (digest: string): boolean => leaks.get(digest)?.leak.ended === true,
    /** Also a leak that did not end the secret. */
    find: (digest: string): LeakedSecret | undefined => leaks.get(digest),
    all: (): Iterable<LeakedSecret> => leaks.values(),
    /** Changes with the copy, for caches. */
    revision: (): number => revision,
    /** The last leak that the copy includes, epoch ms on the store's clock; 0 while there is no leak. */
    readMs: (): number => readMs,
    /** Does nothing if the leaks have not changed. @returns false when the store does not reply */
    read,
    /** After a decision has shown that the copy is outdated. @returns false when the store does not reply */
    readAgain(): Promise<boolean> {
      isClockKnown = true;
      return read();
    },
    /**
     * When the promise resolves, this copy includes the leak. The other leaks are not read, because a report may contain every secret of a
     * large configuration.
     */
    async add(leaked: LeakedSecret): Promise<Added | Away> {
      const added = await store.add(leaked);
      if (added.kind === 'away') return added;
      leaks.set(leaked.digest, { ...leaked, leak: added.leak });
      version = undefined;
      revision++;
      return added;
    },
    /**
     * Renews the leaks that the configuration still has. Another gateway's configuration may still have other secrets, so the process
     * removes a leak only when it has run for `leakBlockKeptMs` itself.
     */
    async renew(): Promise<void> {
      if (leaks.size === 0) return;
      const removes = performance.now() - beganMs > bounds.leakBlockKeptMs;
      await store.renew([...leaks.keys()].filter(isInConfiguration), removes);
      await read();
    },
    close: () => clearInterval(timer),
  };

  async function readOnce(): Promise<boolean> {
    const isAfterDecision = isClockKnown;
    isClockKnown = false;
    const reply = await store.read(version, isAfterDecision);
    if (reply.kind === 'away') return false;
    if (reply.leaks !== undefined) await take(reply.leaks, reply.version);
    // A failover may lose a leak, but not its mark. The store's clock is later than the mark, so the key is served again.
    if (isAfterDecision) readMs = Math.max(readMs, reply.nowMs);
    return true;
  }

  async function take(stored: NonNullable<LeaksRead['leaks']>, storedVersion: number): Promise<void> {
    const known = new Map(stored.map((leaked) => [leaked.digest, leaked]));
    const lost = [...leaks.values()].filter(({ digest }) => !known.has(digest) && isInConfiguration(digest));
    for (const leaked of lost) known.set(leaked.digest, leaked);
    leaks = known;
    version = lost.length === 0 ? storedVersion : undefined;
    readMs = storedVersion;
    revision++;
    for (const leaked of lost) {
      const added = await store.add(leaked);
      if (added.kind === 'away') return;
    }
  }
}
