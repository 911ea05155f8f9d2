import { randomBytes } from 'node:crypto';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { Concurrency } from './store/leases.ts';

/**
 * The requests that this process serves now, of keys with a concurrency limit. Each call to the store states their number, so a lost
 * reply or a lost store is corrected by the next call. Therefore a key has at most one call at a time: a second call would not know
 * how many requests the first call admits.
 */
export function createActiveRequests({
  nowMs,
  bounds,
}: {
  readonly nowMs: () => number;
  readonly bounds: Pick<Bounds, 'leaseMs' | 'leaseRenewalMs'>;
}) {
  // 48 random bits, because two processes with one name would replace each other's lease.
  const process = randomBytes(6).toString('base64url');
  const entries = new Map<string, Entry>();

  return {
    /** The number of requests of a key that this process serves. */
    of: (keyId: string) => entries.get(keyId)?.active ?? 0,

    /** Whether this process serves requests of a key, or must still tell the store that it no longer does. */
    has: (keyId: string) => entries.has(keyId),

    /** Reserves the next call of a key. */
    markAsking(keyId: string): void {
      entryOf(keyId).isAsking = true;
    },

    /** What a call to the store says about the requests of a key. */
    begin(keyId: string, max: number): Concurrency {
      const entry = entryOf(keyId);
      entry.askedWith = entry.active;
      return { max, process, active: entry.active, leaseMs: bounds.leaseMs };
    },

    /** Whether a call of the key has no reply yet. */
    isAsking: (keyId: string) => entries.get(keyId)?.isAsking === true,

    /**
     * Ends a call, and counts its admitted requests.
     *
     * @param stored whether the store has counted them; otherwise the store is told at the next renewal
     * @returns whether the store must be told at once, because requests have ended since the call was sent
     */
    end(keyId: string, admitted: number, stored: boolean): boolean {
      const entry = entryOf(keyId);
      entry.isAsking = false;
      entry.active += admitted;
      entry.known = stored ? entry.askedWith + admitted : undefined;
      entry.knownAtMs = nowMs();
      // After a failed call the lease of an idle key expires by itself.
      if (entry.active === 0 && (entry.known ?? 0) === 0) entries.delete(keyId);
      return stored && entry.known !== entry.active;
    },

    /** A request has ended. */
    release(keyId: string): void {
      const entry = entries.get(keyId);
      if (entry !== undefined) entry.active -= 1;
    },

    /** Keys whose requests the store must be told again, so that their lease does not expire. */
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
  /** `active` when the last call was sent. */
  askedWith: number;
  /** The number that the store has; undefined after a failed call. */
  known: number | undefined;
  /** When the store was last told; this process's clock, epoch ms. */
  knownAtMs: number;
  isAsking: boolean;
}
