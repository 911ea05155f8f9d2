import type { WrittenKey } from '../../config/load-settings.ts';
import { isFilledIn } from '../../config/source/substitute-variables.ts';
import { keySchema } from '../../keys/key-schema.ts';
import { limitFieldNames, limitFieldOf, toLimits } from '../../keys/limits/limit-fields.ts';
import { planFault } from '../../keys/plans/plans.ts';
import type { Settings } from '../../shared/model.ts';
import { listNames } from '../../shared/schema/closest-name.ts';
import { isoOf, isoSecondOf, parseDate, parseDuration } from '../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart, issueSecret } from '../../shared/secrets.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { idsInDirectory } from '../admin/read/ids-in-directory.ts';
import { requireName } from '../admin/read/read-plan.ts';
import { CommandError } from '../output/command-error.ts';
import {
  type Configuration,
  type EditedKeys,
  editKeys,
  type LoadedKeys,
  NotInFile,
} from './file/edit-keys.ts';
import type { YamlEdit } from './file/edit-yaml.ts';
import type { ChangedKey, IssuedKey, KeyDefinition, NewKey, WritableKeys } from './file/writable-keys.ts';
import { limitOption } from './limit-options.ts';

/**
 * Edits keys in the keys file of a configuration. Each function throws an Error if the keys file cannot be locked or written.
 *
 * @param client asks whether the directory has a key already
 */
export function createFileKeys(
  configuration: Configuration,
  client: () => Promise<Pick<AdminClient, 'ask'>>,
): WritableKeys {
  const edit = (choose: (before: KeysInFile) => YamlEdit[]) =>
    editKeys(configuration, choose, { onlyKeys: true });
  return {
    async create(key) {
      const secret = issueSecret();
      const { id, plan, name, limits, addresses, expires } = key;
      const prepare = async ({ settings }: LoadedKeys) => {
        if (!settings.directory || settings.keys.has(id)) return;
        if (!(await idsInDirectory([id], client)).has(id)) return;
        throw new CommandError(
          `The key directory has a key ${id} already; "keys rotate ${id} --directory" gives it a new secret.`,
        );
      };
      const choose = ({ settings }: LoadedKeys): YamlEdit[] => {
        const entry = { id, plan, name, limits, addresses, secrets: [secretEntry(secret, expires)] };
        requireKnownTerms(key, settings);
        requireFutureDate(expires);
        requireShape(entry);
        if (isFilledIn(name)) {
          throw new CommandError(
            '--name must not contain `${`, because a configuration replaces it by a variable of the environment.',
          );
        }
        return [{ kind: 'append', path: [], entries: [entry] }];
      };
      return issued(await editKeys(configuration, choose, { prepare }), id, secret);
    },

    async addSecret({ id, overlap, expires }) {
      const secret = issueSecret();
      const edited = await edit((before) => {
        const index = indexOf(id, before);
        requireFutureDate(expires);
        const entries = [secretEntry(secret, expires)];
        return [
          ...endOlder(before.written, index, overlap),
          { kind: 'append', path: [index, 'secrets'], entries },
        ];
      });
      return issued(edited, id, secret);
    },

    async setDisabled(id, disabled) {
      const edited = await edit((before) => {
        const path = [indexOf(id, before)];
        if (before.settings.keys.get(id)?.disabled === disabled) return [];
        return disabled
          ? [{ kind: 'set', path, name: 'disabled', value: true, after: 'plan' }]
          : [{ kind: 'remove', path, name: 'disabled', or: false }];
      });
      return changed(edited, id);
    },
  };
}

type KeysInFile = LoadedKeys & { readonly file: string };

/** @throws a CommandError if the key is missing. The message suggests no other id, because that id could belong to another customer */
function indexOf(id: string, { written, settings, file }: KeysInFile): number {
  const index = written.findIndex(({ key }) => key.id === id);
  if (index !== -1) return index;
  if (settings.directory) throw new NotInFile(`${id} is not in ${file}.`, file);
  throw new CommandError(`There is no key ${id} in ${file}; "keys configured" shows its keys.`);
}

