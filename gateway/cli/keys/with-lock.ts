import { mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bounds, defaultBounds } from '../../shared/timeouts-and-sizes.ts';

/**
 * Runs an edit while no other process edits the file. The lock is the folder `<file>.lock` with one file in it, whose name
 * is the owner's. A process takes the lock by renaming a folder that it has prepared, which fails while the existing one
 * is not empty. The lock of a process that has died is released by removing the file with its name, never the folder. Both
 * steps are atomic: of many processes that find a dead owner's lock, one gets it. Where nothing can be created beside the
 * file (a single file mounted into a read-only container), the edit runs without a lock.
 *
 * @throws when another process keeps the lock, or when too many have it one after the other
 */
export async function withLock<Result>(
  file: string,
  edit: () => Result,
  bounds: LockBounds = defaultBounds,
): Promise<Result> {
  const lock = `${file}.lock`;
  const isHeld = await acquire(lock, bounds);
  try {
    return edit();
  } finally {
    if (isHeld) release(lock);
  }
}

type LockBounds = Pick<Bounds, 'editLockWaitMs' | 'editLockQueueMs' | 'editLockPollMs'>;

const self = `${process.pid}@${hostname()}`;

async function acquire(lock: string, bounds: LockBounds): Promise<boolean> {
  const ready = makeReady(lock);
  if (ready === undefined) return false;
  // Counted in looks and not on a clock: a process that was stopped meanwhile has not seen that the lock stayed.
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
    // It has just been released, or another user owns it.
    return [];
  }
}

/** Whether the owner's process has ended. On another host (in another container) that cannot be known: then false. */
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
    // Another process has taken it already.
  }
}
