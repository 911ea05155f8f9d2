import { isDeepStrictEqual } from 'node:util';
import type { Key, Secret, Settings } from '../model.ts';
import type { Loaded } from './load-settings.ts';

/** One message of a loaded configuration to another thread: first everything but the keys, then the changed keys in parts. */
export type LoadedPart =
  | { readonly kind: 'loaded'; readonly loaded: Loaded; readonly isOnBase: boolean }
  | { readonly kind: 'keys'; readonly keys: Changes<Key>; readonly secrets: Changes<Secret> };

/** New values by name; undefined for a name that is gone. */
type Changes<T> = readonly (readonly [name: string, value: T | undefined])[];
type KeyTables = Pick<Settings, 'keys' | 'secrets'>;

/**
 * Keys of one message. All 10,000 keys in one message block the event loop of the receiver for 10 to 30 ms, these for
 * less than one. Keys that replace equal ones would also be work for its garbage collector: only changes are sent.
 */
const entriesPerPart = 250;

const nothing: KeyTables = { keys: new Map(), secrets: new Map() };

/**
 * Splits a loaded configuration into messages; `assembleLoaded` puts it together again.
 *
 * @param base the keys that the receiver has already
 */
export function* partsOf(loaded: Loaded, base: KeyTables | undefined): Generator<LoadedPart, void> {
  const isOnBase = base !== undefined;
  if (loaded.kind === 'invalid') {
    yield { kind: 'loaded', loaded, isOnBase };
    return;
  }
  const { settings } = loaded;
  const before = base ?? nothing;
  yield { kind: 'loaded', loaded: { ...loaded, settings: { ...settings, ...nothing } }, isOnBase };
  const keys = [...changes(before.keys, settings.keys)];
  const secrets = [...changes(before.secrets, settings.secrets)];
  for (let from = 0; from < Math.max(keys.length, secrets.length); from += entriesPerPart) {
    const to = from + entriesPerPart;
    yield { kind: 'keys', keys: keys.slice(from, to), secrets: secrets.slice(from, to) };
  }
}

/**
 * @param nextPart gives the messages in their order, then undefined
 * @param base the keys that the changes are made to
 */
export async function assembleLoaded(
  nextPart: () => Promise<LoadedPart | undefined>,
  base: KeyTables | undefined,
): Promise<Loaded> {
  const first = await nextPart();
  if (first?.kind !== 'loaded') throw new Error('a configuration without its beginning');
  const { loaded, isOnBase } = first;
  if (loaded.kind === 'invalid') return loaded;
  const before = (isOnBase ? base : undefined) ?? nothing;
  const keys = new Map(before.keys);
  const secrets = new Map(before.secrets);
  for (let part = await nextPart(); part?.kind === 'keys'; part = await nextPart()) {
    apply(part.keys, keys);
    apply(part.secrets, secrets);
  }
  return { ...loaded, settings: { ...loaded.settings, keys, secrets } };
}

function* changes<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): Generator<readonly [string, T | undefined]> {
  for (const [name, value] of after) if (!isDeepStrictEqual(value, before.get(name))) yield [name, value];
  for (const name of before.keys()) if (!after.has(name)) yield [name, undefined];
}

function apply<T>(changed: Changes<T>, table: Map<string, T>): void {
  for (const [name, value] of changed) {
    if (value === undefined) table.delete(name);
    else table.set(name, value);
  }
}
