import { isDeepStrictEqual } from 'node:util';
import type { Settings } from '../model.ts';

/** What a process takes in only when it starts: its sockets and its store. */
const fixedAtStart = ['listen', 'admin', 'redis'] as const satisfies readonly (keyof Settings)[];

/** The names of changed settings that take effect only at the next start. */
export function restartNeeded(before: Settings, after: Settings): string[] {
  return fixedAtStart.filter((name) => !isDeepStrictEqual(before[name], after[name]));
}
