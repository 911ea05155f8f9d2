import type { Settings } from '../model.ts';

/**
 * How settings get to another thread or process. It can be cloned (`structuredClone`, `postMessage`, and `process.send`
 * with `serialization: 'advanced'`). Whoever relays it need not know what is in it.
 */
export type SettingsMessage =
  /** All of them, for a receiver that has none yet. */
  { readonly kind: 'full'; readonly settings: Settings };

/** A message for a receiver that has no settings yet. */
export function fullMessage(settings: Settings): SettingsMessage {
  return { kind: 'full', settings };
}

/**
 * The settings that a message leads to. `previous` stay as they are.
 *
 * @param previous what the message before this one led to. Messages of `onValid` in `watchSettings` each build on the one
 *   before, so none may be left out; a full message builds on nothing
 */
export function applyMessage(_previous: Settings | undefined, message: SettingsMessage): Settings {
  return message.settings;
}
