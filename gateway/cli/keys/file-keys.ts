import type { WrittenKey } from '../../config/load-settings.ts';
import { isFilledIn } from '../../config/source/substitute-variables.ts';
import { keySchema } from '../../keys/key-schema.ts';
import { type LimitField, limitFieldNames } from '../../keys/limit-fields.ts';
import type { Settings } from '../../shared/model.ts';
import { didYouMean, listNames } from '../../shared/schema/closest-name.ts';
import { parseDate, parseDuration } from '../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart, issueSecret } from '../../shared/secrets.ts';
import { CommandError } from '../output/command-error.ts';
import { type Configuration, type EditedKeys, editKeys, type LoadedKeys, NotInFile } from './edit-keys.ts';
import type { YamlEdit } from './edit-yaml.ts';
import type { ChangedKey, IssuedKey, KeyDefinition, NewKey, WritableKeys } from './writable-keys.ts';

/** The keys of a configuration, edited in their file. Its functions also throw where the file cannot be locked or written. */
export function createFileKeys(configuration: Configuration): WritableKeys {
  return {
    async create(key) {
      const secret = issueSecret();
      const edited = await editKeys(configuration, ({ settings }) => {
        const { limits } = key;
        const entry = {
          id: key.id,
          plan: key.plan,
          ...(key.name !== undefined && { name: key.name }),
          ...(Object.keys(limits).length > 0 && { limits }),
          secrets: [secretEntry(secret, key.expires)],
        };
        requireKnownTerms(key, settings);
        requireFutureDate(key.expires);
        requireShape(entry);
        if (isFilledIn(key.name)) {
          throw new CommandError(
            '--name must not have `${` in it: a configuration fills that in from the environment.',
          );
        }
        return [{ kind: 'append', path: [], entries: [entry] }];
      });
      return issued(edited, key.id, secret);
    },

    async addSecret({ id, overlap, expires }) {
      const secret = issueSecret();
      const choose = (before: KeysInFile): YamlEdit[] => {
        const { written } = before;
        const index = indexOf(id, before);
        requireFutureDate(expires);
        const entries = [secretEntry(secret, expires)];
        return [...endOlder(written, index, overlap), { kind: 'append', path: [index, 'secrets'], entries }];
      };
      const edited = await editKeys(configuration, choose, { onlyKeys: true });
      return issued(edited, id, secret);
    },

    async setDisabled(id, disabled) {
      const choose = (before: KeysInFile): YamlEdit[] => {
        const path = [indexOf(id, before)];
        if (before.settings.keys.get(id)?.disabled === disabled) return [];
        return disabled
          ? [{ kind: 'set', path, name: 'disabled', value: true, after: 'plan' }]
          : [{ kind: 'remove', path, name: 'disabled', or: false }];
      };
      const edited = await editKeys(configuration, choose, { onlyKeys: true });
      return changed(edited, id);
    },
  };
}

type KeysInFile = LoadedKeys & { readonly file: string };

/** The place of a key in the list. @throws a CommandError where there is none; it suggests no other key, which would be changed then */
function indexOf(id: string, { written, settings, file }: KeysInFile): number {
  const index = written.findIndex(({ key }) => key.id === id);
  if (index !== -1) return index;
  if (settings.directory) throw new NotInFile(`${id} is not in ${file}.`, file);
  throw new CommandError(`There is no key ${id} in ${file}; "keys configured" shows its keys.`);
}

/** The older secrets get their end, unless they end before. */
function endOlder(written: readonly WrittenKey[], index: number, overlap: string | undefined): YamlEdit[] {
  if (overlap === undefined) return [];
  const endMs = Date.now() + parseDuration(overlap);
  const secrets = written[index]?.key.secrets ?? [];
  return secrets.flatMap(({ expires = Number.POSITIVE_INFINITY, created }, position): YamlEdit[] => {
    if (expires <= endMs) return [];
    const after = created === undefined ? 'sha256' : 'created';
    return [
      { kind: 'set', path: [index, 'secrets', position], name: 'expires', value: toSecond(endMs), after },
    ];
  });
}

function secretEntry(secret: string, expires: string | undefined) {
  const created = toSecond(Date.now());
  return { sha256: digestSecret(secret), created, ...(expires !== undefined && { expires }) };
}

/** `2026-11-22T10:31:00Z`: fractions of a second mean nothing to whoever reads the file. */
function toSecond(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`;
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

/** A key of the configuration in the form in which the admin API shows those of the directory. */
export function definitionOf({ secrets, ...stated }: WrittenKey['key']): KeyDefinition {
  return {
    ...stated,
    source: 'file',
    secrets: secrets.map(({ sha256, created, expires }) => ({
      digestStart: digestStart(sha256),
      ...(created !== undefined && { createdAt: new Date(created).toISOString() }),
      ...(expires !== undefined && { expiresAt: new Date(expires).toISOString() }),
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
  const plan = plans.get(key.plan);
  if (plan === undefined) {
    const names = [...plans.keys()];
    const advice = didYouMean(key.plan, names) || `; plans are: ${listNames(names)}.`;
    throw new CommandError(`There is no plan ${key.plan}${advice}`);
  }
  const stated = (Object.keys(key.limits) as LimitField[]).map(limitOption);
  if (plan.isCustom && stated.length === 0) {
    const all = listNames(limitFieldNames.map(limitOption));
    throw new CommandError(`The plan ${key.plan} is custom: say at least one of ${all}.`);
  }
  if (!plan.isCustom && stated.length > 0) {
    throw new CommandError(`The plan ${key.plan} has its own limits: leave out ${listNames(stated)}.`);
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
  ...limitFieldNames.map((field) => [`limits.${field}`, limitOption(field)] as const),
]);

/** `--per-minute` for `perMinute`. */
export function limitOption(field: LimitField): string {
  return `--${field.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** @throws a CommandError where the entry breaks the rules of the keys file: the text of the file does not exist yet */
function requireShape(entry: unknown): void {
  const issue = keySchema.safeParse(entry).error?.issues[0];
  if (issue === undefined) return;
  throw new CommandError(`${optionOf.get(issue.path.join('.')) ?? 'The key'} ${issue.message}.`);
}
