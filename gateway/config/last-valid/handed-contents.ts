import { configSizes } from '../config-sizes.ts';
import type { Contents, FileContent } from '../source/read-config-file.ts';
import type { KeptFile, LastValid } from './keep-valid-files.ts';

/** A file's content as it is sent between threads. A large content is represented by its digest alone. */
export interface HandedContent {
  readonly digest: string;
  readonly bytes?: Uint8Array | undefined;
}

export type HandedContents = ReadonlyMap<string, HandedContent>;

/** The form of `LastValid` that is sent to the loader thread. */
export interface HandedLastValid {
  readonly contents: HandedContents;
  readonly revoking?: HandedContents | undefined;
  readonly keysFile: string | undefined;
  readonly kept?: readonly KeptFile[] | undefined;
}

/** Large contents by their digests. They are moved between threads, never copied. */
export type LargeContents = ReadonlyMap<string, Uint8Array>;

export function withoutLarge(contents: Contents): HandedContents {
  return new Map(
    [...contents].map(([file, { bytes, digest }]) => [file, isLarge(bytes) ? { digest } : { digest, bytes }]),
  );
}

export function largeOf(all: readonly Contents[]): Map<string, Uint8Array<ArrayBuffer>> {
  const contents = all.flatMap((each) => [...each.values()]).filter(({ bytes }) => isLarge(bytes));
  return new Map(contents.map(({ digest, bytes }) => [digest, bytes as Buffer<ArrayBuffer>]));
}

/** Adds large contents to a received `LastValid`. A file whose content is missing is left out, so it has nothing to fall back on. */
export function withLarge(handed: HandedLastValid, large: LargeContents): LastValid {
  const { keysFile, kept = [] } = handed;
  const fill = (contents: HandedContents = new Map()): Contents =>
    new Map(
      [...contents].flatMap(([file, { digest, bytes = large.get(digest) }]): [string, FileContent][] =>
        bytes ? [[file, { digest, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) }]] : [],
      ),
    );
  return { keysFile, kept, contents: fill(handed.contents), revoking: fill(handed.revoking) };
}

function isLarge({ length }: Uint8Array): boolean {
  return length > configSizes.handedOverBytesMax;
}
