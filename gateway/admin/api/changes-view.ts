import type { ChangesPage, RecordedChange } from '../../fleet/changes.ts';
import { keyChangeText } from '../../fleet/key-change-text.ts';
import type { KnownProcess } from '../../fleet/presence.ts';

/** Adds a sentence to each change. A reload also gets the number of processes that have its configuration in force. */
export function changesView(
  page: ChangesPage,
  { processes, nowMs }: { readonly processes: readonly KnownProcess[]; readonly nowMs: number },
): object {
  const shown = new Set<string>();
  const changes = page.changes.map((change) => {
    const view = { ...change, text: textOf(change, nowMs) };
    if (change.action !== 'reload' || change.after === undefined || shown.has(change.after)) return view;
    shown.add(change.after);
    const having = processes.filter(({ configVersion }) => configVersion === change.after).length;
    return having === 0 ? view : { ...view, inForce: { processes: having, of: processes.length } };
  });
  return { ...page, changes };
}

function textOf(change: RecordedChange, nowMs: number): string {
  switch (change.action) {
    case 'reload': {
      const { before, after = '', edits } = change;
      // An earlier version recorded only the two versions.
      if (edits === undefined) return `Configuration ${short(after)} replaced ${short(before)}.`;
      if (edits.length === 0) return 'The files were edited, and no setting changed.';
      const text = edits.join('; ');
      return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
    }
    case 'reload_failed':
      return `An edit was not loaded, ${short(change.before)} stays in force.`;
    case 'token': {
      const { before, after } = change;
      const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
      const texts = names.map((name) => {
        if (!Object.hasOwn(before, name)) return `${name} is new`;
        return Object.hasOwn(after, name) ? `${name} changed` : `${name} is gone`;
      });
      return `Tokens of the admin API: ${texts.join(', ')}.`;
    }
    default:
      return keyChangeText(change, nowMs);
  }
}

/** The first digits of a version, enough to distinguish versions. */
function short(version: string): string {
  return version.slice(0, 6);
}
