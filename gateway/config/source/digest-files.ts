import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { type Digests, reasonOf, unfitReason } from './read-config-file.ts';

/** Resolves with the digest of each file's content. */
export type DigestFiles = (files: Iterable<string>, nowMs: number) => Promise<Digests>;

/**
 * The last observation of a file. The observation contains the file's identity, which includes its timestamps, and the digest of
 * its content.
 */
interface Sighting {
  readonly identity: string;
  readonly digest: string;
  /** Whether every later change of the file is certain to change the identity. */
  readonly isSettled: boolean;
}

/** Makes a function that caches digests. The function reads a file again only when the file may have changed. */
export function createDigestFiles(bounds: Bounds): DigestFiles {
  let sightings = new Map<string, Sighting>();

  return async (files, nowMs) => {
    const next = new Map<string, Sighting>();
    for (const file of files)
      next.set(file, await digestFile(file, { before: sightings.get(file), nowMs, bounds }));
    sightings = next;
    return new Map([...next].map(([file, { digest }]) => [file, digest]));
  };
}

async function digestFile(
  file: string,
  {
    before,
    nowMs,
    bounds,
  }: { readonly before: Sighting | undefined; readonly nowMs: number; readonly bounds: Bounds },
): Promise<Sighting> {
  try {
    // `stat` follows links, so a symlink that now names another file has another inode.
    const stats = await stat(file, { bigint: true });
    const { dev, ino, size, mtimeNs, ctimeNs } = stats;
    const identity = `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    if (before?.identity === identity && before.isSettled) return before;
    const settledAfterMs = isFine(ctimeNs) ? bounds.configSettledAfterMs : bounds.configSettledCoarseMs;
    const isSettled = nowMs - Number(ctimeNs / 1_000_000n) > settledAfterMs;
    return { identity, digest: unfitReason(stats) ?? (await digestInParts(file)), isSettled };
  } catch (error) {
    const reason = reasonOf(error, file);
    return { identity: reason, digest: reason, isSettled: false };
  }
}

/**
 * Whether the file system's timestamps are more precise than a millisecond. With less precise timestamps, two quick edits may get
 * the same timestamp.
 */
function isFine(timeNs: bigint): boolean {
  return timeNs % 1_000_000n !== 0n;
}

/**
 * Computes the same digest as `digestOfContent`, with pauses in which the process serves requests. Hashing 32 MiB without a pause
 * would delay requests by 30 ms.
 */
async function digestInParts(file: string): Promise<string> {
  const digest = createHash('sha256');
  const part = Buffer.allocUnsafe(partBytes);
  const opened = await open(file);
  try {
    for (;;) {
      const { bytesRead } = await opened.read(part);
      if (bytesRead === 0) return digest.digest('hex');
      digest.update(part.subarray(0, bytesRead));
      if (bytesRead === partBytes) await sleep(partPauseMs);
    }
  } finally {
    await opened.close();
  }
}

/** The number of bytes that are hashed between two pauses. Hashing one part takes a quarter of a millisecond. */
const partBytes = 262_144;

/** The pause after each part. The pause is four times as long as the time for hashing a part. */
const partPauseMs = 1;
