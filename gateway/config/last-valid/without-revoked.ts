import { hash } from 'node:crypto';
import type { RawKey } from '../../keys/key-schema.ts';
import { type KeyTable, tableIn, tableOf } from '../../keys/key-table.ts';
import { plansAt } from '../../keys/plans.ts';
import type { AdminToken, Settings } from '../../shared/model.ts';
import { changesMax, type ReadEntries } from '../keys/read-entries.ts';
import { readKeyList } from '../keys/read-key-list.ts';
import { type Problem, wholeFile } from '../problems/problem.ts';
import { settingsSchema } from '../schema/settings-schema.ts';
import type { FileContent } from '../source/read-config-file.ts';
import { createSourceReader } from '../source/source-reader.ts';
import { isMapping } from '../source/yaml-to-plain.ts';

/** Who has access by what one file states; absent: the file does not say. */
export interface StatedAccess {
  readonly keys?: KeyTable;
  readonly tokens?: readonly AdminToken[];
}

/**
 * Reads who has access by the main file or the keys file. Undefined where that file is not valid by itself. Whether it fits other
 * files is not asked.
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
  /** Entries of the keys in force. */
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
  // Without plans, so that nothing asks for their names.
  const main = { placeOf: () => mentionedAt, lineOf: () => 1, ...source, value: { keys: written } };
  const toRead = { main, mainFile, fileOf: () => file, reader, plans: undefined, before };
  const list = hasKeys && readKeyList(toRead, problems);
  if (list === undefined || problems.length > 0 || reader.problems().length > 0) return undefined;
  return {
    ...(list && { keys: list.table(new Map()).keys }),
    ...(stated.admin && { tokens: stated.admin.tokens }),
  };
}

/**
 * Settings without the access that a newer content of one of their files withdraws: keys that are disabled or missing there are
 * disabled, secrets and tokens that are missing there or end sooner are no longer valid, or end sooner. Nothing is added.
 *
 * @param digest of that content; it becomes a part of the version
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
    keys: withChanges(table, narrowed, plansAt(settings, Date.now())),
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

/** Keys of tables that share what is packed can differ only in what has changed since. */
function idsToCompare(one: KeyTable, other: KeyTable): Iterable<string> {
  if (one.packed !== other.packed) return one.ids();
  return new Set([...one.changes.keys(), ...other.changes.keys()]);
}

/** Undefined when nothing is withdrawn. A key stays in its place in the list, which the lines of the file are found by. */
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

function withChanges(table: KeyTable, changes: Map<string, RawKey>, plans: Settings['plans']): KeyTable {
  if (table.changes.size + changes.size <= changesMax) return table.with(changes, plans);
  return tableOf(
    table.stated().map((key) => changes.get(key.id) ?? key),
    plans,
  ).keys;
}
