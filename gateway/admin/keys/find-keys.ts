import { compileKey } from '../../keys/compile-key.ts';
import {
  type DirectoryKey,
  expiryOf,
  type KeyVersion,
  statedOf,
} from '../../keys/directory/directory-key.ts';
import type { StatedKey } from '../../keys/key-schema.ts';
import { tableIn } from '../../keys/key-table.ts';
import { plansAt } from '../../keys/plans.ts';
import type { Key, KeyStatus, Plans, Settings } from '../../shared/model.ts';
import { digestStart } from '../../shared/secrets.ts';
import { type KeySources, placeOfKey, readStatuses, type SecretView } from './key-sources.ts';

/** A key, and where it is written. */
export interface ListedKey {
  /** Without limits where the configuration does not have its plan: then each of its requests gets 401. */
  readonly key: Key;
  readonly source: 'file' | 'directory';
  readonly place?: { readonly file: string; readonly line: number } | undefined;
  readonly secrets: readonly SecretView[];
  /** The stated members that are not in `key`. */
  readonly others?: object;
  /** The version of its definition in the directory. */
  readonly version?: KeyVersion;
  /** Only its id is known: the server of Redis that keeps its definition gives no answer. */
  readonly isUnread?: true;
}

type DefinitionSources = Pick<KeySources, 'settings' | 'directory' | 'nowMs' | 'bounds'>;

/**
 * Keys by their ids, in that order, of the configuration and of the directory; an id that is in neither is left out.
 * Undefined when the directory gives no answer for one of the keys.
 */
export async function findKeys(
  sources: DefinitionSources,
  ids: readonly string[],
): Promise<readonly ListedKey[] | undefined> {
  const found = await findKnownKeys(sources, ids);
  return found?.some(({ isUnread }) => isUnread) ? undefined : found;
}

/** The same, where keys are listed that could not be read. */
export async function findKnownKeys(
  sources: DefinitionSources,
  ids: readonly string[],
): Promise<readonly ListedKey[] | undefined> {
  const { directory, nowMs, bounds } = sources;
  const settings = sources.settings();
  const plans = plansAt(settings, nowMs());
  const issued = new Map<string, ListedKey>();
  const unknown = directory === undefined ? [] : ids.filter((id) => !settings.keys.has(id));
  for (let from = 0; from < unknown.length; from += bounds.usageReadsPerTurnMax) {
    const asked = unknown.slice(from, from + bounds.usageReadsPerTurnMax);
    const read = await directory?.readMany(asked);
    if (read?.kind !== 'found') return undefined;
    for (const [index, id] of asked.entries()) {
      const record = read.keys[index];
      if (record === 'unknown') issued.set(id, unreadKey(id));
      else if (record !== undefined) issued.set(id, issuedKey(record, plans));
    }
  }
  return ids.flatMap((id) => configuredKey(id, settings) ?? issued.get(id) ?? []);
}

function configuredKey(id: string, settings: Settings): ListedKey | undefined {
  const key = settings.keys.get(id);
  const stated = tableIn(settings.keys).statedOf(id);
  if (key === undefined || stated === undefined) return undefined;
  const secrets = stated.secrets.map(({ sha256, created, expires = Number.POSITIVE_INFINITY }) => ({
    digestStart: digestStart(sha256),
    expiresMs: expires,
    ...(created !== undefined && { createdMs: created }),
  }));
  return { key, source: 'file', place: placeOfKey(settings, id), secrets, others: othersOf(stated) };
}

function othersOf({
  id: _,
  plan: _plan,
  name: _name,
  limits: _limits,
  operations: _operations,
  disabled: _disabled,
  secrets: _secrets,
  ...others
}: StatedKey & { readonly secrets?: unknown }): object {
  return others;
}

function unreadKey(id: string): ListedKey {
  const key = { id, plan: '', limits: [], disabled: false };
  return { key, source: 'directory', secrets: [], isUnread: true };
}

function issuedKey(record: DirectoryKey, plans: Plans): ListedKey {
  const { id, plan, name, disabled } = record;
  const withoutPlan = { id, plan, ...(name !== undefined && { name }), limits: [], disabled };
  return {
    key: compileKey(record, plans) ?? withoutPlan,
    source: 'directory',
    others: othersOf(statedOf(record)),
    version: record,
    secrets: record.secrets.map((secret) => ({
      digestStart: digestStart(secret.digest),
      createdMs: secret.createdMs,
      expiresMs: expiryOf(secret),
    })),
  };
}

/** Quota status of each known key. A key without limits gets an empty status. Undefined when the store gives no answer. */
export async function statusesOf(
  sources: Pick<KeySources, 'readStatus' | 'bounds' | 'nowMs'>,
  keys: readonly ListedKey[],
): Promise<ReadonlyMap<string, KeyStatus> | undefined> {
  const read = keys.filter(({ isUnread }) => !isUnread).map(({ key }) => key);
  const [limited, unlimited] = [true, false].map((isLimited) =>
    read.filter(({ limits }) => limits.length > 0 === isLimited),
  );
  const statuses = await readStatuses(sources, limited ?? []);
  if (statuses === undefined || unlimited?.length === 0) return statuses;
  const nowMs = sources.nowMs();
  const inForce = { name: 'day', limit: 0, remaining: 0, resetMs: nowMs, windowSeconds: 0 } as const;
  const nothing: KeyStatus = {
    rateLimit: { nowMs, windows: [], inForce },
    retryAtMs: 0,
    used: [],
    strikes: 0,
    banLevel: 0,
  };
  return new Map([...statuses, ...(unlimited ?? []).map(({ id }) => [id, nothing] as const)]);
}
