import type { Away } from '../../../redis/redis-reply.ts';
import { joinNextRun } from '../../../shared/structures/join-next-run.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { Added, BlockStore, LeakedSecret, LeaksRead } from './block-store.ts';

export type BlockedSecrets = ReturnType<typeof createBlockedSecrets>;

/**
 * The copy of the leaked secrets of the configuration in this process. The process reads the copy again every `leaksReadIntervalMs`. It reads
 * the copy at once when a decision shows that a secret of a key has leaked (`quota/marks.lua`), and when Redis is available again.
 *
 * Redis may lose leaks, by a restart without persistence or by a failover. The process then writes the leaks of its configuration again.
 */
export function createBlockedSecrets({
  store,
  isInConfiguration,
  bounds,
}: {
  readonly store: BlockStore;
  /** Whether the configuration of this process has the secret with this digest. */
  readonly isInConfiguration: (digest: string) => boolean;
  readonly bounds: Bounds;
}) {
  let leaks = new Map<string, LeakedSecret>();
  /** The version that this copy has. Undefined when the next read must read all leaks. */
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
    /** Resolves after the first attempt to read the leaks. A process serves no request before this attempt. */
    started: started.then(() => undefined),
    /** Whether a secret has ended because it leaked. */
    has: (digest: string): boolean => leaks.get(digest)?.leak.ended === true,
    /** Returns a leak, also one that did not end the secret. */
    find: (digest: string): LeakedSecret | undefined => leaks.get(digest),
    all: (): Iterable<LeakedSecret> => leaks.values(),
    /** A number that changes whenever the copy changes, for caches. */
    revision: (): number => revision,
    /** The time of the last leak that the copy includes, on the store's clock, epoch ms; 0 while there is no leak. */
    readMs: (): number => readMs,
    /** Reads the leaks if they have changed. @returns false when the store does not reply */
    read,
    /** Reads the leaks after a decision has shown that the copy is outdated. @returns false when the store does not reply */
    readAgain(): Promise<boolean> {
      isClockKnown = true;
      return read();
    },
    /**
     * Stores a leak. When the promise resolves, this copy includes the leak. The function does not read the other leaks, because a report may
     * contain every secret of a large configuration.
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
     * Renews the leaks that the configuration still has. Another gateway may still have a configuration with a secret that this one no longer
     * has. The process therefore removes a leak only when it has run for `leakBlockKeptMs` itself.
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
