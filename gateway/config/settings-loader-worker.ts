/** The thread of `createSettingsLoader`. It answers each `LoadRequest` with a `LoadReply`. */
import { parentPort } from 'node:worker_threads';
import {
  type HandedContents,
  type HandedLastValid,
  type LargeContents,
  largeOf,
  withLarge,
  withoutLarge,
} from './last-valid/handed-contents.ts';
import { type KeepingSettings, type LastValid, loadKeepingValid } from './last-valid/keep-valid-files.ts';
import type { InvalidSettings, LoadOptions } from './load-settings.ts';
import { messageBetween, type SettingsMessage } from './settings-message.ts';
import { UnsettledContent } from './source/source-reader.ts';

export interface LoadRequest extends Pick<LoadOptions, 'file' | 'env' | 'settled'> {
  readonly kind: 'load';
  readonly lastValid: HandedLastValid | undefined;
  /** Large contents from the previous thread. */
  readonly large: LargeContents;
  readonly number: number;
  /** The number of the load whose settings the reply should be the difference from; 0 for all settings. */
  readonly base: number;
}

export type LoadReply =
  /** A long text must be parsed that may be half written. */
  | { readonly kind: 'unsettled' }
  | { readonly kind: 'invalid'; readonly loaded: InvalidSettings }
  | {
      readonly kind: 'valid';
      readonly loaded: HandedSettings;
      /** The difference from the settings of `base`, or all settings. */
      readonly message: SettingsMessage;
    };

/** Valid settings without the parts that stay in the thread or are in the message. */
export interface HandedSettings
  extends Omit<KeepingSettings, 'settings' | 'entries' | 'contents' | 'revoking'> {
  readonly contents: HandedContents;
  readonly revoking: HandedContents;
}

/** Requests the large contents before the thread ends. */
export interface RetireRequest {
  readonly kind: 'retire';
}

export interface RetireReply {
  readonly kind: 'retired';
  readonly large: LargeContents;
}

/** Reports during a load that a file has been read and is being parsed. */
export interface FileRead {
  readonly kind: 'read';
  readonly file: string;
  /** The digest of the content that was read. */
  readonly digest: string;
}

/** Valid results by the number of their load: the current result, and the newest result, which may become current. */
let results: ReadonlyMap<number, KeepingSettings> = new Map();

/** Large contents of these results and of the current settings. */
let large: LargeContents = new Map();

parentPort?.on('message', (request: LoadRequest | RetireRequest) => {
  if (request.kind === 'load') load(request);
  else retire();
});

function load({ number, base, lastValid, large: more, ...files }: LoadRequest): void {
  const inForce = results.get(base);
  const fallback = lastValid && withLarge(lastValid, new Map([...large, ...more]));
  // Drop other results before reading, to free their memory.
  results = new Map(inForce && [[base, inForce]]);
  large = largeIn(fallback);
  const options = { ...files, before: inForce?.entries, onRead: tellRead };
  const loaded = loadSettled(options, fallback);
  if (loaded === undefined) {
    send({ kind: 'unsettled' });
    return;
  }
  if (loaded.kind === 'invalid') {
    send({ kind: 'invalid', loaded });
    return;
  }
  const { settings, entries: _, contents, revoking, ...rest } = loaded;
  const message = messageBetween(inForce?.settings, settings);
  results = new Map([...results, [number, loaded]]);
  large = new Map([...large, ...largeIn(loaded)]);
  const handed = { ...rest, contents: withoutLarge(contents), revoking: withoutLarge(revoking) };
  send({ kind: 'valid', loaded: handed, message });
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

function largeIn(lastValid: LastValid | undefined): LargeContents {
  return lastValid ? largeOf([lastValid.contents, lastValid.revoking ?? new Map()]) : new Map();
}

function retire(): void {
  const buffers = [...large.values()].map(({ buffer }) => buffer as ArrayBuffer);
  parentPort?.postMessage({ kind: 'retired', large } satisfies RetireReply, buffers);
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
  const message: SettingsMessage = { ...reply.message, packed };
  parentPort?.postMessage({ ...reply, message } satisfies LoadReply, buffers);
}

function tellRead(file: string, digest: string): void {
  parentPort?.postMessage({ kind: 'read', file, digest } satisfies FileRead);
}
