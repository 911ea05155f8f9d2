import type { Imported } from '../../../admin/wires/keys/directory.ts';
import type { WrittenKey } from '../../../config/load-settings.ts';
import { faultMessage } from '../../../config/schema/shape-problems.ts';
import { isFilledIn } from '../../../config/source/substitute-variables.ts';
import { type MovedKey, movedKeySchema } from '../../../keys/key-schema.ts';
import { termsOverTime } from '../../../keys/plans/compile-key.ts';
import { planFault } from '../../../keys/plans/plans.ts';
import type { Settings } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { shapeFaults } from '../../../shared/schema/schema-faults.ts';
import { fields, list } from '../../../shared/schema/schema-parts.ts';
import { counted, figure } from '../../../shared/words/figures.js';
import type { AdminClient } from '../../admin/admin-client.ts';
import { idsInDirectory } from '../../admin/read/ids-in-directory.ts';
import { CommandError } from '../../output/command-error.ts';
import { type Configuration, editKeys, type LoadedKeys } from '../file/edit-keys.ts';
import type { YamlEdit } from '../file/edit-yaml.ts';

const movedKeys = fields('an object with keys', { keys: list(movedKeySchema, 'a list of keys') });

export function movedKey({ key: { secrets, ...key } }: WrittenKey): MovedKey {
  return {
    ...key,
    secrets: secrets.map(({ created, expires, ...secret }) => {
      return { ...secret, createdAt: created, expiresAt: expires };
    }),
  };
}

/** Formats a key of an export as JSON, with its timestamps as text. */
export function movedJson({ secrets, ...key }: MovedKey): object {
  return {
    ...key,
    secrets: secrets.map(({ createdAt, expiresAt, ...secret }) => ({
      ...secret,
      createdAt: isoOf(createdAt),
      expiresAt: isoOf(expiresAt),
    })),
  };
}

/**
 * @returns the keys, and apart from these the ids of `ambiguous` keys, which have two different definitions
 * @throws a CommandError that names the first fault
 */
export function parseExport(text: string, file: string) {
  let json: unknown;
  try {
    // Windows puts a byte order mark before the text of a file.
    json = JSON.parse(text.replace(/^\ufeff/, ''));
  } catch {
    throw new CommandError(`${file} is not JSON in the form of "keys export".`);
  }
  const parsed = movedKeys.safeParse(json);
  if (parsed.success) return withoutAmbiguous(parsed.data.keys, text);
  const [fault] = shapeFaults(parsed.error.issues);
  throw new CommandError(
    `${file} has no keys in the form of "keys export": ${fault && faultMessage(fault)}.`,
  );
}

function withoutAmbiguous(keys: readonly MovedKey[], text: string) {
  const firsts = new Map<string, number>();
  const others = new Map<string, number>();
  for (const [index, key] of keys.entries()) {
    const first = keys[firsts.get(key.id) ?? index];
    if (first === key) firsts.set(key.id, index);
    else if (first && !others.has(key.id) && likenessOf(first) !== likenessOf(key)) others.set(key.id, index);
  }
  if (others.size === 0) return { keys, ambiguous: [] };
  const lines = linesOfKeys(text);
  const ambiguous = [...others].map(([id, other]) => {
    const [one, two] = [firsts.get(id) ?? 0, other].map(
      (index) => `line ${lines[index]} (\`keys[${index}]\`)`,
    );
    return { id, reason: `it has two different definitions, in ${one} and in ${two}; keep one of them` };
  });
  return { keys: keys.filter(({ id }) => !others.has(id)), ambiguous };
}

/**
 * Returns the line number at which each key of an export begins. An export is an object with a list, and each object in the list is a key.
 */
function linesOfKeys(text: string): number[] {
  const lines: number[] = [];
  let [line, depth] = [1, 0];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}\n]/g)) {
    if (token === '\n') line += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (token === '{' || token === '[') {
      depth += 1;
      if (depth === 3 && token === '{') lines.push(line);
    }
  }
  return lines;
}

/**
 * Adds all keys that the configuration allows, in a single edit.
 *
 * @param client asks whether the directory has a key already
 * @throws a CommandError if the file cannot be edited
 */
