import { configSizes } from '../config-sizes.ts';
import type { Contents, FileContent } from '../source/read-config-file.ts';
import type { KeptFile, LastValid } from './keep-valid-files.ts';

/** As it is sent between threads: of a large content only the digest. */
export interface HandedContent {
  readonly digest: string;
  readonly bytes?: Uint8Array | undefined;
}

export type HandedContents = ReadonlyMap<string, HandedContent>;

/** What the thread that loads is given as `LastValid`. */
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

/** What was handed over, with the large contents that are here. A file whose content is lost cannot be kept. */
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
