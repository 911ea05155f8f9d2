/** The thread of `createSettingsLoader`. Each `LoadRequest` gets a `LoadReply`. */
import { parentPort } from 'node:worker_threads';
import { type KeepingSettings, type LastValid, loadKeepingValid } from './last-valid/keep-valid-files.ts';
import type { InvalidSettings, LoadOptions } from './load-settings.ts';
import { messageBetween, type SettingsMessage } from './settings-message.ts';
import type { Contents } from './source/read-config-file.ts';

export interface LoadRequest extends Pick<LoadOptions, 'file' | 'env'> {
  readonly lastValid: LastValid | undefined;
  readonly number: number;
  /** The number of the load whose settings the other thread wants the difference from; 0 for none. */
  readonly base: number;
}

export type LoadReply =
  | { readonly kind: 'invalid'; readonly loaded: InvalidSettings }
  | {
      readonly kind: 'valid';
      readonly loaded: Omit<KeepingSettings, 'settings' | 'entries'>;
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
let results: ReadonlyMap<number, KeepingSettings> = new Map();

parentPort?.on('message', ({ number, base, lastValid, ...files }: LoadRequest) => {
  const inForce = results.get(base);
  const options = { ...files, before: inForce?.entries, onRead: tellRead };
  const loaded = loadKeepingValid(options, lastValid && withBuffers(lastValid));
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

/** As it was before it was sent: Buffers arrive as plain arrays of bytes. */
function withBuffers({ contents, revoking = new Map(), ...rest }: LastValid): LastValid {
  const buffersOf = (of: Contents): Contents =>
    new Map(
      [...of].map(([file, { bytes, digest }]) => {
        return [file, { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), digest }];
      }),
    );
  return { ...rest, contents: buffersOf(contents), revoking: buffersOf(revoking) };
}

function tellRead(file: string, digest: string): void {
  parentPort?.postMessage({ kind: 'read', file, digest } satisfies FileRead);
}
