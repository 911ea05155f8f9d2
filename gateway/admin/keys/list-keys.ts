import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Key } from '../../shared/model.ts';
import type { KeySort, KeyState } from '../../shared/schema/query-words.ts';
import type { RecentUsage } from '../../usage/read/usage-reader.ts';
import type { KeyItem, KeyPage } from '../wires/keys/keys.ts';
import { spentWindows } from '../words/keys.js';
import { findKnownKeys, type ListedKey, statusesOf } from './find-keys.ts';
import { keyItemOf, newestSecret } from './key-item.ts';
import type { KeySources } from './key-sources.ts';

export interface KeyQuery {
  readonly state?: ReadonlySet<KeyState> | undefined;
  readonly plan?: string | undefined;
  /**
   * A part of the id or name, in upper or lower case. Directory keys without recent requests match only by the
   * beginning of the id.
   */
  readonly q?: string | undefined;
  /** Only keys whose newest valid secret was issued longer ago than this, ms, or at an unknown time. */
  readonly olderThan?: number | undefined;
  readonly sort: KeySort;
  /** The member `next` of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/**
 * Lists a page of the keys of the configuration and of the directory. In every order except `id`, the active keys come
 * first (at most 10,000, from an index). All other keys follow, sorted by id. The cost therefore depends on the number
 * of active keys and not on the number of all keys. With a filter, most checked keys may not match, so a search ends
 * after `bounds.adminKeysExaminedMax` checked keys. The result is undefined when the store does not reply.
 *
 * The next page continues after the last key of this page. If this key is no longer active or no longer exists, the
 * next page contains only keys sorted by id.
 *
 * While one server of a Redis Cluster is away, the list shows the keys of this server as the process has last seen them. While the server with
 * the index of active keys is away, the list is sorted by the activity that the process knows.
 *
 * The steps are nested functions, because they share the query and the ranked keys.
 */
export async function listKeys(sources: KeySources, query: KeyQuery): Promise<KeyPage | undefined> {
  const settings = sources.settings();
  const { usage, bounds, directory } = sources;
  const nowMs = sources.nowMs();
  const { after = '', state } = query;
  const filters = [state, query.plan, query.q, query.olderThan];
  const isFiltered = filters.some((one) => one !== undefined);
  const sort = usage === undefined ? 'id' : query.sort;
  const ranked = sort === 'id' ? noKeys : await rankedKeys(sort);

  const items: KeyItem[] = [];
  let examined = 0;
  let last = after;
  for await (const part of parts()) {
    if (part === undefined) return undefined;
    if (items.length === query.limit) return { keys: items, next: last };
    for (let from = 0; from < part.keys.length; ) {
      const room = query.limit - items.length;
      if (room === 0) return { keys: items, next: last };
      const size = state === undefined ? room : bounds.usageReadsPerTurnMax;
      const found = await itemsOf(part.keys.slice(from, from + size));
      if (found === undefined) return undefined;
      for (const item of found) {
        if (items.length === query.limit) return { keys: items, next: last };
        if (state === undefined || isInState(state, item)) items.push(item);
        last = item.id;
      }
      from += size;
    }
    if (items.length < query.limit) last = part.lastId;
    examined += part.examined;
    if (examined >= bounds.adminKeysExaminedMax) return { keys: items, next: last };
  }
  return { keys: items };

  /** Yields the keys that follow `after` in the list, in parts; undefined when the store does not reply. */
  async function* parts(): AsyncGenerator<Part | undefined> {
    const isBehindRanked = after !== '' && !ranked.has(after);
    if (!isBehindRanked) yield* rankedParts();
    yield* partsById(isBehindRanked || sort === 'id' ? after : '');
  }

  async function* rankedParts(): AsyncGenerator<Part | undefined> {
    const ids = [...ranked.keys()].filter((id) => isWantedIfConfigured(id));
    const begin = after === '' ? 0 : ids.indexOf(after) + 1;
    for (let from = begin; from < ids.length; from += bounds.usageReadsPerTurnMax) {
      yield await partOf(ids.slice(from, from + bounds.usageReadsPerTurnMax));
    }
  }

  async function* partsById(behind: string): AsyncGenerator<Part | undefined> {
    const rest = settings.keys.ids(behind)[Symbol.iterator]();
    const configured: string[] = [];
    const size = isFiltered ? bounds.usageReadsPerTurnMax : query.limit + 1;
    for (let from = behind; ; ) {
      await fill(configured, rest, size + 1);
      const ofFile = configured.splice(0, size);
      // The directory can search only for ids with a given prefix.
      const page = await directory?.page({ after: from, prefix: query.q, limit: size });
      if (page !== undefined && page.kind !== 'page') return yield undefined;
      const ofDirectory = (page?.ids ?? []).filter((id) => !settings.keys.has(id) && !ranked.has(id));
      // The configuration and the directory each return a part of their sorted ids. The merged part ends at the smaller
      // of the two last ids. Larger ids follow in the next part.
      const ends = [configured.length > 0 ? ofFile.at(-1) : undefined, page?.next];
      const [end] = ends.filter((id) => id !== undefined).sort();
      const isIn = (id: string) => end === undefined || id <= end;
      const ids = [...ofFile, ...ofDirectory].filter(isIn).sort();
      configured.unshift(...ofFile.filter((id) => !isIn(id)));
      if (ids.length > 0) yield await partOf(ids);
      if (end === undefined) return;
      from = end;
    }
  }

  /**
   * Adds matching ids of the configuration to `configured`, up to `size` ids. The function may check all keys, so it
   * yields to the event loop in between.
   */
  async function fill(configured: string[], rest: Iterator<string>, size: number): Promise<void> {
    for (let looked = 1; configured.length < size; looked++) {
      const { value: id, done } = rest.next();
      if (done) return;
      if (!ranked.has(id) && isWantedIfConfigured(id)) configured.push(id);
      if (looked % idsPerTurn === 0) await nextTurn();
    }
  }

  /** Returns the active keys in the chosen order; an empty map while the index cannot be read. */
  async function rankedKeys(by: Exclude<KeySort, 'id'>): Promise<ReadonlyMap<string, number>> {
    const active = (await usage?.reader.active()) ?? [];
    // An active id that is not in the configuration may belong to the directory, so it stays in the list. A later read
    // shows whether the directory has a key with this id.
    const known = active.filter(({ keyId }) => settings.keys.has(keyId) || directory !== undefined);
    if (by === 'lastSeen') return new Map(known.map(({ keyId, lastSeenMs }) => [keyId, lastSeenMs]));
    const recent = await usage?.reader.recent(
      known.map(({ keyId }) => keyId),
      nowMs,
    );
    const figures = known.map(({ keyId }) => [keyId, figureOf(recent?.get(keyId), by)] as const);
    return new Map(figures.sort(([a, inA], [b, inB]) => inB - inA || (a < b ? -1 : 1)));
  }

  async function partOf(ids: readonly string[]): Promise<Part | undefined> {
    const keys = await findKnownKeys(sources, ids);
    const lastId = ids.at(-1) ?? last;
    return (
      keys && {
        keys: keys.filter((one) => isWanted(one.key) && isOldEnough(one)),
        examined: ids.length,
        lastId,
      }
    );
  }

  async function itemsOf(keys: readonly ListedKey[]): Promise<KeyItem[] | undefined> {
    const ids = keys.map(({ key }) => key.id);
    const [statuses, recent] = await Promise.all([
      statusesOf(sources, keys),
      usage === undefined ? noUsage : usage.reader.recent(ids, nowMs),
    ]);
    if (statuses === undefined) return undefined;
    return keys.map((listed) => {
      const { id } = listed.key;
      const itsRecent = recent === undefined ? 'unknown' : recent.get(id);
      return keyItemOf({ ...listed, status: statuses.get(id), recent: usage ? itsRecent : 'off', nowMs });
    });
  }

  function isWanted({ id, name = '', plan }: Key): boolean {
    if (query.plan !== undefined && plan !== query.plan) return false;
    return query.q === undefined || `${id}\n${name}`.toLowerCase().includes(query.q.toLowerCase());
  }

  /** The age of a secret without a time of issue is not known: in the configuration it counts as old, but not in the directory. */
  function isOldEnough({ source, secrets }: ListedKey): boolean {
    const { olderThan } = query;
    if (olderThan === undefined) return true;
    const newest = newestSecret(secrets, nowMs);
    if (newest === undefined || (source === 'directory' && newest.createdMs === undefined)) return false;
    return (newest.createdMs ?? 0) < nowMs - olderThan;
  }

  /**
   * Whether a key of the configuration matches the filter. The result is true for every key of the directory. The
   * filter checks such a key later, after the key has been read.
   */
  function isWantedIfConfigured(id: string): boolean {
    if (query.plan === undefined && query.q === undefined) return true;
    const key = settings.keys.get(id);
    return key === undefined || isWanted(key);
  }
}

interface Part {
  readonly keys: readonly ListedKey[];
  /** The number of checked keys, including keys that do not match the filter, and the id of the last checked key. */
  readonly examined: number;
  readonly lastId: string;
}

/** The number of ids that are compared with a filter in one turn of the event loop. A turn takes about 1 ms. */
const idsPerTurn = 250;

/** A banned key is `limited` too if it stays refused after the ban. */
function isInState(states: ReadonlySet<KeyState>, item: KeyItem): boolean {
  return (
    states.has(item.state) ||
    (states.has('limited') && item.state === 'banned' && spentWindows(item).length > 0)
  );
}

const noKeys: ReadonlyMap<string, number> = new Map();
const noUsage: ReadonlyMap<string, RecentUsage> = new Map();

function figureOf(recent: RecentUsage | 'unknown' | undefined, sort: 'refused' | 'offered'): number {
  if (recent === undefined || recent === 'unknown') return 0;
  return sort === 'offered' ? recent.offered : recent.offered - recent.admitted;
}
