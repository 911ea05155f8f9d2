import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { withLock } from '../../../../gateway/cli/keys/file/with-lock.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';

/** Creates a file in a new folder. If `owner` is given, the file has a lock of this owner. */
function fileIn(owner?: string) {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'keys.yaml');
  writeFileSync(file, '0');
  if (owner !== undefined) {
    mkdirSync(`${file}.lock`);
    writeFileSync(join(`${file}.lock`, owner), '');
  }
  return { file, left: () => readdirSync(folder) };
}

const deadPid = () => spawnSync(process.execPath, ['-e', '']).pid;

test('many processes that find the lock of a dead process edit one at a time', async () => {
  const { file, left } = fileIn(`${deadPid()}@${hostname()}`);
  // Each process reads the number, waits, and writes it back. If two processes edited at the same time, one of the two
  // increments would be lost.
  const script = `
    import { readFileSync, writeFileSync } from 'node:fs';
    const { withLock } = await import(${JSON.stringify(resolve('gateway/cli/keys/file/with-lock.ts'))});
    for (let i = 0; i < 10; i++) await withLock(${JSON.stringify(file)}, () => {
      const count = Number(readFileSync(${JSON.stringify(file)}, 'utf8'));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
      writeFileSync(${JSON.stringify(file)}, String(count + 1));
    });`;
  const children = Array.from({ length: 6 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' }),
  );
  const exits = await Promise.all(children.map((child) => once(child, 'exit')));
  expect(exits).toEqual(children.map(() => [0, null]));
  expect(readFileSync(file, 'utf8')).toBe('60');
  expect(left()).toEqual(['keys.yaml']);
});

test.each([
  ['a living process', `${process.pid}@${hostname()}`],
  ['a process on another host, of which nothing is known', '1@elsewhere'],
])('an edit waits for the lock of %s', async (_, owner) => {
  const { file, left } = fileIn(owner);
  let isEdited = false;
  const edit = withLock(file, () => {
    isEdited = true;
  });
  await sleep(200);
  expect(isEdited).toBe(false);
  rmSync(`${file}.lock`, { recursive: true });
  await edit;
  expect(isEdited).toBe(true);
  expect(left()).toEqual(['keys.yaml']);
});

const hasty = tunedBounds({ editLockWaitMs: 200, editLockQueueMs: 60_000, editLockPollMs: 20 });

test('an edit gives up when another process keeps the lock, and leaves no file', async () => {
  const { file, left } = fileIn('1@elsewhere');
  await expect(withLock(file, () => 'edited', hasty)).rejects.toThrow('another process is editing the keys');
  expect(left()).toEqual(['keys.yaml', 'keys.yaml.lock']);
});

/**
 * Changes the owner of a file's lock `others` times, and then removes the last owner. @returns a function that returns
 * the number of new owners so far
 */
function othersInTurn(file: string, others: number): () => number {
  const ownedBy = (owner: number) => join(`${file}.lock`, `${owner}@elsewhere`);
  let owner = 0;
  const turns = setInterval(() => {
    if (owner === others) {
      clearInterval(turns);
      rmSync(ownedBy(owner));
    } else renameSync(ownedBy(owner), ownedBy(++owner));
  }, hasty.editLockPollMs);
  onTestFinished(() => clearInterval(turns));
  return () => owner;
}

test('an edit waits for other processes that have the lock one after the other', async () => {
  const { file } = fileIn('0@elsewhere');
  const had = othersInTurn(file, 40);
  expect(await withLock(file, had, hasty)).toBe(40);
});

test('an edit gives up when other processes have had the lock one after the other for too long', async () => {
  const { file } = fileIn('0@elsewhere');
  const had = othersInTurn(file, 10_000);
  const edit = withLock(file, () => 'edited', { ...hasty, editLockQueueMs: 1_000 });
  await expect(edit).rejects.toThrow('another process is editing the keys');
  expect(had()).toBeGreaterThan(hasty.editLockWaitMs / hasty.editLockPollMs);
});

test('the lock of a process that died during a takeover is free', async () => {
  const { file } = fileIn();
  mkdirSync(`${file}.lock`);
  expect(await withLock(file, () => 'edited')).toBe('edited');
});

test('an edit that throws leaves no lock', async () => {
  const { file, left } = fileIn();
  const fails = () => {
    throw new Error('no space');
  };
  await expect(withLock(file, fails)).rejects.toThrow('no space');
  expect(left()).toEqual(['keys.yaml']);
});

test('an edit in a folder without write permission runs without a lock', async () => {
  expect(await withLock('/proc/keys.yaml', () => 'edited')).toBe('edited');
});
