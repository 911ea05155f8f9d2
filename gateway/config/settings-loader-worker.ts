/** The thread of `createSettingsLoader`. Each `LoadRequest` gets a `LoadReply`. */
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

export interface LoadRequest extends Pick<LoadOptions, 'file' | 'env'> {
  readonly kind: 'load';
  readonly lastValid: HandedLastValid | undefined;
  /** Of a thread before this one. */
  readonly large: LargeContents;
  readonly number: number;
  /** The number of the load whose settings the other thread wants the difference from; 0 for none. */
  readonly base: number;
}

export type LoadReply =
  | { readonly kind: 'invalid'; readonly loaded: InvalidSettings }
  | {
      readonly kind: 'valid';
      readonly loaded: HandedSettings;
      /** From the settings of `base`, or from nothing. */
      readonly message: SettingsMessage;
    };

/** Valid settings without what stays in the thread, or goes with the message. */
export interface HandedSettings
  extends Omit<KeepingSettings, 'settings' | 'entries' | 'contents' | 'revoking'> {
  readonly contents: HandedContents;
  readonly revoking: HandedContents;
}

/** Asks for the large contents, before the thread is ended. */
export interface RetireRequest {
  readonly kind: 'retire';
}

export interface RetireReply {
  readonly kind: 'retired';
  readonly large: LargeContents;
}

/** Sent during a load, unasked: a file has been read and is being parsed. */
export interface FileRead {
  readonly kind: 'read';
  readonly file: string;
  /** Of the content that was read. */
  readonly digest: string;
}

/** Valid results by the number of their load: the one in force, and the newest, which may come into force. */
let results: ReadonlyMap<number, KeepingSettings> = new Map();

/** Large contents of those results, and of the settings in force. */
let large: LargeContents = new Map();

parentPort?.on('message', (request: LoadRequest | RetireRequest) => {
  if (request.kind === 'load') load(request);
  else retire();
});

function load({ number, base, lastValid, large: more, ...files }: LoadRequest): void {
  const inForce = results.get(base);
  const fallback = lastValid && withLarge(lastValid, new Map([...large, ...more]));
  // Before anything is read, so that the memory of other results is free.
  results = new Map(inForce && [[base, inForce]]);
  large = largeIn(fallback);
  const options = { ...files, before: inForce?.entries, onRead: tellRead };
  const loaded = loadKeepingValid(options, fallback);
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

function largeIn(lastValid: LastValid | undefined): LargeContents {
  return lastValid ? largeOf([lastValid.contents, lastValid.revoking ?? new Map()]) : new Map();
}

function retire(): void {
  const buffers = [...large.values()].map(({ buffer }) => buffer as ArrayBuffer);
  parentPort?.postMessage({ kind: 'retired', large } satisfies RetireReply, buffers);
}

/** A table of all keys is copied here and handed over, so that the other thread has no work with it. */
function send(reply: LoadReply): void {
  if (reply.kind === 'invalid' || reply.message.kind === 'difference') {
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
