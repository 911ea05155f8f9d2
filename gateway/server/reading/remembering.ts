import { noteMissing } from '../../admin/api/missing-data.ts';
import type { KeySources } from '../../admin/keys/key-sources.ts';
import type { DirectoryKey } from '../../keys/directory/directory-key.ts';
import type { QuotaState } from '../../quota/hash.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { latestOf } from '../../usage/store/active-keys.ts';
import type { ActiveKey } from '../../usage/store/usage-store.ts';
import type { Kept } from './reading-messages.ts';
import { RecordMemory } from './record-memory.ts';

/**
 * Reads the records of keys from Redis. While Redis does not reply, the records come from earlier replies and from the memory of the process.
 * Each such record is noted for the response (`missing-data.ts`). If no server replies, Redis is asked again after `readingAwayRetryMs`.
 *
 * @param own the memory of the main thread
 * @param readHeldKeys reads the keys of the directory that processes hold for requests
 */
export function createRemembering(
  kept: Kept,
  own: Kept,
  readHeldKeys: NonNullable<KeySources['readHeldKeys']>,
  bounds: Pick<Bounds, 'readingAwayRetryMs' | 'readingRememberedNumbersMax' | 'readingRememberedKeysMax'>,
): Kept {
  const records = new RecordMemory(bounds.readingRememberedNumbersMax);
  /** Keys of the directory, with the last read key last. */
  const keys = new Map<string, DirectoryKey>();
  /** Counts of keys, with the last read key last. */
  const states = new Map<string, Readonly<QuotaState>>();
  let active: readonly ActiveKey[] = [];
  /** Monotonic, ms. */
  let retryAtMs = 0;

  return {
    async readStatuses(asked) {
      const read = await ask(
        () => kept.readStatuses(asked),
        ({ kind }) => kind === 'read',
      );
      const found = read?.kind === 'read' ? read.keys : asked.map(() => undefined);
      for (const [index, { id }] of asked.entries()) {
        const state = read?.kind === 'read' ? read.states?.[index] : undefined;
        if (state !== undefined) remember(states, id, state);
      }
      if (!found.includes(undefined)) return { kind: 'read', keys: found };
      noteMissing('requests');
      const known = await own.readStatuses(asked.map((key) => ({ ...key, read: states.get(key.id) })));
      return {
        kind: 'read',
        keys: found.map((one, i) => one ?? (known.kind === 'read' ? known.keys[i] : one)),
      };
    },

    async readRecords(reads) {
      const read = await ask(
        () => kept.readRecords(reads),
        (found) => found !== undefined,
      );
      const found = read ?? reads.map(() => undefined);
      for (const [index, stored] of found.entries()) {
        const asked = reads[index];
        if (stored !== undefined && asked !== undefined) records.remember(asked, stored);
      }
      const lacking = reads.filter((_, index) => found[index] === undefined);
      if (lacking.length === 0) return found;
      noteMissing('requests');
      const recorded = ((await own.readRecords(lacking)) ?? []).values();
      return reads.map((asked, index) => found[index] ?? records.find(asked, recorded.next().value));
    },

    async readActive() {
      const read = await ask(kept.readActive, (found) => found !== undefined);
      if (read !== undefined) {
        active = read;
        return read;
      }
      noteMissing('requests');
      return latestOf([...active, ...((await own.readActive()) ?? [])]);
    },

    async readLastSeen(ids) {
      const read = await ask(
        () => kept.readLastSeen(ids),
        (found) => found !== undefined,
      );
      if (read !== undefined) return read;
      noteMissing('requests');
      const lastSeen = new Map(active.map((one) => [one.keyId, one.lastSeenMs]));
      const recorded = (await own.readLastSeen(ids)) ?? [];
      return ids.map((id, index) => Math.max(lastSeen.get(id) ?? 0, recorded[index] ?? 0));
    },

    ...(kept.directory && { directory: rememberedDirectory(kept.directory) }),
  };

  function rememberedDirectory(directory: NonNullable<Kept['directory']>): NonNullable<Kept['directory']> {
    return {
      async readMany(ids) {
        const read = await ask(
          () => directory.readMany(ids),
          ({ kind }) => kind === 'found',
        );
        const found = read?.kind === 'found' ? read.keys : ids.map(() => 'unknown' as const);
        for (const key of found) if (typeof key === 'object') remember(keys, key.id, key);
        if (found.includes('unknown')) noteMissing('keys');
        return {
          kind: 'found',
          keys: found.map((key, index) => (key === 'unknown' ? (keys.get(ids[index] ?? '') ?? key) : key)),
        };
      },

      async page(query) {
        const read = await ask(
          () => directory.page(query),
          ({ kind }) => kind === 'page',
        );
        if (read?.kind === 'page') return read;
        noteMissing('keys');
        const { after = '', prefix = '', limit } = query;
        const known = [...keys.keys(), ...(await usedKeys())];
        const ids = [...new Set(known)].filter((id) => id > after && id.startsWith(prefix)).sort();
        const page = ids.slice(0, limit);
        return { kind: 'page', ids: page, next: ids.length > limit ? page.at(-1) : undefined };
      },
    };
  }

  /** The ids of the keys of the directory that requests have used lately. */
  async function usedKeys(): Promise<readonly string[]> {
    const used = latestOf([...active, ...((await own.readActive()) ?? [])]).map(({ keyId }) => keyId);
    const held = await readHeldKeys(used);
    return used.filter((_, index) => held[index] !== undefined);
  }

  /** Asks Redis, unless no server has replied just before. */
  async function ask<Reply>(
    read: () => Promise<Reply>,
    isReply: (reply: Reply) => boolean,
  ): Promise<Reply | undefined> {
    if (performance.now() < retryAtMs) return undefined;
    const reply = await read();
    if (!isReply(reply)) retryAtMs = performance.now() + bounds.readingAwayRetryMs;
    return reply;
  }

  function remember<Known>(all: Map<string, Known>, id: string, known: Known): void {
    all.delete(id);
    all.set(id, known);
    for (const oldest of all.keys()) {
      if (all.size <= bounds.readingRememberedKeysMax) break;
      all.delete(oldest);
    }
  }
}
