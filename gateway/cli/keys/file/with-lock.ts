import { mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bounds, defaultBounds } from '../../../shared/timeouts-and-sizes.ts';

/**
 * Locks a file for an edit.
 *
 * The lock is the folder `<file>.lock`. The folder contains one file, whose name identifies the owner of the lock. A process takes the lock
 * by renaming a prepared folder to `<file>.lock`. The rename fails while a folder of this name exists and is not empty. To release the lock
 * of a dead process, another process removes the file with the dead process's name, and keeps the folder. The rename and the removal are
 * atomic, so exactly one of many waiting processes gets the lock.
 *
 * If the folder of the file is read-only (for example, if a single file is mounted into a container), the edit runs without a lock.
 *
 * @throws when another process keeps the lock, or when too many processes have it one after the other
 */
export async function withLock<Result>(
  file: string,
  edit: () => Result,
  bounds: Bounds = defaultBounds,
): Promise<Result> {
  const lock = `${file}.lock`;
  const isHeld = await acquire(lock, bounds);
  try {
    return edit();
  } finally {
    if (isHeld) release(lock);
  }
}

const self = `${process.pid}@${hostname()}`;

async function acquire(lock: string, bounds: Bounds): Promise<boolean> {
  const ready = makeReady(lock);
  if (ready === undefined) return false;
  // The loop counts its checks, and does not measure the elapsed time. The elapsed time would include the time for which this process is
  // suspended.
  const looksAtOneMax = bounds.editLockWaitMs / bounds.editLockPollMs;
  const looksMax = bounds.editLockQueueMs / bounds.editLockPollMs;
  let keptBy: string | undefined;
  let looksAtOne = 0;
  for (let looks = 1; !tryRename(ready, lock); looks++) {
    const owners = ownersOf(lock);
    for (const owner of owners) if (isDead(owner)) rmSync(join(lock, owner), { force: true });
    const seen = owners.join();
    looksAtOne = seen === keptBy ? looksAtOne + 1 : 1;
    keptBy = seen;
    if (looksAtOne > looksAtOneMax || looks > looksMax) {
      rmSync(ready, { recursive: true });
      throw new Error(`another process is editing the keys; if none is, remove ${lock}`);
    }
    await sleep(bounds.editLockPollMs);
  }
  return true;
}

function makeReady(lock: string): string | undefined {
  try {
    const ready = mkdtempSync(`${lock}.`);
    writeFileSync(join(ready, self), '');
    return ready;
  } catch {
    return undefined;
  }
}

function tryRename(ready: string, lock: string): boolean {
  try {
    renameSync(ready, lock);
    return true;
  } catch {
    return false;
  }
}

function ownersOf(lock: string): string[] {
  try {
    return readdirSync(lock);
  } catch {
    // The lock folder is missing because the lock was just released, or unreadable because it belongs to another user.
    return [];
  }
}

/** Whether the owner's process has exited. Returns false for a process on another host or in another container, whose state is unknown. */
function isDead(owner: string): boolean {
  const [pid, host] = owner.split('@');
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}

function release(lock: string): void {
  rmSync(join(lock, self), { force: true });
  try {
    rmdirSync(lock);
  } catch {
    // The removal of the lock's folder fails if another process has already taken the lock.
  }
}
