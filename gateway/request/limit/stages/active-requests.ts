import { randomBytes } from 'node:crypto';
import type { Concurrency } from '../../../quota/leases.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/**
 * Counts the requests that this process serves now, for each key with a concurrency limit. Each call to the store contains this count, so
 * the next call corrects the store after a lost reply or a loss of data. A key has at most one call at a time. The count in a second call
 * would not include the requests that the first call admits.
 */
export function createActiveRequests({
  nowMs,
  bounds,
}: {
  readonly nowMs: () => number;
  readonly bounds: Pick<Bounds, 'leaseMs' | 'leaseRenewalMs'>;
}) {
  // The name of this process has 48 random bits, because two processes with the same name would replace each other's lease.
  const process = randomBytes(6).toString('base64url');
  const entries = new Map<string, Entry>();

  return {
    /** The number of a key's requests that this process serves now. */
    of: (keyId: string) => entries.get(keyId)?.active ?? 0,

    /** Whether this process serves a request of the key, or has not yet reported the end of the last request to the store. */
    has: (keyId: string) => entries.has(keyId),

    /** Marks the key's call to the store as open. The call stays open until `end` is called. */
    markAsking(keyId: string): void {
      entryOf(keyId).isAsking = true;
    },

    /** Returns the part of a call that reports the active requests of a key to the store. */
    begin(keyId: string, max: number): Concurrency {
      const entry = entryOf(keyId);
      entry.askedWith = entry.active;
      return { max, process, active: entry.active, leaseMs: bounds.leaseMs };
    },

    /** Whether a call to the store is open for the key. An open call waits for the end of the event-loop turn, or for its reply. */
    isAsking: (keyId: string) => entries.get(keyId)?.isAsking === true,

    /**
     * Ends a call, and counts its admitted requests.
     *
     * @param stored whether the store has counted them; otherwise the next renewal corrects the store's count
     * @returns whether the store needs another call immediately, because requests have ended since the call was sent
     */
    end(keyId: string, admitted: number, stored: boolean): boolean {
      const entry = entryOf(keyId);
      entry.isAsking = false;
      entry.active += admitted;
      entry.known = stored ? entry.askedWith + admitted : undefined;
      entry.knownAtMs = nowMs();
      // After a failed call, the lease of an idle key expires, because no later call ends it.
      if (entry.active === 0 && (entry.known ?? 0) === 0) entries.delete(keyId);
      return stored && entry.known !== entry.active;
    },

    /** Called when an admitted request of the key has ended. */
    release(keyId: string): void {
      const entry = entries.get(keyId);
      if (entry !== undefined) entry.active -= 1;
    },

    /** Keys with requests in progress, and keys whose ended requests are not reported to the store yet. */
    keyIds: (): string[] => [...entries.keys()],

    /** Whether all reports to the store are completed. A failed report counts as completed. */
    isSettled: (): boolean =>
      [...entries.values()].every(
        ({ isAsking, known, active }) => !isAsking && (known === undefined || known === active),
      ),

    /** Keys whose leases must be renewed now, so that they do not expire. */
    toRenew(): string[] {
      const beforeMs = nowMs() - bounds.leaseRenewalMs;
      return [...entries]
        .filter(([, { isAsking, knownAtMs }]) => !isAsking && knownAtMs <= beforeMs)
        .map(([keyId]) => keyId);
    },
  };

  function entryOf(keyId: string): Entry {
    let entry = entries.get(keyId);
    if (entry === undefined) {
      entry = { active: 0, askedWith: 0, known: 0, knownAtMs: nowMs(), isAsking: false };
      entries.set(keyId, entry);
    }
    return entry;
  }
}

interface Entry {
  active: number;
  /** The value of `active` when the last call was sent. */
  askedWith: number;
  /** The store's count of the active requests; undefined after a failed call. */
  known: number | undefined;
  /** When the last call ended, or the entry was created; this process's clock, epoch ms. */
  knownAtMs: number;
  isAsking: boolean;
}
