import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import { type Digests, reasonOf, unfitReason } from './read-config-file.ts';

/** Resolves with the digest of each file's content. */
export type DigestFiles = (files: Iterable<string>, nowMs: number) => Promise<Digests>;

/** What was found of a file: its identity with its times, and the digest of its content. */
interface Sighting {
  readonly identity: string;
  readonly digest: string;
}

export type DigestBounds = Pick<Bounds, 'configSettledAfterMs'>;

/** Makes a function that remembers what it found, and reads a file only when it may have changed since. */
export function createDigestFiles({ configSettledAfterMs }: DigestBounds): DigestFiles {
  let sightings = new Map<string, Sighting>();

  return async (files, nowMs) => {
    const next = new Map<string, Sighting>();
    for (const file of files)
      next.set(file, await digestFile(file, sightings.get(file), nowMs - configSettledAfterMs));
    sightings = next;
    return new Map([...next].map(([file, { digest }]) => [file, digest]));
  };
}

async function digestFile(
  file: string,
  before: Sighting | undefined,
  settledBeforeMs: number,
): Promise<Sighting> {
  try {
    // `stat` follows links, so a swapped symlink shows as another inode.
    const stats = await stat(file, { bigint: true });
    const { dev, ino, size, mtimeNs, ctimeNs } = stats;
    const identity = `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    const changedMs = Number(ctimeNs / 1_000_000n);
    const isSettled = changedMs < settledBeforeMs;
    if (before?.identity === identity && isSettled) return before;
    return { identity, digest: unfitReason(stats) ?? (await digestInParts(file)) };
  } catch (error) {
    const reason = reasonOf(error, file);
    return { identity: reason, digest: reason };
  }
}

/** As `digestOfContent`, with other work in between: all of 32 MiB at once would keep requests waiting for 30 ms. */
async function digestInParts(file: string): Promise<string> {
  const digest = createHash('sha256');
  const part = Buffer.allocUnsafe(partBytes);
  const opened = await open(file);
  try {
    for (;;) {
      const { bytesRead } = await opened.read(part);
      if (bytesRead === 0) return digest.digest('hex');
      digest.update(part.subarray(0, bytesRead));
    }
  } finally {
    await opened.close();
  }
}

/** Takes a quarter of a millisecond. */
const partBytes = 262_144;
