import { FairQueue } from '../../shared/structures/fair-queue.ts';
import { RenewedMap } from '../../shared/structures/renewed-map.ts';
import { Rounds } from '../../shared/structures/rounds.ts';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { HeldKey, HeldKeys } from './held-keys.ts';
import type { DirectoryStore, FoundKey } from './store/directory-store.ts';

/**
 * The key whose secret it is. It may be held no more when the caller is told, as what is held is bounded and ends early.
 * `absent`: it is nobody's. `away`: the store gives no answer, and nothing was read before. `busy`: too many look-ups wait.
 */
export type LookUpResult = HeldKey | 'absent' | 'away' | 'busy';

/** How look-ups went, for metrics. */
export const lookUpOutcomes = ['found', 'absent', 'away', 'busy'] as const;

export type LookUpOutcome = (typeof lookUpOutcomes)[number];

export interface LookUps {
  /** @param holder the group of the client's address (`address-group.ts`) */
  lookUp(digest: string, holder: string): Promise<LookUpResult>;
  /** Reads a key that was read before; without an answer of the store it stays as it was. */
  readAgain(id: string): Promise<void>;
}

/**
 * Looks up secrets that this process has not read. Whoever floods it with unknown ones fills the queue of its own address
 * only, and addresses are served in turn. Requests with the same secret share a look-up, and look-ups that come close together
 * are made together: a flood of them then leaves more of the processor to everybody else.
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
  /** The store has been reached, or should have been. */
  readonly started: Promise<unknown>;
  readonly changes: OwnChanges;
  readonly count: (outcome: LookUpOutcome) => void;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Pick<
    Bounds,
    'directoryLookUpsMax' | 'directoryLookUpsWaitingMax' | 'directoryLookUpRoundMs' | 'directoryRereadsMax'
  >;
}): LookUps {
  const underWay = new RenewedMap<string, Promise<LookUpResult>>();
  const places = new Shares(bounds.directoryLookUpsWaitingMax);
  const queue = new FairQueue<() => void>();
  const rounds = new Rounds(bounds.directoryLookUpRoundMs);
  let inFlight = 0;

  return {
    lookUp(digest, holder) {
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
    async readAgain(id) {
      const before = changes.count();
      const found = await store.read(id);
      if (found.kind === 'absent') held.drop(id);
      else if (found.kind === 'found') keep(found, before);
    },
  };

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
      // Somebody may be left over from the last round.
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

  /** What was read before this process changed the key is read once more. */
  async function ask(digest: string): Promise<LookUpResult> {
    for (let reads = 0; reads <= bounds.directoryRereadsMax; reads++) {
      const before = changes.count();
      const found = await store.find(digest);
      count(found.kind);
      if (found.kind === 'away') return held.extend(digest, nowMs()) ?? 'away';
      if (found.kind === 'absent') {
        held.keepAbsent(digest, nowMs());
        return 'absent';
      }
      const kept = keep(found, before);
      if (kept !== undefined) return kept;
    }
    return 'busy';
  }

  /** What was read before this process changed the key is not kept: in memory there is no generation to show it. */
  function keep(found: FoundKey, changesBefore: number): HeldKey | undefined {
    return changes.lastOf(found.key.id) <= changesBefore ? held.keep(found, nowMs()) : undefined;
  }
}

/** The changes of keys that this process has made, numbered from 1. */
export interface OwnChanges {
  count(): number;
  /** The number of the key's last change; 0: it was long ago, or never. */
  lastOf(id: string): number;
}
