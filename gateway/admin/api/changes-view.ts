import * as z from 'zod';
import { type ChangesPage, keyActions, type RecordedChange } from '../../fleet/changes.ts';
import { type EventKind, eventGroups, groupOf } from '../../fleet/event-text.ts';
import { keyChangeText } from '../../fleet/key-change-text.ts';
import type { KnownProcess } from '../../fleet/presence.ts';
import { instant, isComplete, list, positive, processId, version, words } from './response-parts.ts';

export const eventKinds = Object.keys(groupOf) as EventKind[];

const changedMembers = z
  .record(z.string(), z.unknown())
  .describe(
    'Members of a key by their names, as `plan` and `limits`; `secret` is the beginning of a digest. What is longer than 200 characters as JSON is a text that is cut.',
  );
const changed = z
  .union([version, changedMembers])
  .optional()
  .describe('Of a configuration its version, otherwise the members that differ.');
const limitsByName = z.record(z.string(), z.record(z.string(), z.unknown())).optional();

const listedShape = {
  id: z.string(),
  at: instant,
  process: processId,
  processes: positive.describe('How many processes have reported it; the first of them is `process`.'),
};

export const changesPage = z.object({
  isComplete,
  changes: list(
    z.object({
      ...listedShape,
      action: words(...keyActions, 'token', 'reload', 'reload_failed').describe(
        'What was done to a key, or to many by an `import`; `token`: to the tokens of this API; `reload`, `reload_failed`: to the configuration.',
      ),
      by: z.string().describe('The name of the token; `file` where the configuration files were edited.'),
      key: z.string().optional().describe('The id of the key.'),
      files: list(z.string()).optional().describe('The names of the configuration files that were edited.'),
      text: z.string().describe('What was changed, as a sentence.'),
      edits: list(z.string())
        .optional()
        .describe(
          'What a `reload` changed, such as `free 60 → 50 a minute`. No text has a secret or a name that a customer has. Absent where an earlier version recorded it.',
        ),
      limitsBefore: z
        .object({ plans: limitsByName, keys: limitsByName })
        .optional()
        .describe(
          'Limits that a `reload` changed, as they were before it: of up to 20 plans, and of up to 5 keys. Absent where none was.',
        ),
      inForce: z
        .object({ processes: positive, of: positive })
        .optional()
        .describe(
          'How many processes have the configuration of a `reload` in force now; absent where none has.',
        ),
      before: changed,
      after: changed,
      error: z.string().optional().describe('Why it failed, or why nobody knows whether it is in force.'),
    }),
  ),
  next: z.string().optional().describe('There are more; absent on the last page.'),
});

export type ChangesShown = z.output<typeof changesPage>;

/** The response of `/events`, which `Events.list` makes. */
export const eventsPage = z.object({
  isComplete,
  events: list(
    z.object({
      ...listedShape,
      kind: words(...eventKinds),
      group: words(...eventGroups).describe(
        'What went wrong by itself; a ban or its end; what somebody changed.',
      ),
      text: z.string().describe('One sentence that says it all, with times in UTC.'),
      beganAt: instant.optional().describe('When the outage began that ended `at`.'),
      server: z.string().optional().describe('The server of a Redis Cluster.'),
      key: z.string().optional().describe('The id of the key that was banned or changed.'),
      plan: z.string().optional().describe('Its plan.'),
      upstream: z.string().optional(),
      target: z.string().optional().describe('An address of that upstream.'),
      untilAt: instant.optional().describe('Until when the key is banned, or the certificate is valid.'),
      count: positive
        .optional()
        .describe('Set where it stands for so many of this kind, which are not listed.'),
    }),
  ),
  next: z.string().optional().describe('There are more; absent on the last page.'),
});

export type EventsShown = z.output<typeof eventsPage>;

/** Adds a sentence to each change. A reload also gets the number of processes that have its configuration in force. */
export function changesView(
  page: ChangesPage,
  { processes, nowMs }: { readonly processes: readonly KnownProcess[]; readonly nowMs: number },
): ChangesShown {
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
