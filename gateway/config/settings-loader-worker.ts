/** The thread of `createSettingsLoader`: a request begins a load, each `next` asks for one more part of what it gave. */
import { parentPort } from 'node:worker_threads';
import type { Settings } from '../model.ts';
import { type LoadOptions, loadSettings } from './load-settings.ts';
import { type LoadedPart, partsOf } from './loaded-parts.ts';

export interface LoadRequest extends LoadOptions {
  readonly number: number;
  /** The load whose keys the other side has; 0 for none. */
  readonly base: number;
}

let parts: Iterator<LoadedPart, void> | undefined;
let last: { readonly number: number; readonly settings: Settings } | undefined;

parentPort?.on('message', (message: LoadRequest | 'next') => {
  if (message !== 'next') parts = load(message);
  parentPort?.postMessage(parts?.next().value);
});

function load({ number, base, ...options }: LoadRequest): Iterator<LoadedPart, void> {
  const loaded = loadSettings(options);
  const known = last?.number === base ? last.settings : undefined;
  if (loaded.kind === 'valid') last = { number, settings: loaded.settings };
  return partsOf(loaded, known);
}
