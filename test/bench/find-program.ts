import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The path of a program: from the PATH, or from the `sbin` folders, which are not in the PATH of every user. */
export function findProgram(name: string): string | undefined {
  const dirs = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin', '/usr/local/sbin'];
  return dirs.map((dir) => join(dir, name)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
