/** The thread that `createSettingsLoader` starts. The thread answers each LoadRequest with a LoadReply. */
import { parentPort } from 'node:worker_threads';
import { type KeepingSettings, type LastValid, loadKeepingValid } from '../last-valid/keep-valid-files.ts';
import type { InvalidSettings, LoadOptions } from '../load-settings.ts';
import { type Contents, UnsettledContent } from '../source/read-config-file.ts';
import { messageBetween, type SettingsMessage } from './settings-message.ts';

/** The message that makes the thread load the settings. */
export interface LoadRequest extends Pick<LoadOptions, 'file' | 'env' | 'settled'> {
  readonly lastValid: LastValid | undefined;
  readonly number: number;
  /**
   * The number of an earlier request. The reply contains only the settings that differ from the earlier reply. With the number 0, the reply
   * contains all settings.
   */
  readonly base: number;
}

/** The thread's answer to a request. */
export type LoadReply =
  /** The thread stopped loading, because a long text may be half written. */
  { readonly kind: 'unsettled' } | InvalidSettings | HandedSettings;

/**
 * Valid settings without `entries`, because the thread keeps the entries. `message` is the difference from the settings of `base`, or all
 * settings.
 */
export interface HandedSettings extends Omit<KeepingSettings, 'settings' | 'entries'> {
  readonly message: SettingsMessage;
}

/** A message that the thread sends while it loads the settings. The file has been read and is being parsed. */
export interface FileRead {
  readonly kind: 'read';
  readonly file: string;
  /** The digest of the content that was read. */
  readonly digest: string;
}

/**
 * Valid results, with the number of the request as the key of the Map. The map contains the current result and the newest result, which may
 * become the current result.
 */
let results: ReadonlyMap<number, KeepingSettings> = new Map();

parentPort?.on('message', ({ number, base, lastValid, ...files }: LoadRequest) => {
  const inForce = results.get(base);
  // Before the thread loads the settings, it drops all results except `inForce`, to free their memory.
  results = new Map(inForce && [[base, inForce]]);
  const loaded = loadSettled(
    { ...files, before: inForce?.entries, onRead: tellRead },
    lastValid && {
      ...lastValid,
      contents: asBuffers(lastValid.contents),
      revoking: lastValid.revoking && asBuffers(lastValid.revoking),
    },
  );
  if (loaded === undefined) return send({ kind: 'unsettled' });
  if (loaded.kind === 'invalid') return send(loaded);
  const { settings, entries: _, ...rest } = loaded;
  const message = messageBetween(inForce?.settings, settings);
  results = new Map([...results, [number, loaded]]);
  send({ ...rest, message });
});

/** Converts contents to Buffers. The structured clone turns a Buffer into a Uint8Array over the same memory. */
function asBuffers(contents: Contents): Contents {
  return new Map(
    [...contents].map(([file, { digest, bytes }]) => [
      file,
      { digest, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) },
    ]),
  );
}

/** @returns undefined when a long text must be parsed that may be half written */
function loadSettled(...args: Parameters<typeof loadKeepingValid>) {
  try {
    return loadKeepingValid(...args);
  } catch (error) {
    if (error instanceof UnsettledContent) return undefined;
    throw error;
  }
}

/** Sends a reply. A table of all keys is copied in this thread and then transferred, so the main thread does not copy it. */
function send(reply: LoadReply): void {
  if (reply.kind !== 'valid' || reply.message.kind === 'difference') {
    parentPort?.postMessage(reply);
    return;
  }
  const packed = structuredClone(reply.message.packed);
  const buffers = Object.values(packed).flatMap((value) =>
    ArrayBuffer.isView(value) ? [value.buffer as ArrayBuffer] : [],
  );
  parentPort?.postMessage({ ...reply, message: { ...reply.message, packed } } satisfies LoadReply, buffers);
}

function tellRead(file: string, digest: string): void {
  parentPort?.postMessage({ kind: 'read', file, digest } satisfies FileRead);
}
