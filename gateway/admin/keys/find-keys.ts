import {
  type DirectoryKey,
  type DirectorySecret,
  expiryOf,
  type KeyVersion,
  statedOf,
} from '../../keys/directory/directory-key.ts';
import type { CachedKey } from '../../keys/directory/packed-held-keys.ts';
import type { StatedKey } from '../../keys/key-schema.ts';
import { inForceForDirectory, tableIn } from '../../keys/key-table.ts';
import { compileKey, type InForce, planNameAt } from '../../keys/plans/compile-key.ts';
import type { Key, KeyStatus, Settings } from '../../shared/model.ts';
import { digestStart } from '../../shared/secrets.ts';
import { type KeySources, placeOfKey, type SecretView } from './key-sources.ts';

export interface ListedKey {
  /** The compiled key. A key whose plan is missing from the configuration has no limits, and its requests get 401. */
  readonly key: Key;
  readonly source: 'file' | 'directory';
  readonly place?: { readonly file: string; readonly line: number } | undefined;
  readonly secrets: readonly SecretView[];
  /** The key as the operator stated it; undefined if it could not be read. */
  readonly stated?: StatedKey;
  readonly version?: KeyVersion;
  /** Set when only the id is known, because the Redis server with the definition does not reply. */
  readonly isUnread?: true;
}

type DefinitionSources = Pick<
  KeySources,
  'settings' | 'directory' | 'readHeldKeys' | 'leakOf' | 'bounds' | 'nowMs'
>;

/**
 * Returns the sorted ids of a page of all keys. The page begins after the last id of the previous page. The result is undefined when the
 * directory does not reply.
 *
 * @param options.further further ids that belong to the list, in any order
 */
export async function pageOfIds(
  { settings, directory }: Pick<KeySources, 'settings' | 'directory'>,
  {
    after,
    limit,
    further = [],
  }: { readonly after: string; readonly limit: number; readonly further?: readonly string[] },
): Promise<{ readonly ids: readonly string[]; readonly next?: string | undefined } | undefined> {
  const issued = await directory?.page({ after, limit: limit + 1 });
  if (issued !== undefined && issued.kind !== 'page') return undefined;
  const configured = Iterator.from(settings().keys.ids(after)).take(limit + 1);
  const behind = further.filter((id) => id > after);
  // The directory may return fewer ids than it was asked for. The ids after its last id follow on the next page.
  const end = issued?.next;
  const all = [...new Set([...configured, ...(issued?.ids ?? []), ...behind])]
    .filter((id) => end === undefined || id <= end)
    .sort();
  const ids = all.slice(0, limit);
  return { ids, next: all.length > limit ? ids.at(-1) : end };
}

/**
 * Finds the keys with these ids in the configuration and in the directory. The result has the same order as the ids,
 * and omits unknown ids. The result is undefined when the directory does not reply for one of the keys.
 */
export async function findKeys(
  sources: DefinitionSources,
  ids: readonly string[],
): Promise<readonly ListedKey[] | undefined> {
  const found = await findKnownKeys(sources, ids);
  return found?.some(({ isUnread }) => isUnread) ? undefined : found;
}

/** Like `findKeys`, but the result includes keys that could not be read. */
export async function findKnownKeys(
  sources: DefinitionSources,
  ids: readonly string[],
): Promise<readonly ListedKey[] | undefined> {
  const { directory, bounds } = sources;
  const settings = sources.settings();
  const inForce = inForceForDirectory(settings, sources.nowMs());
  const issued = new Map<string, ListedKey>();
  const unknown = directory === undefined ? [] : ids.filter((id) => !settings.keys.has(id));
  for (let from = 0; from < unknown.length; from += bounds.usageReadsPerTurnMax) {
    const asked = unknown.slice(from, from + bounds.usageReadsPerTurnMax);
    const read = await directory?.readMany(asked);
    if (read?.kind !== 'found') return undefined;
    for (const [index, id] of asked.entries()) {
      const record = read.keys[index];
      if (record === 'unknown') issued.set(id, unreadKey(id));
      else if (record !== undefined) issued.set(id, issuedKey(record, inForce));
    }
  }
  const unread = unknown.filter((id) => issued.get(id)?.isUnread);
  const held = (await sources.readHeldKeys?.(unread)) ?? [];
  for (const [index, id] of unread.entries()) {
    const known = held[index];
    if (known !== undefined) issued.set(id, issuedKey(known.key, inForce));
  }
  return ids.flatMap((id) => configuredKey(id, settings, sources.leakOf) ?? issued.get(id) ?? []);
}