/** Sets the expiry of each older secret, unless the secret already expires earlier. */
function endOlder(written: readonly WrittenKey[], index: number, overlap: string | undefined): YamlEdit[] {
  if (overlap === undefined) return [];
  const endMs = Date.now() + parseDuration(overlap);
  const secrets = written[index]?.key.secrets ?? [];
  return secrets.flatMap(({ expires = Number.POSITIVE_INFINITY, created }, position): YamlEdit[] => {
    if (expires <= endMs) return [];
    const after = created === undefined ? 'sha256' : 'created';
    return [
      { kind: 'set', path: [index, 'secrets', position], name: 'expires', value: isoSecondOf(endMs), after },
    ];
  });
}

function secretEntry(secret: string, expires: string | undefined) {
  const created = isoSecondOf(Date.now());
  return { sha256: digestSecret(secret), created, expires };
}

function issued(edited: EditedKeys, id: string, secret: string): IssuedKey {
  const all = changed(edited, id);
  return { ...all, json: { ...Object(all.json), secret }, secret };
}

function changed({ file, before, after }: EditedKeys, id: string): ChangedKey {
  const written = after.written.find(({ key }) => key.id === id);
  if (written === undefined) throw new Error('a key that was edited is gone');
  const { key, line } = written;
  const definition = definitionOf(key);
  const json = { ...definition, file: after.settings.keysFile?.path, line };
  return { key: definition, json, where: `${file}:${line}`, isChanged: before !== after };
}

/** A key of the configuration, in the form of the admin API. */
export function definitionOf({ secrets, ...stated }: WrittenKey['key']): KeyDefinition {
  return {
    ...stated,
    source: 'file',
    secrets: secrets.map(({ sha256, created, expires }) => ({
      digestStart: digestStart(sha256),
      createdAt: isoOf(created),
      expiresAt: isoOf(expires),
    })),
  };
}

/** @throws a CommandError, with the names of the command line's options, where the configuration has no room for the key */
function requireKnownTerms(key: NewKey, { plans, keys }: Settings): void {
  if (keys.has(key.id)) {
    throw new CommandError(
      `The key ${key.id} exists already; "keys rotate ${key.id}" gives it a new secret.`,
    );
  }
  requireName('plan', key.plan, [...plans.keys()]);
  switch (planFault(key.limits, plans.get(key.plan)?.isCustom)) {
    case 'limits_missing': {
      const all = listNames(limitFieldNames.map(limitOption));
      throw new CommandError(`The plan ${key.plan} is custom: give at least one of ${all}.`);
    }
    case 'limits_of_plan': {
      const stated = toLimits(key.limits ?? {}).map(({ window }) => limitOption(limitFieldOf[window]));
      throw new CommandError(`The plan ${key.plan} has its own limits: leave out ${listNames(stated)}.`);
    }
  }
}

/** @param expires of a new secret @throws a CommandError */
export function requireFutureDate(expires: string | undefined): void {
  if (expires === undefined) return;
  const expiresMs = parseDate(expires);
  if (expiresMs === undefined) {
    throw new CommandError('--expires must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z.');
  }
  if (expiresMs <= Date.now()) {
    throw new CommandError('--expires is in the past: the secret would never be valid.');
  }
}

const optionOf = new Map<string, string>([
  ['id', 'Its id'],
  ['plan', '--plan'],
  ['name', '--name'],
  ['addresses', '--address'],
  ...limitFieldNames.map((field) => [`limits.${field}`, limitOption(field)] as const),
]);

/** @throws a CommandError if the entry breaks the rules of the keys file */
function requireShape(entry: unknown): void {
  const issue = keySchema.safeParse(entry).error?.issues[0];
  if (issue === undefined) return;
  const names = issue.path.filter((step) => typeof step !== 'number');
  throw new CommandError(`${optionOf.get(names.join('.')) ?? 'The key'} ${issue.message}.`);
}
