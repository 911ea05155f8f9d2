import { isDeepStrictEqual } from 'node:util';
import type { WrittenKey } from '../../config/load-settings.ts';
import { isFilledIn } from '../../config/source/substitute-variables.ts';
import { keySchema } from '../../keys/key-schema.ts';
import { limitFieldNames, limitFieldOf, toLimits } from '../../keys/limits/limit-fields.ts';
import { withPlanAt } from '../../keys/plans/compile-key.ts';
import { planFault } from '../../keys/plans/plans.ts';
import type { Settings } from '../../shared/model.ts';
import { listNames } from '../../shared/schema/closest-name.ts';
import { isoOf, isoSecondOf, parseDate, parseDuration } from '../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart, issueSecret } from '../../shared/secrets.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { idsInDirectory } from '../admin/read/ids-in-directory.ts';
import { requireName } from '../admin/read/read-plan.ts';
import { CommandError } from '../output/command-error.ts';
import { changesAfterEdit, memberEdits } from './edit-key.ts';
import {
  type Configuration,
  type EditedKeys,
  editKeys,
  type LoadedKeys,
  NotInFile,
} from './file/edit-keys.ts';
import type { YamlEdit } from './file/edit-yaml.ts';
import type {
  ChangedKey,
  KeyDefinition,
  KeyEdit,
  NewKey,
  NewSecret,
  WritableKeys,
} from './file/writable-keys.ts';
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
      const edited = await editKeys(configuration, choose, { prepare });
      const written = edited.after.written.find((one) => one.key.id === id);
      const all = changed(edited, written, true);
      return { ...all, json: { ...Object(all.json), secret }, secret };
    },

    async addSecret({ secret = issueSecret(), ...wanted }) {
      const edited = await editOne(configuration, rotation({ ...wanted, secret }));
      return { ...edited, json: { ...Object(edited.json), secret }, secret };
    },

    setDisabled: (id, disabled) => editOne(configuration, disabling(id, disabled)),
    edit: (id, edit) => editOne(configuration, editing(id, edit)),
  };
}

/** An edit of one key of the keys file. */
export interface FileEdit {
  readonly id: string;
  /** @param index the place of the key in the list; the paths of the edits begin with it @returns no edits if the key already is as wanted */
  readonly editsOf: (before: KeysInFile, index: number) => YamlEdit[];
}

/** Adds a secret, and sets the expiry of each older secret that does not expire earlier. */
export function rotation({
  id,
  secret,
  overlap,
  expires,
}: NewSecret & { readonly secret: string }): FileEdit {
  return {
    id,
    editsOf({ written }, index) {
      requireFutureDate(expires);
      const entry = secretEntry(secret, expires);
      if (written[index]?.key.secrets.some(({ sha256 }) => sha256 === entry.sha256)) return [];
      const endMs = overlap === undefined ? Number.POSITIVE_INFINITY : Date.now() + parseDuration(overlap);
      return [
        ...endSecrets(written[index]?.key.secrets ?? [], index, endMs),
        { kind: 'append', path: [index, 'secrets'], entries: [entry] },
      ];
    },
  };
}

export function disabling(id: string, disabled: boolean): FileEdit {
  return {
    id,
    editsOf({ settings }, index) {
      if (settings.keys.get(id)?.disabled === disabled) return [];
      return disabled
        ? [{ kind: 'set', path: [index], name: 'disabled', value: true, after: 'plan' }]
        : [{ kind: 'remove', path: [index], name: 'disabled', or: false }];
    },
  };
}

export function editing(id: string, edit: KeyEdit): FileEdit {
  return {
    id,
    editsOf({ written }, index) {
      if (edit.ifMatch !== undefined)
        throw new CommandError(
          '--if-match is for keys of the key directory: a key of a file has no version.',
        );
      const before = written[index]?.key;
      if (before === undefined) return [];
      const { expiresAt, ...members } = memberEdits(edit);
      const isOfPlan = [members.plan, members.limits, edit.later, edit.withdraw].some(
        (one) => one !== undefined,
      );
      const present = isOfPlan ? withPlanAt(before, Date.now()) : before;
      const changes =
        edit.later === undefined && edit.withdraw === undefined
          ? present.changes
          : changesAfterEdit(present.changes, edit, Date.now());
      const wanted: Readonly<Record<string, unknown>> = { ...present, ...defined(members), changes };
      return [...memberFields(before, wanted, index), ...expiryEdits(before, index, expiresAt)];
    },
  };
}

/** In the order in which a new member is written after `plan`. */
const editedMembers = ['plan', 'limits', 'changes', 'addresses', 'name'] as const;

function memberFields(
  before: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, unknown>>,
  index: number,
): YamlEdit[] {
  return editedMembers.flatMap((name): YamlEdit[] => {
    const value = wanted[name] ?? undefined;
    if (isDeepStrictEqual(before[name], value)) return [];
    if (value === undefined) return [{ kind: 'remove', path: [index], name }];
    return [{ kind: 'set', path: [index], name, value, after: 'plan' }];
  });
}

