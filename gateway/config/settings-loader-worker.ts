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
  if (loaded.kind === 'invalid') return send({ kind: 'invalid', loaded });
  const { settings, entries: _, ...rest } = loaded;
  const message = messageBetween(inForce?.settings, settings);
  results = new Map([...(inForce ? [[base, inForce] as const] : []), [number, loaded]]);
  send({ kind: 'valid', loaded: rest, message });
});

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
