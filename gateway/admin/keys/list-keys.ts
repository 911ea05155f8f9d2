import type { Key } from '../../model.ts';
import type { RecentUsage } from '../../usage/usage-reader.ts';
import { type KeyItem, type KeyState, keyItem } from './key-item.ts';
import { type KeySources, placeOfKey, readStatuses, secretsOf, sortedIds } from './key-sources.ts';

/** How a list is sorted: by id, or by what the last 24 hours had most of, or by who was there last. */
export const keySorts = ['refused', 'offered', 'lastSeen', 'id'] as const;

export type KeySort = (typeof keySorts)[number];

export interface KeyQuery {
  readonly state?: KeyState | undefined;
  readonly plan?: string | undefined;
  /** A part of its id or name, in any case. */
  readonly q?: string | undefined;
  readonly sort: KeySort;
  /** `next` of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface KeyPage {
  readonly keys: readonly KeyItem[];
  /** Where the next page begins: there may be more, or the search ended at its bound before the page was full. */
  readonly next?: string;
}

/**
 * A page of the keys. What it costs depends on the keys that were active lately (10,000 at most, from an index), and not on
 * how many keys there are: sorted by anything but the id, those come first, and all others behind them by id. With a filter by
 * state the store is asked about one key after the other, so a search ends after `bounds.adminKeysExaminedMax` keys.
 * Undefined when the store gives no answer.
 */
export async function listKeys(sources: KeySources, query: KeyQuery): Promise<KeyPage | undefined> {
  const settings = sources.settings();
  const { usage, bounds } = sources;
  const nowMs = sources.nowMs();
  const isWanted = ({ id, name = '', plan }: Key) =>
    (query.plan === undefined || plan === query.plan) &&
    (query.q === undefined || `${id}\n${name}`.toLowerCase().includes(query.q.toLowerCase()));

  const sort = usage === undefined ? 'id' : query.sort;
  const ranked = sort === 'id' ? noKeys : await rankedKeys(sort);
  if (ranked === undefined) return undefined;
  const rest = sortedIds(settings).filter((id) => !ranked.has(id));
  const ids = [...ranked.keys(), ...rest];
  const wanted = ids.filter((id) => {
    const key = settings.keys.get(id);
    return key !== undefined && isWanted(key);
  });

  const items: KeyItem[] = [];
  let at = placeBehind(wanted, query);
  const end = Math.min(
    wanted.length,
    at + (query.state === undefined ? query.limit : bounds.adminKeysExaminedMax),
  );
  while (at < end && items.length < query.limit) {
    const part = wanted.slice(at, Math.min(end, at + bounds.usageReadsPerTurnMax));
    const found = await itemsOf(part);
    if (found === undefined) return undefined;
    for (const item of found) {
      at += 1;
      if (query.state === undefined || item.state === query.state) items.push(item);
      if (items.length === query.limit) break;
    }
  }
  const last = wanted[at - 1];
  return { keys: items, ...(at < wanted.length && last !== undefined && { next: last }) };

  /** The active keys, those first that have most. */
  async function rankedKeys(by: Exclude<KeySort, 'id'>): Promise<ReadonlyMap<string, number> | undefined> {
    const active = await usage?.reader.active();
    if (active === undefined) return undefined;
    const known = active.filter(({ keyId }) => settings.keys.has(keyId));
    if (by === 'lastSeen') return new Map(known.map(({ keyId, lastSeenMs }) => [keyId, lastSeenMs]));
    const recent = await usage?.reader.recent(
      known.map(({ keyId }) => keyId),
      nowMs,
    );
    if (recent === undefined) return undefined;
    const figures = known.map(({ keyId }) => [keyId, figureOf(recent.get(keyId), by)] as const);
    return new Map(figures.sort(([a, inA], [b, inB]) => inB - inA || (a < b ? -1 : 1)));
  }

  async function itemsOf(part: readonly string[]): Promise<KeyItem[] | undefined> {
    const keys = part.flatMap((id) => settings.keys.get(id) ?? []);
    const [statuses, recent] = await Promise.all([
      readStatuses(sources, keys),
      usage === undefined ? noUsage : usage.reader.recent(part, nowMs),
    ]);
    if (statuses === undefined || recent === undefined) return undefined;
    return keys.flatMap((key) => {
      const status = statuses.get(key.id);
      if (status === undefined) return [];
      const secrets = secretsOf(settings).get(key.id) ?? [];
      const place = placeOfKey(settings, key.id);
      return keyItem({ key, place, status, secrets, recent: usage ? recent.get(key.id) : 'off', nowMs });
    });
  }
}

const noKeys: ReadonlyMap<string, number> = new Map();
const noUsage: ReadonlyMap<string, RecentUsage> = new Map();

function figureOf(recent: RecentUsage | undefined, sort: 'refused' | 'offered'): number {
  if (recent === undefined) return 0;
  return sort === 'offered' ? recent.offered : recent.offered - recent.admitted;
}

/**
 * Keys may have changed places since the page before: the next one goes on behind where its last key is now. By id it goes
 * on there also when that key is gone; else the list begins again.
 */
function placeBehind(ids: readonly string[], { after, sort }: KeyQuery): number {
  if (after === undefined) return 0;
  const place = ids.indexOf(after);
  if (place !== -1 || sort !== 'id') return place + 1;
  const next = ids.findIndex((id) => id > after);
  return next === -1 ? ids.length : next;
}