/** @param expiresAt null: the newest secret never expires */
function expiryEdits(
  { id, secrets }: WrittenKey['key'],
  index: number,
  expiresAt: string | null | undefined,
): YamlEdit[] {
  if (expiresAt === undefined) return [];
  const newest = secrets.length - 1;
  if (newest === -1) throw new CommandError(`${id} has no secret whose expiry could be changed.`);
  const endMs = expiresAt === null ? Number.POSITIVE_INFINITY : parseDate(expiresAt);
  if (endMs === undefined) throw new CommandError(`--expires must be a date such as 2027-01-31, or none.`);
  const path = [index, 'secrets', newest];
  const { expires } = secrets[newest] ?? {};
  const ofNewest: YamlEdit[] =
    expiresAt !== null
      ? [{ kind: 'set', path, name: 'expires', value: expiresAt, after: 'sha256' }]
      : expires === undefined
        ? []
        : [{ kind: 'remove', path, name: 'expires' }];
  return [...endSecrets(secrets.slice(0, newest), index, endMs), ...ofNewest];
}

function defined<Members extends object>(members: Members): Partial<Members> {
  return Object.fromEntries(
    Object.entries(members).filter(([, member]) => member !== undefined),
  ) as Partial<Members>;
}

/**
 * Makes the edits in one write of the file, or only checks them.
 *
 * @returns for each edit the key after it, or the reason why the key was not edited
 * @throws a CommandError if nothing was written
 */
export async function editFileKeys(
  configuration: Configuration,
  edits: readonly FileEdit[],
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<readonly (ChangedKey | CommandError)[]> {
  let outcomes: (YamlEdit[] | CommandError)[] = [];
  const edited = await editKeys(
    configuration,
    (before) => {
      const indexes = new Map(before.written.map(({ key }, index) => [key.id, index]));
      outcomes = edits.map((edit) => attempt(edit, before, indexes.get(edit.id)));
      return outcomes.flatMap((one) => (one instanceof CommandError ? [] : one));
    },
    { onlyKeys: true, dryRun },
  );
  const [before, places] = [edited.before, edited.after].map(
    ({ written }) => new Map(written.map((one) => [one.key.id, one])),
  );
  return outcomes.map((outcome, index) => {
    if (outcome instanceof CommandError) return outcome;
    const id = edits[index]?.id ?? '';
    const was = before?.get(id);
    return {
      ...changed(edited, places?.get(id), outcome.length > 0),
      before: was && definitionOf(was.key),
    };
  });
}

function attempt(
  { id, editsOf }: FileEdit,
  before: KeysInFile,
  index: number | undefined,
): YamlEdit[] | CommandError {
  if (index === undefined) return missing(id, before);
  try {
    return editsOf(before, index);
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
}

async function editOne(configuration: Configuration, edit: FileEdit): Promise<ChangedKey> {
  const [outcome] = await editFileKeys(configuration, [edit]);
  if (outcome === undefined || outcome instanceof CommandError) throw outcome;
  return outcome;
}

type KeysInFile = LoadedKeys & { readonly file: string };

/** The message suggests no other id, because that id could belong to another customer. */
function missing(id: string, { settings, file }: KeysInFile): CommandError {
  return settings.directory
    ? new NotInFile(`${id} is not in ${file}.`, file)
    : new CommandError(`There is no key ${id} in ${file}; "keys configured" shows its keys.`);
}

/** Sets the expiry of each secret, unless the secret already expires earlier. */
function endSecrets(secrets: WrittenKey['key']['secrets'], index: number, endMs: number): YamlEdit[] {
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

function changed(
  { file, after }: EditedKeys,
  written: WrittenKey | undefined,
  isChanged: boolean,
): ChangedKey {
  if (written === undefined) throw new Error('a key that was edited is gone');
  const { key, line } = written;
  const definition = definitionOf(key);
  const json = { ...definition, file: after.settings.keysFile?.path, line };
  return { key: definition, json, where: `${file}:${line}`, isChanged };
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
  requirePlanFor(key, plans);
}

/** @throws a CommandError if there is no such plan, or if the key needs limits of its own or must not have them */
export function requirePlanFor(
  { plan, limits }: Pick<NewKey, 'plan'> & Partial<Pick<NewKey, 'limits'>>,
  plans: ReadonlyMap<string, { readonly isCustom: boolean }>,
): void {
  requireName('plan', plan, [...plans.keys()]);
  switch (planFault(limits, plans.get(plan)?.isCustom)) {
    case 'limits_missing': {
      const all = listNames(limitFieldNames.map(limitOption));
      throw new CommandError(`The plan ${plan} is custom: give at least one of ${all}.`);
    }
    case 'limits_of_plan': {
      const stated = toLimits(limits ?? {}).map(({ window }) => limitOption(limitFieldOf[window]));
      throw new CommandError(`The plan ${plan} has its own limits: leave out ${listNames(stated)}.`);
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
