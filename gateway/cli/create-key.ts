import type { LoadOptions, ValidSettings } from '../config/load-settings.ts';
import type { Settings } from '../model.ts';
import { digestSecret, issueSecret } from '../secrets.ts';
import { didYouMean, listNames } from '../shapes/closest-name.ts';
import { parseDate } from '../shapes/dates-and-durations.ts';
import { keySchema } from '../shapes/key-schema.ts';
import { type LimitField, type LimitsByField, limitFieldNames } from '../shapes/limit-fields.ts';
import { editKeys, type Refused } from './edit-keys.ts';

export interface NewKey {
  readonly id: string;
  readonly plan: string;
  readonly name?: string;
  /** For a custom plan. */
  readonly limits: LimitsByField;
  /** A date or date-time. */
  readonly expires?: string;
}

/** The secret is only seen here: the keys file has its digest. */
export type Issued = { readonly kind: 'issued'; readonly secret: string; readonly file: string } | Refused;

/**
 * Issues a key: draws a secret and adds the entry to the keys of a configuration.
 *
 * @throws when the keys file cannot be locked or written
 */
export async function createKey(options: LoadOptions, key: NewKey): Promise<Issued> {
  const secret = issueSecret();
  const edited = await editKeys(options, ({ settings }) => {
    const { limits } = key;
    const entry = {
      id: key.id,
      plan: key.plan,
      ...(key.name !== undefined && { name: key.name }),
      ...(Object.keys(limits).length > 0 && { limits }),
      secrets: [secretEntry(secret, key.expires)],
    };
    const reason = reasonAgainst(key, settings) ?? reasonAgainstShape(entry);
    return reason === undefined ? { kind: 'addition', path: [], entry } : { kind: 'refused', reason };
  });
  return edited.kind === 'refused' ? edited : { kind: 'issued', secret, file: edited.file };
}

/**
 * Issues one more secret for a key, so that its owner can change over before the old one is removed.
 *
 * @throws when the keys file cannot be locked or written
 */
export async function addSecret(
  options: LoadOptions,
  { id, expires }: { readonly id: string; readonly expires?: string },
): Promise<Issued> {
  const secret = issueSecret();
  const edited = await editKeys(options, ({ settings }) => {
    const reason = settings.keys.has(id) ? reasonAgainstDate(expires) : unknownKey(id, settings);
    if (reason !== undefined) return { kind: 'refused', reason };
    // Ids are unique, so the map has the order of the list.
    const index = [...settings.keys.keys()].indexOf(id);
    return { kind: 'addition', path: [index, 'secrets'], entry: secretEntry(secret, expires) };
  });
  return edited.kind === 'refused' ? edited : { kind: 'issued', secret, file: edited.file };
}

function secretEntry(secret: string, expires: string | undefined) {
  return { sha256: digestSecret(secret), ...(expires !== undefined && { expires }) };
}

/** Why the key cannot be created, in one sentence with the names of the command line's options; undefined when it can. */
function reasonAgainst(key: NewKey, { plans, keys }: ValidSettings['settings']): string | undefined {
  if (keys.has(key.id))
    return `The key ${key.id} exists already; use "keys add-secret" to rotate its secret.`;
  const plan = plans.get(key.plan);
  if (plan === undefined) {
    const names = [...plans.keys()];
    const advice = didYouMean(key.plan, names) || `; plans are: ${listNames(names)}.`;
    return `There is no plan ${key.plan}${advice}`;
  }
  const stated = (Object.keys(key.limits) as LimitField[]).map(limitOption);
  if (plan.limits === 'custom' && stated.length === 0) {
    return `The plan ${key.plan} is custom: say at least one of ${listNames(limitFieldNames.map(limitOption))}.`;
  }
  if (plan.limits !== 'custom' && stated.length > 0) {
    return `The plan ${key.plan} has its own limits: leave out ${listNames(stated)}.`;
  }
  return reasonAgainstDate(key.expires);
}

function reasonAgainstDate(expires: string | undefined): string | undefined {
  if (expires === undefined) return undefined;
  const expiresMs = parseDate(expires);
  if (expiresMs === undefined) return '--expires must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z.';
  return expiresMs <= Date.now() ? '--expires is in the past: the secret would never be valid.' : undefined;
}

const optionOf = new Map<string, string>([
  ['id', '--id'],
  ['plan', '--plan'],
  ['name', '--name'],
  ...limitFieldNames.map((field) => [`limits.${field}`, limitOption(field)] as const),
]);

/** `--per-minute` for `perMinute`. */
export function limitOption(field: LimitField): string {
  return `--${field.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Why the entry breaks the rules of the keys file, with the names of the options: the text of the file does not exist yet. */
function reasonAgainstShape(entry: unknown): string | undefined {
  const issue = keySchema.safeParse(entry).error?.issues[0];
  return issue && `${optionOf.get(issue.path.join('.')) ?? 'The key'} ${issue.message}.`;
}

function unknownKey(id: string, { keys }: Settings): string {
  return `There is no key ${id}${didYouMean(id, keys.keys()) || '; "keys configured" shows them.'}`;
}
