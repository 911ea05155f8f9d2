/** The thread of `createSettingsLoader`. Each `LoadRequest` gets a `LoadReply`. */
import { parentPort } from 'node:worker_threads';
import { type InvalidSettings, type LoadOptions, loadSettings, type ValidSettings } from './load-settings.ts';
import { messageBetween, type SettingsMessage } from './settings-message.ts';

export interface LoadRequest extends Pick<LoadOptions, 'file' | 'env' | 'inForce'> {
  readonly number: number;
  /** The number of the load whose settings the other thread wants the difference from; 0 for none. */
  readonly base: number;
}

export type LoadReply =
  | { readonly kind: 'invalid'; readonly loaded: InvalidSettings }
  | {
      readonly kind: 'valid';
      readonly loaded: Omit<ValidSettings, 'settings' | 'entries'>;
      /** From the settings of `base`, or from nothing. */
      readonly message: SettingsMessage;
    };

/** Sent during a load, unasked: a file has been read and is being parsed. */
export interface FileRead {
  readonly kind: 'read';
  readonly file: string;
  /** Of the content that was read. */
  readonly digest: string;
}

/** Valid results by the number of their load: the one in force, and the newest, which may come into force. */
let results: ReadonlyMap<number, ValidSettings> = new Map();

parentPort?.on('message', ({ number, base, ...files }: LoadRequest) => {
  const inForce = results.get(base);
  const loaded = loadSettings({ ...files, before: inForce?.entries, onRead: tellRead });
  if (loaded.kind === 'invalid') return reply({ kind: 'invalid', loaded });
  const { settings, entries: _, ...rest } = loaded;
  const message = messageBetween(inForce?.settings, settings);
  results = new Map([...(inForce ? [[base, inForce] as const] : []), [number, loaded]]);
  reply({ kind: 'valid', loaded: rest, message });
});

/** A large message is copied here and handed over, so that the other thread has no work with it. */
function reply(message: LoadReply): void {
  const isLarge = message.kind === 'valid' && message.message.kind === 'full';
  if (!isLarge) {
    parentPort?.postMessage(message);
    return;
  }
  const copy = structuredClone(message);
  parentPort?.postMessage(copy, buffersOf(copy));
}

function buffersOf(message: LoadReply): ArrayBuffer[] {
  if (message.kind === 'invalid' || message.message.kind === 'difference') return [];
  return Object.values(message.message.packed).flatMap((value) =>
    ArrayBuffer.isView(value) ? [value.buffer as ArrayBuffer] : [],
  );
}

function tellRead(file: string, digest: string): void {
  parentPort?.postMessage({ kind: 'read', file, digest } satisfies FileRead);
}
