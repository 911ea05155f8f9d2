import { isDeepStrictEqual } from 'node:util';
import { type KeyChanges, KeyTable, tableIn } from '../keys/key-table.ts';
import { type PackedKeys, unpackable } from '../keys/packed-keys.ts';
import { plansAt } from '../keys/plans.ts';
import type { Settings } from '../shared/model.ts';

/**
 * How settings get to another thread or process. It can be cloned (`structuredClone`, `postMessage`, and `child.send`
 * with `serialization: 'advanced'`). Whoever relays it need not know what is in it.
 */
export type SettingsMessage =
  /** All of them, for a receiver that has none yet. */
  | {
      readonly kind: 'full';
      readonly members: Members;
      readonly packed: PackedKeys;
      readonly changes: KeyChanges;
    }
  /** What is different from settings that the receiver has: members with another value, members that are gone, and keys. */
  | {
      readonly kind: 'difference';
      readonly members: Partial<Members>;
      readonly gone: readonly (keyof Members)[];
      readonly changes: KeyChanges;
    };

/** All settings but the keys. */
type Members = Omit<Settings, 'keys'>;

/** A message for a receiver that has no settings yet. */
export function fullMessage({ keys, ...members }: Settings): SettingsMessage {
  const { packed, changes } = tableIn(keys);
  return { kind: 'full', members, packed, changes };
}

/** A message for a receiver that has the settings `before`. */
export function messageBetween(before: Settings | undefined, after: Settings): SettingsMessage {
  const [from, to] = [before && tableIn(before.keys), tableIn(after.keys)];
  // Keys that were packed anew are all handed over.
  if (before === undefined || from?.packed !== to.packed) return fullMessage(after);
  const names = Object.keys({ ...before, ...after }) as (keyof Settings)[];
  const changed = names.filter(
    (name) => name !== 'keys' && !isDeepStrictEqual(before[name], after[name]),
  ) as (keyof Members)[];
  const isGone = (name: keyof Members) => after[name] === undefined;
  return {
    kind: 'difference',
    members: Object.fromEntries(changed.flatMap((name) => (isGone(name) ? [] : [[name, after[name]]]))),
    gone: changed.filter(isGone),
    changes: new Map(
      [...new Set([...from.changes.keys(), ...to.changes.keys()])]
        .filter(
          (id) => from.changes.has(id) !== to.changes.has(id) || from.changes.get(id) !== to.changes.get(id),
        )
        .map((id) => [id, to.statedOf(id)]),
    ),
  };
}

/**
 * The settings that a message leads to. `previous` stay as they are. The cost grows with what is different, not with the number
 * of keys.
 *
 * @param previous what the message before this one led to. Messages of `onValid` in `watchSettings` each build on the one
 *   before, so none may be left out; a full message builds on nothing
 */
export function applyMessage(
  previous: Settings | undefined,
  message: SettingsMessage,
  nowMs = Date.now(),
): Settings {
  switch (message.kind) {
    case 'full': {
      const { members, packed, changes } = message;
      return { ...members, keys: new KeyTable(unpackable(packed), changes, plansAt(members, nowMs)) };
    }
    case 'difference': {
      if (previous === undefined) throw new Error('a difference from settings that there are not');
      const { keys, ...members } = { ...previous, ...message.members };
      for (const name of message.gone) delete (members as Partial<Members>)[name];
      return { ...members, keys: tableIn(keys).with(message.changes, plansAt(members, nowMs)) };
    }
  }
}
