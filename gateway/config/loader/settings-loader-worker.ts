/** The thread of `createSettingsLoader`. It answers each LoadRequest with a LoadReply. */
import { parentPort } from 'node:worker_threads';
import { type KeepingSettings, type LastValid, loadKeepingValid } from '../last-valid/keep-valid-files.ts';
import type { InvalidSettings, LoadOptions } from '../load-settings.ts';
import { type Contents, UnsettledContent } from '../source/read-config-file.ts';
import { messageBetween, type SettingsMessage } from './settings-message.ts';

export interface LoadRequest extends Pick<LoadOptions, 'file' | 'env' | 'settled'> {
  readonly lastValid: LastValid | undefined;
  readonly number: number;
  /** The number of an earlier request. The reply contains only the difference from the earlier reply; with 0, all settings. */
  readonly base: number;
}

export type LoadReply =
  /** A long text may be half written. */
  { readonly kind: 'unsettled' } | InvalidSettings | HandedSettings;

/** Without `entries`, which the thread keeps. `message` is the difference from the settings of `base`, or all settings. */
export interface HandedSettings extends Omit<KeepingSettings, 'settings' | 'entries'> {
  readonly message: SettingsMessage;
}

/** Sent during a load: the file has been read and is being parsed. */
export interface FileRead {
  readonly kind: 'read';
  readonly file: string;
  readonly digest: string;
}

/** Valid results by the number of the request: the current one and the newest, which may become the current one. */
let results: ReadonlyMap<number, KeepingSettings> = new Map();

parentPort?.on('message', ({ number, base, lastValid, ...files }: LoadRequest) => {
  const inForce = results.get(base);
  // All other results are dropped before the load, to free their memory.
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

/** The structured clone turns a Buffer into a Uint8Array over the same memory. */
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

/** A table of all keys is copied in this thread and then transferred, so the main thread does not copy it. */
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
