import type { ChangesPage, RecordedChange } from '../../../fleet/changes.ts';
import { isLimitsChange, limitsChangeKind } from '../../../fleet/changes.ts';
import { keyChangeText } from '../../../fleet/key-change-text.ts';
import type { KnownProcess } from '../../../fleet/presence.ts';
import type { ChangesShown } from '../../wires/changes.ts';

/**
 * Adds a sentence to each change. For a reload, the function also adds the number of processes that use the new
 * configuration.
 */
export function changesView(
  page: ChangesPage,
  { processes, nowMs }: { readonly processes: readonly KnownProcess[]; readonly nowMs: number },
): ChangesShown {
  const shown = new Set<string>();
  const changes = page.changes.map((change) => {
    const view = { ...change, text: changeSentence(change, nowMs) };
    if (change.action !== 'reload' || change.after === undefined || shown.has(change.after)) return view;
    shown.add(change.after);
    const having = processes.filter(({ configVersion }) => configVersion === change.after).length;
    return having === 0 ? view : { ...view, inForce: { processes: having, of: processes.length } };
  });
  return { ...page, changes };
}

/** Describes a change in one sentence. Times are UTC. */
export function changeSentence(change: RecordedChange, nowMs: number): string {
  if (isLimitsChange(change)) return limitsChangeKind(change).text(change);
  switch (change.action) {
    case 'reload': {
      const { before, after = '', edits } = change;
      // Earlier releases of Tollgate recorded only the old and the new version of the configuration.
      if (edits === undefined) return `Configuration ${short(after)} replaced ${short(before)}.`;
      if (edits.length === 0) return 'The files were edited, and no setting changed.';
      const text = edits.join('; ');
      return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
    }
    case 'reload_failed':
      return `An edit was not loaded, so configuration ${short(change.before)} stays in force.`;
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

function short(version: string): string {
  return version.slice(0, 6);
}
