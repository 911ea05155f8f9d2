/** The thread of `createSettingsLoader`. A `LoadRequest` begins a load; each `next` asks for one more part of its result. */
import { parentPort } from 'node:worker_threads';
import type { Settings } from '../model.ts';
import { type LoadOptions, loadSettings } from './load-settings.ts';
import { type LoadedPart, partsOf } from './loaded-messages.ts';

export interface LoadRequest extends Pick<LoadOptions, 'file' | 'env' | 'inForce'> {
  readonly number: number;
  /** The number of the load whose keys the other thread has; 0 for none. */
  readonly base: number;
}

/** Sent during a load, unasked: a file has been read and is being parsed. */
export interface FileRead {
  readonly kind: 'read';
  readonly file: string;
  /** Of the content that was read. */
  readonly digest: string;
}

let parts: Iterator<LoadedPart, void> | undefined;
let last: { readonly number: number; readonly settings: Settings } | undefined;

parentPort?.on('message', (message: LoadRequest | 'next') => {
  if (message !== 'next') parts = load(message);
  parentPort?.postMessage(parts?.next().value);
});

function load({ number, base, ...files }: LoadRequest): Iterator<LoadedPart, void> {
  const loaded = loadSettings({ ...files, onRead: tellRead });
  const known = last?.number === base ? last.settings : undefined;
  if (loaded.kind === 'valid') last = { number, settings: loaded.settings };
  return partsOf(loaded, known);
}

function tellRead(file: string, digest: string): void {
  parentPort?.postMessage({ kind: 'read', file, digest } satisfies FileRead);
}