export async function importToFile(
  configuration: Configuration,
  keys: readonly MovedKey[],
  client: () => Promise<Pick<AdminClient, 'ask'>>,
): Promise<{ readonly imported: Imported; readonly where: string }> {
  let result: Imported = { created: 0, unchanged: 0, refused: [] };
  let inDirectory: ReadonlySet<string> = new Set();
  const prepare = async ({ settings, written }: LoadedKeys) => {
    if (!settings.directory) return;
    const inFile = new Set(written.map(({ key }) => key.id));
    const ids = keys.map(({ id }) => id).filter((id) => !inFile.has(id));
    inDirectory = await idsInDirectory(ids, client);
  };
  const choose = ({ settings, written }: LoadedKeys): YamlEdit[] => {
    const known = new Map(written.map((one) => [one.key.id, likenessOf(movedKey(one))]));
    const taken = new Set(written.flatMap(({ key }) => key.secrets.map(({ sha256 }) => sha256)));
    const added: MovedKey[] = [];
    const refused: { id: string; reason: string }[] = [];
    for (const key of keys) {
      const likeness = likenessOf(key);
      const existing = known.get(key.id);
      if (existing === likeness) continue;
      const reason = existing
        ? 'a different key with this id exists already'
        : inDirectory.has(key.id)
          ? 'the key directory has a key with this id'
          : reasonAgainst(key, settings, taken);
      if (reason !== undefined) {
        refused.push({ id: key.id, reason });
        continue;
      }
      added.push(key);
      known.set(key.id, likeness);
      for (const { sha256 } of key.secrets) taken.add(sha256);
    }
    result = { created: added.length, unchanged: keys.length - added.length - refused.length, refused };
    return added.length === 0 ? [] : [{ kind: 'append', path: [], entries: added.map(entryOf) }];
  };
  const { file } = await editKeys(configuration, choose, { prepare });
  return { imported: result, where: file };
}

/** Returns equal texts for equal keys, independent of the order of their members and secrets. */
function likenessOf({ operations, ...key }: MovedKey): string {
  const { secrets, ...stated } = withoutPast(key);
  const ends = secrets.map(({ sha256, expiresAt }) => `${sha256} ${expiresAt}`).toSorted();
  return JSON.stringify([stated, operations?.toSorted(), ends]);
}

function reasonAgainst(
  { secrets, ...stated }: MovedKey,
  settings: Settings,
  taken: ReadonlySet<string>,
): string | undefined {
  const { operations = [] } = stated;
  for (const { plan, limits } of termsOverTime(stated)) {
    switch (planFault(limits, settings.plans.get(plan)?.isCustom)) {
      case 'no_plan':
        return `there is no plan ${plan}`;
      case 'limits_missing':
        return `the plan ${plan} is custom, and it has no limits of its own`;
      case 'limits_of_plan':
        return `it has limits of its own, and the plan ${plan} is not custom`;
      case undefined:
    }
  }
  const unknown = operations.find((wanted) => !settings.operations.some(({ id }) => id === wanted));
  if (unknown !== undefined) return `there is no operation ${unknown}`;
  const filledIn = Object.entries(stated).find(([, member]) => isFilledIn(JSON.stringify(member)));
  if (filledIn !== undefined)
    return `its ${filledIn[0]} has \`\${\` in it, which a configuration replaces by a variable of the environment`;
  const digests = secrets.map(({ sha256 }) => sha256);
  return new Set(digests).size < digests.length || digests.some((digest) => taken.has(digest))
    ? 'one of its secrets belongs to another key, or occurs twice'
    : undefined;
}

/** A keys file has removed secrets as secrets that have expired, because it has no limit of secrets for each key. */
function withoutPast<Key extends Pick<MovedKey, 'secrets' | 'pastSecrets'>>({
  secrets,
  pastSecrets = [],
  ...stated
}: Key) {
  const expired = pastSecrets.map((one) => ({ ...one, createdAt: undefined, expiresAt: 0 }));
  return { ...stated, secrets: [...expired, ...secrets] };
}

/** Converts a key to its entry in the keys file. */
function entryOf(key: MovedKey): Record<string, unknown> {
  const { disabled, secrets, ...stated } = withoutPast(key);
  return {
    ...stated,
    disabled: disabled || undefined,
    secrets: secrets.map(({ sha256, createdAt, expiresAt, issuedFrom }) => ({
      sha256,
      created: isoOf(createdAt)?.replace('.000Z', 'Z'),
      expires: isoOf(expiresAt)?.replace('.000Z', 'Z'),
      issuedFrom,
    })),
  };
}

/** @param where the keys file, or the directory */
export function importedLines({ created, unchanged, refused }: Imported, where: string): string[] {
  const parts = [
    `${counted(created, 'key')} added to ${where}`,
    ...(unchanged > 0 ? [`${figure(unchanged)} there already`] : []),
    ...(refused.length > 0 ? [`${figure(refused.length)} refused:`] : []),
  ];
  return [parts.join(', '), ...refused.map(({ id, reason }) => `  ${id}: ${reason}`)];
}
