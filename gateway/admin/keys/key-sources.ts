import type { DirectoryStore } from '../../keys/directory/store/directory-store.ts';
import type { Key, KeyStatus, Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { Usage, UsageState } from '../../usage/usage.ts';
import type { UsageReader } from '../../usage/usage-reader.ts';
import { type AdminResponse, errorResponse } from '../admin-response.ts';

/** The parts that the views of keys and operations read. */
export interface KeySources {
  /** The current settings. */
  readonly settings: () => Settings;
  /** Quota status of keys in the store; undefined when the store does not reply for one of the keys. */
  readonly readStatus: (keys: readonly Key[]) => Promise<readonly (KeyStatus | undefined)[] | undefined>;
  /** Absent: all keys are in the configuration. */
  readonly directory?: Pick<DirectoryStore, 'page' | 'readMany'> | undefined;
  /** Absent without a usage record. */
  readonly usage?:
    | (Pick<Usage, 'totals'> & { readonly reader: UsageReader; state(): Pick<UsageState, 'keptDays'> })
    | undefined;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}

export function noSuchKey(): AdminResponse {
  return errorResponse('not_found', 'There is no key with this id.');
}

/** A secret of a key: the beginning of its digest, its expiry (Infinity: never), and its time of issue. */
export interface SecretView {
  readonly digestStart: string;
  readonly expiresMs: number;
  readonly createdMs?: number | undefined;
}

/** The place of a key in the configuration, from which it can be edited; undefined when it is not there. */
export function placeOfKey(
  settings: Settings,
  id: string,
): { readonly file: string; readonly line: number } | undefined {
  const { keys, keysFile } = settings;
  const line = keysFile?.lines[keys.rankOf(id) ?? -1];
  return keysFile === undefined || line === undefined ? undefined : { file: keysFile.path, line };
}
