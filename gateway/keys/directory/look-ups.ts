import { FairQueue } from '../../shared/structures/fair-queue.ts';
import { RenewedMap } from '../../shared/structures/renewed-map.ts';
import { Rounds } from '../../shared/structures/rounds.ts';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { HeldKey, HeldKeys } from './held-keys.ts';
import type { DirectoryStore, FoundKey } from './store/directory-store.ts';

/**
 * The cache may no longer contain the `HeldKey`. `absent`: no key has the secret. `away`: the store does not answer and the key is not
 * cached. `busy`: too many look-ups wait.
 */
export type LookUpResult = HeldKey | 'absent' | 'away' | 'busy';

/** As the metrics count them. */
export const lookUpOutcomes = ['found', 'absent', 'away', 'busy'] as const;

export type LookUpOutcome = (typeof lookUpOutcomes)[number];

/**
 * Looks up secrets that this process has not cached. Client addresses take turns, so a flood of unknown secrets delays only its own
 * address. Requests with the same secret share one look-up. Look-ups that come close together are sent in one batch, which lowers the CPU
 * cost of a flood.
 */
export function createLookUps({
  store,
  held,
  started,
  changes,
  count,
  nowMs,
  bounds,
}: {
  readonly store: Pick<DirectoryStore, 'find' | 'read'>;
  readonly held: HeldKeys;
  /** Settles when the store is connected or its start timeout has passed. */
  readonly started: Promise<unknown>;
  readonly changes: KnownChanges;
  readonly count: (outcome: LookUpOutcome) => void;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}) {
  const underWay = new RenewedMap<string, Promise<LookUpResult>>();
  const places = new Shares(bounds.directoryLookUpsWaitingMax);
  const queue = new FairQueue<() => void>();
  const rounds = new Rounds(bounds.directoryLookUpRoundMs);
  /** Reads of `confirm` in flight, by key id. */
  const confirmations = new RenewedMap<string, Promise<number | undefined>>();
  let inFlight = 0;

  return {
    /** @param holder the group of the client's address (`address-group.ts`) */
    lookUp(digest: string, holder: string): Promise<LookUpResult> {
      const before = underWay.get(digest);
      if (before !== undefined) return before;
      if (!places.take(holder, 1)) {
        count('busy');
        return Promise.resolve('busy');
      }
      const lookUp = run(digest, holder).finally(() => {
        underWay.delete(digest);
        places.give(holder, 1);
      });
      underWay.set(digest, lookUp);
      return lookUp;
    },
    /** If the store does not answer, the cached key stays. */
    async readAgain(id: string): Promise<void> {
      const before = changes.count();
      const found = await store.read(id);
      if (found.kind === 'absent') held.drop(id);
      else if (found.kind === 'found') keep(found, before);
    },
    /**
     * Whether a cached key is still current. A key is read again after `directoryCachedMs`, once for several calls. If the store does not
     * answer, or if too many keys are being read, the key counts as current for a moment.
     */
    async confirm(id: string, generation: number): Promise<boolean> {
      if (held.isFresh(id, generation, nowMs())) return true;
      const reading = confirmations.get(id) ?? beginConfirmation(id);
      const current = await reading;
      return current === undefined || current === generation;
    },
  };

  function beginConfirmation(id: string): Promise<number | undefined> {
    if (confirmations.size >= bounds.directoryLookUpsMax) return Promise.resolve(undefined);
    const reading = readGeneration(id).finally(() => confirmations.delete(id));
    confirmations.set(id, reading);
    return reading;
  }

  /** @returns the present generation; -1 without a key, or if the key changed meanwhile; undefined when the store does not answer */
  async function readGeneration(id: string): Promise<number | undefined> {
    const before = changes.count();
    const found = await store.read(id, bounds.directoryLookUpDeadlineMs);
    if (changes.lastOf(id) > before) return -1;
    switch (found.kind) {
      case 'away':
        held.extendKey(id, nowMs());
        return undefined;
      case 'absent':
        held.drop(id);
        return -1;
      case 'found':
        return held.keep(found, nowMs()).generation;
    }
  }

  async function run(digest: string, holder: string): Promise<LookUpResult> {
    await started;
    const turn = new Promise<void>((resolve) => queue.push(holder, resolve));
    void rounds.join().then(begin);
    await turn;
    try {
      return await ask(digest);
    } finally {
      const wasFull = inFlight === bounds.directoryLookUpsMax;
      inFlight--;
      // If look-ups are waiting, the next one starts now.
      if (wasFull) begin();
    }
  }

  function begin(): void {
    while (inFlight < bounds.directoryLookUpsMax) {
      const next = queue.shift(() => true);
      if (next === undefined) return;
      inFlight++;
      next();
    }
  }

  /** Reads again if the process learned of a change of the key during the read. */
  async function ask(digest: string): Promise<LookUpResult> {
    for (let reads = 0; reads <= bounds.directoryRereadsMax; reads++) {
      const before = changes.count();
      const found = await store.find(digest);
      count(found.kind);
      if (found.kind === 'away') return held.extend(digest, nowMs()) ?? 'away';
      // A secret that was removed from its key is unknown, although a report of it finds the key.
      if (found.kind === 'absent' || !found.key.secrets.some((secret) => secret.digest === digest)) {
        held.keepAbsent(digest, nowMs());
        return 'absent';
      }
      const kept = keep(found, before);
      if (kept !== undefined) return kept;
    }
    return 'busy';
  }

  /**
   * Discards a record if the process learned of a change after the read began. A slow read could otherwise restore a key that a decision
   * has shown to be outdated.
   */
  function keep(found: FoundKey, changesBefore: number): HeldKey | undefined {
    return changes.lastOf(found.key.id) <= changesBefore ? held.keep(found, nowMs()) : undefined;
  }
}

/** The key changes that this process knows, numbered from 1. */
export interface KnownChanges {
  count(): number;
  /** 0 if this process knows no change of the key, or has forgotten it. */
  lastOf(id: string): number;
}
