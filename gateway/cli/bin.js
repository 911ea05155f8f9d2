#!/usr/bin/env node
// The command of the npm package. Node runs no TypeScript below node_modules, so the package runs the JavaScript in dist/. A clone runs the
// TypeScript files.
import { existsSync, lstatSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

// `engines` in package.json has the same version. npm only warns about it.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 22)) {
  console.error(`tollgate needs Node 22.22 or newer, and this is Node ${process.versions.node}.`);
  process.exit(1);
}

const cache = cacheFolder();
// Older versions of Node cannot even load a file that imports this function by its name.
if (cache !== undefined) nodeModule.enableCompileCache(cache);

const source = new URL('./tollgate.ts', import.meta.url);
await import(
  (existsSync(source) ? source : new URL('../../dist/gateway/cli/tollgate.js', import.meta.url)).href
);

/**
 * Returns the folder in which Node keeps compiled code, and creates it. Node runs the code in this folder without a check of its origin, so
 * only this user may be able to write it. Otherwise the result is undefined, and each command compiles its code.
 *
 * @returns {string | undefined}
 */
function cacheFolder() {
  const { XDG_CACHE_HOME: stated = '' } = process.env;
  try {
    // The XDG Base Directory Specification says that programs ignore a relative path. HOME may be empty.
    const base = [stated, join(homedir(), '.cache')].find(isAbsolute);
    // With `sudo`, HOME may belong to another user, who could replace what root creates there.
    if (base === undefined || !isSafe(base)) return undefined;
    const folder = join(base, 'tollgate');
    // The option `recursive` never ends where the parent cannot be created, as in /proc and in an automounted /home.
    for (const path of [base, folder]) if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
    const stat = lstatSync(folder);
    const isPrivate = stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & 0o777) === 0o700;
    // Another user may have created `base` in /tmp after the first check.
    return isPrivate && isSafe(base) ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** Whether no other user except root can replace a folder, or the nearest of its parents that exists. @param {string} path */
function isSafe(path) {
  if (!existsSync(path)) return isSafe(dirname(path));
  for (let folder = realpathSync(path); ; folder = dirname(folder)) {
    const { uid, mode } = statSync(folder);
    if (uid !== 0 && uid !== process.getuid?.()) return false;
    // In a folder with the sticky bit, such as /tmp, users can replace only their own entries.
    if ((mode & 0o022) !== 0 && (mode & 0o1000) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