function configuredKey(id: string, settings: Settings, leakOf: KeySources['leakOf']): ListedKey | undefined {
  const key = settings.keys.get(id);
  const stated = tableIn(settings.keys).statedOf(id);
  if (key === undefined || stated === undefined) return undefined;
  const secrets = stated.secrets.map(({ sha256, created, expires }) => {
    const leak = leakOf?.(sha256);
    const endMs = expires ?? Number.POSITIVE_INFINITY;
    return {
      digestStart: digestStart(sha256),
      expiresMs: leak?.ended ? Math.min(endMs, leak.atMs) : endMs,
      statedExpiresMs: expires,
      createdMs: created,
      leak,
    };
  });
  return { key, source: 'file', place: placeOfKey(settings, id), secrets, stated };
}

function unreadKey(id: string): ListedKey {
  const key = { id, plan: '', limits: [], disabled: false };
  return { key, source: 'directory', secrets: [], isUnread: true };
}

/** Of a key that a process holds for requests, the version and the times of issue are not known. */
function issuedKey(record: DirectoryKey | CachedKey, inForce: InForce): ListedKey {
  const { id, name, disabled } = record;
  const withoutPlan = { id, plan: planNameAt(record, inForce.atMs), name, limits: [], disabled };
  return {
    key: compileKey(record, inForce) ?? withoutPlan,
    source: 'directory',
    stated: statedOf(record),
    ...('revision' in record && { version: record }),
    secrets: record.secrets.map((secret: Partial<DirectorySecret> & CachedKey['secrets'][number]) => ({
      digestStart: digestStart(secret.digest),
      createdMs: secret.createdMs,
      expiresMs: expiryOf(secret),
      statedExpiresMs: secret.expiresMs,
      issuedFrom: secret.issuedFrom && digestStart(secret.issuedFrom),
      leak: secret.leak,
    })),
  };
}

/**
 * Reads the quota status of each key. A key without limits gets an empty status. The result is undefined when the
 * store does not reply.
 */
export async function statusesOf(
  sources: Pick<KeySources, 'readStatus' | 'bounds' | 'nowMs'>,
  keys: readonly ListedKey[],
): Promise<ReadonlyMap<string, KeyStatus> | undefined> {
  const statuses = new Map<string, KeyStatus>();
  const [limited, unlimited] = [true, false].map((isLimited) =>
    keys
      .filter(({ key, isUnread }) => !isUnread && key.limits.length > 0 === isLimited)
      .map(({ key }) => key),
  ) as [Key[], Key[]];
  // The status is read in batches, so that Redis can serve customers' requests between the batches.
  for (let from = 0; from < limited.length; from += sources.bounds.usageReadsPerTurnMax) {
    const part = limited.slice(from, from + sources.bounds.usageReadsPerTurnMax);
    const read = await sources.readStatus(part);
    if (read === undefined) return undefined;
    for (const [index, { id }] of part.entries()) {
      const status = read[index];
      if (status !== undefined) statuses.set(id, status);
    }
  }
  const nowMs = sources.nowMs();
  const inForce = { name: 'day', limit: 0, remaining: 0, resetMs: nowMs, windowSeconds: 0 } as const;
  const nothing: KeyStatus = {
    rateLimit: { nowMs, windows: [], inForce },
    retryAtMs: 0,
    used: [],
    strikes: 0,
    strikesFromMs: 0,
    banLevel: 0,
  };
  for (const { id } of unlimited) statuses.set(id, nothing);
  return statuses;
}
