import type { KeyMembers, Settings } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { digestStart } from '../../../shared/secrets.ts';
import type { ProcessSources } from '../../interfaces/running.ts';
import type { LinksMember } from './link-shape.ts';
import { createLinkStore, type Link, type LinkStore } from './link-store.ts';
import { findLinkedKey, isOpen, type LinkedKey } from './linked-key.ts';

export type Links = ReturnType<typeof createLinks>;

/** The links of a key that open its page. `stale`: digests of links that have ended, or that belong to an earlier key with the same id. */
interface LinksOfKey {
  readonly kind: 'read';
  readonly of: LinkedKey;
  readonly open: readonly Link[];
  readonly stale: readonly string[];
  /** Epoch ms on the clock of Redis. */
  readonly nowMs: number;
}

/** Reads the links of keys, for operators, for holders and for the requests that present a link. No promise rejects. */
export function createLinks({
  counts,
  directory,
  blocked,
  settings,
  nowMs,
  bounds,
}: Pick<ProcessSources, 'counts' | 'directory' | 'blocked' | 'settings' | 'nowMs' | 'bounds'>) {
  const store: LinkStore | undefined = counts.redis && createLinkStore(counts.redis, bounds);

  async function read(keyId: string): Promise<LinksOfKey | 'absent' | 'away'> {
    const of = await keyOf(keyId, settings());
    if (of.kind !== 'found') return of.kind;
    const all = (await store?.readAll(keyId)) ?? { kind: 'read', links: [], nowMs: nowMs() };
    return all.kind === 'away' ? 'away' : linksOf(of, all);
  }

  function linksOf(
    of: LinkedKey,
    { links, nowMs: atMs }: Pick<LinksOfKey, 'nowMs'> & { readonly links: readonly Link[] },
  ): LinksOfKey {
    const open = links.filter((link) => isOpen(link, of, atMs));
    const stale = links.filter((link) => !open.includes(link)).map(({ digest }) => digest);
    return { kind: 'read', of, open: open.toSorted((a, b) => a.endMs - b.endMs), stale, nowMs: atMs };
  }

  function keyOf(keyId: string, of: Pick<Settings, 'keys'>) {
    return findLinkedKey(keyId, { settings: of, directory, blocked, nowMs: nowMs() });
  }

  return {
    /** Undefined without Redis. */
    store,
    read,
    keyOf,
    async readKeyMembers(keyIds: readonly string[]): Promise<readonly (KeyMembers | undefined)[]> {
      const { limitsPath } = settings();
      if (store === undefined || limitsPath === undefined) return keyIds.map(() => ({}));
      return Promise.all(keyIds.map(membersOf));
    },
  };

  async function membersOf(keyId: string): Promise<KeyMembers | undefined> {
    if (!counts.isThere(keyId)) return undefined;
    // Most keys have no link, and then the key is not looked up.
    const all = await store?.readAll(keyId);
    if (all?.kind !== 'read') return undefined;
    if (all.links.length === 0) return { links: [] };
    const of = await keyOf(keyId, settings());
    if (of.kind === 'away') return undefined;
    const open = of.kind === 'found' ? linksOf(of, all).open : [];
    return { links: open.map(linkView) };
  }
}

/** A link as operators and the holder of the key see it. */
export function linkView({ digest, by, createdMs, endMs }: Link): LinksMember {
  return { digestStart: digestStart(digest), by, createdAt: isoOf(createdMs), untilAt: isoOf(endMs) };
}
