import type { KnownKey } from '../../keys/directory/held-keys.ts';
import type { DirectoryStore } from '../../keys/directory/store/directory-store.ts';
import type { Key, KeyMembers, KeyStatus, Leak, PlanFigures, Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { UsageReader } from '../../usage/read/usage-reader.ts';
import type { Usage, UsageState } from '../../usage/usage.ts';
import { type AdminResponse, errorResponse } from '../admin-response.ts';
import { noSuchKeyText } from '../words/keys.js';

export interface KeySources {
  readonly settings: () => Settings;
  /** Reads the quota status of keys from the store; undefined when the store does not reply for one of the keys. */
  readonly readStatus: (keys: readonly Key[]) => Promise<readonly (KeyStatus | undefined)[] | undefined>;
  /** The key directory; undefined when all keys are in the configuration. */
  readonly directory?: Pick<DirectoryStore, 'page' | 'readMany'> | undefined;
  /**
   * Reads keys of the directory as the processes of this gateway have last read them for requests; undefined for a key that they do not
   * have. Such a key is shown while the directory does not reply.
   */
  readonly readHeldKeys?:
    | ((ids: readonly string[]) => Promise<readonly (KnownKey | undefined)[]>)
    | undefined;
  /** Returns the leak of a secret of the configuration, by the digest of the secret. Absent where no secret has leaked. */
  readonly leakOf?: ((digest: string) => Leak | undefined) | undefined;
  /** Returns the figures of capabilities about plans, by the name of the plan. */
  readonly planFigures?:
    | (() => ReadonlyMap<string, PlanFigures> | Promise<ReadonlyMap<string, PlanFigures>>)
    | undefined;
  /** The usage record; undefined when it is switched off. */
  readonly usage?:
    | (Pick<Usage, 'totals'> & { readonly reader: UsageReader; state(): Pick<UsageState, 'keptDays'> })
    | undefined;
  /** Returns the time of the store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}

export interface KeyDetailSources extends KeySources {
  /** Reads the members of keys that belong to capabilities; undefined for a key whose store does not reply. */
  readonly readMembers: (keyIds: readonly string[]) => Promise<readonly (KeyMembers | undefined)[]>;
}

export function noSuchKey(): AdminResponse {
  return errorResponse('not_found', noSuchKeyText);
}

/**
 * A secret of a key in responses: the beginning of its digest, its expiry (Infinity means never), its time of issue, and
 * its leak. A leaked secret that has ended also has an expiry.
 */
export interface SecretView {
  readonly digestStart: string;
  readonly expiresMs: number;
  /** The expiry in the definition of the key, which a leak does not change; absent without an expiry. */
  readonly statedExpiresMs?: number | undefined;
  readonly createdMs?: number | undefined;
  /** The first digits of the digest of the secret with which the holder of the key issued this secret. */
  readonly issuedFrom?: string | undefined;
  readonly leak?: Leak | undefined;
}

/** Returns the file and line at which an operator edits the key; undefined when the key is not in the configuration. */
export function placeOfKey(
  settings: Settings,
  id: string,
): { readonly file: string; readonly line: number } | undefined {
  const { keys, keysFile } = settings;
  const line = keysFile?.lines[keys.rankOf(id) ?? -1];
  return keysFile === undefined || line === undefined ? undefined : { file: keysFile.path, line };
}
