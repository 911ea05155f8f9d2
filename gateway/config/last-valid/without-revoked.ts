import { hash } from 'node:crypto';
import type { RawKey } from '../../keys/key-schema.ts';
import { type KeyTable, tableIn, tableOf } from '../../keys/key-table.ts';
import type { InForce } from '../../keys/plans/compile-key.ts';
import { inForceAt } from '../../keys/plans/plans.ts';
import type { AdminToken, Settings } from '../../shared/model.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import { changesMax, type ReadEntries } from '../keys/read-entries.ts';
import { readKeyList } from '../keys/read-key-list.ts';
import { type Problem, wholeFile } from '../problems/problem.ts';
import { settingsSchema } from '../schema/settings-schema.ts';
import type { FileContent } from '../source/read-config-file.ts';
import { createSourceReader } from '../source/source-reader.ts';

/** The keys and admin tokens of one file; absent if the file does not list them. */
export interface StatedAccess {
  readonly keys?: KeyTable;
  readonly tokens?: readonly AdminToken[];
}

/**
 * Reads the main file or the keys file, without checking it against other files. @returns undefined when the file is not valid by itself
 */
export function readStatedAccess({
  file,
  content,
  mainFile,
  env,
  before,
}: {
  readonly file: string;
  readonly content: FileContent;
  readonly mainFile: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The entries of the current settings, for comparison. */
  readonly before: ReadEntries | undefined;
}): StatedAccess | undefined {
  const drafts = new Map([[file, content]]);
  const reader = createSourceReader({ env, drafts, makesKeysFile: false, onRead: undefined });
  const problems: Problem[] = [];
  const isMain = file === mainFile;
  const mentionedAt = wholeFile(file);
  const source = isMain ? reader.read({ file, kind: 'settings', mentionedAt }) : undefined;
  const stated = isMain ? settingsSchema.safeParse(source?.value).data : { keys: file, admin: undefined };
  if (stated === undefined) return undefined;
  const written = isMapping(source?.value) ? source.value.keys : file;
  const hasKeys = !isMain || Array.isArray(written);
  // Without plans, plan names are not checked.
  const main = { placeOf: () => mentionedAt, lineOf: () => 1, ...source, value: { keys: written } };
  const toRead = { main, mainFile, fileOf: () => file, reader, problems, inForce: undefined, before };
  const list = hasKeys && readKeyList(toRead);
  if (list === undefined || problems.length > 0 || reader.problems().length > 0) return undefined;
  return {
    ...(list && { keys: list.table({ plans: new Map(), atMs: 0 }).keys }),
    ...(stated.admin && { tokens: stated.admin.tokens }),
  };
}

/**
 * Applies the revocations of a file's newer content. A key that is disabled or missing there is disabled. A secret or token that is missing
 * is removed. An earlier expiry of a secret applies. Nothing is added.
 *
 * @param digest the digest of the newer content, which becomes part of the version
 */
export function withoutRevoked(
  settings: Settings,
  { keys: stated, tokens }: StatedAccess,
  digest: string,
): Settings {
  const table = tableIn(settings.keys);
  const narrowed = new Map<string, RawKey>();
  for (const id of stated ? idsToCompare(table, stated) : []) {
    const key = table.statedOf(id);
    const narrower = key && narrow(key, stated?.statedOf(id));
    if (narrower !== undefined) narrowed.set(id, narrower);
  }
  const granted = new Map(tokens?.map((token) => [token.sha256, token]));
  return {
    ...settings,
    version: hash('sha256', `${settings.version} ${digest}`, 'hex').slice(0, settings.version.length),
    keys: withChanges(table, narrowed, inForceAt(settings, Date.now())),
    admin: {
      ...settings.admin,
      tokens: tokens
        ? settings.admin.tokens.flatMap((token) => {
            const now = granted.get(token.sha256);
            return now === undefined ? [] : [now.may === 'read' ? { ...token, may: now.may } : token];
          })
        : settings.admin.tokens,
    },
  };
}

/** Key tables with the same base can differ only in the keys that changed after the base was built. */
function idsToCompare(one: KeyTable, other: KeyTable): Iterable<string> {
  if (one.packed !== other.packed) return one.ids();
  return new Set([...one.changes.keys(), ...other.changes.keys()]);
}

/**
 * @returns the key with the revocations of `now`; undefined if it has none. A revoked key is disabled and kept in the list, so that line
 * numbers still match
 */
function narrow(key: RawKey, now: RawKey | undefined): RawKey | undefined {
  if (now === undefined || now.disabled) return key.disabled ? undefined : { ...key, disabled: true };
  const endsMs = new Map(
    now.secrets.map(({ sha256, expires }) => [sha256, expires ?? Number.POSITIVE_INFINITY]),
  );
  let isNarrower = false;
  const secrets = key.secrets.flatMap((secret) => {
    const endMs = endsMs.get(secret.sha256);
    const isSooner = endMs === undefined || endMs < (secret.expires ?? Number.POSITIVE_INFINITY);
    isNarrower ||= isSooner;
    if (!isSooner) return [secret];
    return endMs === undefined ? [] : [{ ...secret, expires: endMs }];
  });
  return isNarrower ? { ...key, secrets } : undefined;
}

function withChanges(table: KeyTable, changes: Map<string, RawKey>, inForce: InForce): KeyTable {
  if (table.changes.size + changes.size <= changesMax) return table.with(changes, inForce);
  return tableOf(
    table.stated().map((key) => changes.get(key.id) ?? key),
    inForce,
  ).keys;
}
