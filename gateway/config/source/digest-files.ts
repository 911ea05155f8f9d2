import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { type Digests, reasonOf, unfitReason } from './read-config-file.ts';

export type DigestFiles = (files: Iterable<string>, nowMs: number) => Promise<Digests>;

/** A file's identity includes its timestamps. */
interface Sighting {
  readonly identity: string;
  readonly digest: string;
  /** Whether every later change of the file is certain to change the identity. */
  readonly isSettled: boolean;
}

/** Reads a file again only when it may have changed. */
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

/** More precise than a millisecond. With less precise timestamps, two quick edits may get the same one. */
function isFine(timeNs: bigint): boolean {
  return timeNs % 1_000_000n !== 0n;
}

/** As `digestOfContent`, with pauses in which the process serves requests. Hashing 32 MiB without a pause would delay requests by 30 ms. */
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

/** Hashing one part takes a quarter of a millisecond. */
const partBytes = 262_144;

/** Four times as long as the hashing of a part. */
const partPauseMs = 1;
