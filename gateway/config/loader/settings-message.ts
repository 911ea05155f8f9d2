import { isDeepStrictEqual } from 'node:util';
import { type KeyChanges, KeyTable, tableIn } from '../../keys/key-table.ts';
import { type PackedKeys, unpackable } from '../../keys/packed-keys.ts';
import { inForceAt } from '../../keys/plans/plans.ts';
import type { Settings } from '../../shared/model.ts';

/**
 * Carries settings to another thread or process: can be cloned (`structuredClone`, `postMessage`, and `child.send` with `serialization:
 * 'advanced'`).
 */
export type SettingsMessage =
  /** For a receiver that has no settings. */
  | {
      readonly kind: 'full';
      readonly members: Members;
      readonly packed: PackedKeys;
      readonly changes: KeyChanges;
    }
  /** The difference from the receiver's settings: changed keys, and members with a new value, which may be undefined. */
  | {
      readonly kind: 'difference';
      readonly members: Partial<Members>;
      readonly changes: KeyChanges;
    };

type Members = Omit<Settings, 'keys'>;

export function fullMessage({ keys, ...members }: Settings): SettingsMessage {
  const { packed, changes } = tableIn(keys);
  return { kind: 'full', members, packed, changes };
}

/** For a receiver that has the settings `before`. */
export function messageBetween(before: Settings | undefined, after: Settings): SettingsMessage {
  const [from, to] = [before && tableIn(before.keys), tableIn(after.keys)];
  // The keys were packed again.
  if (before === undefined || from?.packed !== to.packed) return fullMessage(after);
  const names = Object.keys({ ...before, ...after }) as (keyof Settings)[];
  const changed = names.filter(
    (name) => name !== 'keys' && !isDeepStrictEqual(before[name], after[name]),
  ) as (keyof Members)[];
  return {
    kind: 'difference',
    members: Object.fromEntries(changed.map((name) => [name, after[name]])),
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
 * Does not change `previous`. The cost grows with the size of the difference, not with the number of keys.
 *
 * @param previous the settings from the previous message, to which a difference refers; a receiver must apply every message of `onValid` in
 * `watchSettings`. A full message needs none
 */
export function applyMessage(
  previous: Settings | undefined,
  message: SettingsMessage,
  nowMs = Date.now(),
): Settings {
  switch (message.kind) {
    case 'full': {
      const { members, packed, changes } = message;
      return {
        ...members,
        keys: new KeyTable(unpackable(packed), changes, inForceAt(members, nowMs)),
      };
    }
    case 'difference': {
      if (previous === undefined)
        throw new Error('a difference arrived before the settings that it is based on');
      const { keys, ...members } = { ...previous, ...message.members };
      return {
        ...members,
        keys: tableIn(keys).with(message.changes, inForceAt(members, nowMs)),
      };
    }
  }
}
