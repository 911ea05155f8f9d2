import type { KeyDirectory } from '../../directory/key-directory.ts';
import type { Key, KeyStatus, Settings } from '../../model.ts';
import { digestStart } from '../../secrets.ts';
import { rememberLast } from '../../structures/remember-last.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import type { Usage } from '../../usage/usage.ts';
import type { UsageReader } from '../../usage/usage-reader.ts';

/** What the views of keys and operations are made of. */
export interface KeySources {
  /** The settings in force. */
  readonly settings: () => Settings;
  /** Where keys are now in the store; undefined when it gives no answer, also for a single key. */
  readonly readStatus: (keys: readonly Key[]) => Promise<readonly (KeyStatus | undefined)[] | undefined>;
  /** Absent: all keys are in the configuration. */
  readonly directory?: KeyDirectory;
  /** Absent: nothing is recorded. */
  readonly usage?: Pick<Usage, 'state' | 'totals'> & { readonly reader: UsageReader };
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Pick<Bounds, 'usageReadsPerTurnMax' | 'adminKeysExaminedMax' | 'adminUsageRowsMax'>;
}

/** A secret of a key: enough of its digest to tell it from others, when it expires (Infinity: never) and was issued. */
export interface SecretView {
  readonly digestStart: string;
  readonly expiresMs: number;
  readonly createdMs?: number;
}

/** The secrets of each key. Made once for each configuration. */
export const secretsOf = rememberLast(({ secrets }: Settings): ReadonlyMap<string, readonly SecretView[]> => {
  const byKey = new Map<string, SecretView[]>();
  for (const [digest, { keyId, ...instants }] of secrets) {
    const view = { digestStart: digestStart(digest), ...instants };
    const known = byKey.get(keyId);
    if (known === undefined) byKey.set(keyId, [view]);
    else known.push(view);
  }
  return byKey;
});

/** The ids of all keys in their order. Made once for each configuration. */
export const sortedIds = rememberLast((settings: Settings): readonly string[] =>
  [...settings.keys.keys()].sort(),
);

/** The place of a key in the configuration, from which it can be edited; undefined when it is not there. */
export function placeOfKey(
  settings: Settings,
  id: string,
): { readonly file: string; readonly line: number } | undefined {
  const { keysFile } = settings;
  if (keysFile === undefined) return undefined;
  const ids = sortedIds(settings);
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] ?? id) < id) low = middle + 1;
    else high = middle;
  }
  const line = keysFile.lines[low];
  return ids[low] === id && line !== undefined ? { file: keysFile.path, line } : undefined;
}

/** Where keys are now, those that are known, asked for in parts, so that Redis serves decisions in between. */
export async function readStatuses(
  { readStatus, bounds }: Pick<KeySources, 'readStatus' | 'bounds'>,
  keys: readonly Key[],
): Promise<ReadonlyMap<string, KeyStatus> | undefined> {
  const statuses = new Map<string, KeyStatus>();
  for (let from = 0; from < keys.length; from += bounds.usageReadsPerTurnMax) {
    const part = keys.slice(from, from + bounds.usageReadsPerTurnMax);
    const read = await readStatus(part);
    if (read === undefined) return undefined;
    for (const [index, { id }] of part.entries()) {
      const status = read[index];
      if (status !== undefined) statuses.set(id, status);
    }
  }
  return statuses;
}
