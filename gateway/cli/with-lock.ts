import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const lockWaitMs = 10_000;
const lockPollMs = 20;
/** An edit takes a second at most; a lock this old belongs to a process that died. */
const staleAfterMs = 60_000;

/**
 * Runs an edit while no other process edits the file: whoever creates `<file>.lock` has the turn. Where the folder
 * takes no new file (a single file mounted into a read-only container) there is no lock to be had, and the edit runs.
 *
 * @throws when another process keeps the lock
 */
export async function withLock<Result>(file: string, edit: () => Result): Promise<Result> {
  const lock = `${file}.lock`;
  const isHeld = await acquire(lock);
  try {
    return edit();
  } finally {
    if (isHeld) rmSync(lock, { force: true });
  }
}

async function acquire(lock: string): Promise<boolean> {
  const deadlineMs = Date.now() + lockWaitMs;
  while (Date.now() < deadlineMs) {
    switch (tryCreate(lock)) {
      case 'created':
        return true;
      case 'impossible':
        return false;
      case 'taken':
        if (isStale(lock)) rmSync(lock, { force: true });
        else await sleep(lockPollMs);
    }
  }
  throw new Error(`another process is editing the keys; if none is, remove ${lock}`);
}

function tryCreate(lock: string): 'created' | 'taken' | 'impossible' {
  try {
    closeSync(openSync(lock, 'wx'));
    return 'created';
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EEXIST' ? 'taken' : 'impossible';
  }
}

function isStale(lock: string): boolean {
  const stats = statSync(lock, { throwIfNoEntry: false });
  return stats !== undefined && Date.now() - stats.mtimeMs > staleAfterMs;
}
