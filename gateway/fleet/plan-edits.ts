import type { Limits, Settings } from '../model.ts';
import { figure, per } from './wording.ts';

type Plans = Settings['plans'];

/** What a reload did to the limits of plans, such as "free 60 → 50 a minute"; empty where it left them as they were. */
export function planEdits(before: Plans, after: Plans): readonly string[] {
  const changed = [...after].flatMap(([name, { limits }]) => {
    const earlier = before.get(name)?.limits;
    if (earlier === undefined) return [`plan ${name} is new`];
    const edits = limitEdits(earlier, limits);
    return edits.length === 0 ? [] : [`${name} ${edits.join(', ')}`];
  });
  const removed = [...before.keys()].filter((name) => !after.has(name));
  return [...changed, ...removed.map((name) => `plan ${name} is gone`)];
}

function limitEdits(before: Limits | 'custom', after: Limits | 'custom'): readonly string[] {
  if (before === 'custom' || after === 'custom') {
    return before === after
      ? []
      : [after === 'custom' ? 'has limits for each key now' : 'has limits of its own now'];
  }
  const windows = new Set([...before, ...after].map(({ window }) => window));
  return [...windows].flatMap((window) => {
    const [from, to] = [before, after].map((limits) => limits.find((one) => one.window === window)?.max);
    return from === to ? [] : [`${limitText(from)} → ${limitText(to)} ${per(window)}`];
  });
}

function limitText(limit: number | undefined): string {
  return limit === undefined ? 'no limit' : figure(limit);
}
