import { hash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { bounds } from '../bounds.ts';

/** What was seen of a file: its identity and times, and a digest of its content. */
interface Sighting {
  readonly identity: string;
  readonly digest: string;
}

/** Answers a text that changes when the content of one of the files changes. */
export type FingerprintFiles = (files: readonly string[], nowMs: number) => Promise<string>;

/**
 * A file system may give two quick edits one time stamp (2 s on some network and FAT volumes), so a file that changed
 * this recently is read again even though nothing else of it differs.
 */
const settledAfterMs = 3_000;

/** Makes a function that remembers what it saw and reads a file only when it may have changed. */
export function createFingerprintFiles(): FingerprintFiles {
  let sightings = new Map<string, Sighting>();

  return async (files, nowMs) => {
    const next = new Map<string, Sighting>();
    for (const file of files) next.set(file, await look(file, sightings.get(file), nowMs));
    sightings = next;
    return [...next].map(([file, { digest }]) => `${file} ${digest}`).join('\n');
  };
}

async function look(file: string, before: Sighting | undefined, nowMs: number): Promise<Sighting> {
  try {
    // `stat` follows links, so a swapped symlink shows as another inode.
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    const identity = `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    const changedMs = Number(ctimeNs / 1_000_000n);
    const isSettled = changedMs < nowMs - settledAfterMs;
    if (before?.identity === identity && isSettled) return before;
    // Too large to be loaded, so its content does not matter.
    if (size > BigInt(bounds.configBytesMax)) return { identity, digest: identity };
    return { identity, digest: hash('sha256', await readFile(file), 'hex') };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return { identity: code, digest: code };
  }
}
