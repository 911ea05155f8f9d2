import * as z from 'zod';
import { type ChangesPage, changeActions, type RecordedChange } from '../../../fleet/changes.ts';
import { retryText, revertText } from '../../../fleet/guard/revert-text.ts';
import { keyChangeText } from '../../../fleet/key-change-text.ts';
import { eventGroups } from '../../../fleet/kinds/kind.ts';
import { eventKinds } from '../../../fleet/kinds/kinds.ts';
import type { KnownProcess } from '../../../fleet/presence.ts';
import {
  components,
  count,
  instant,
  isComplete,
  list,
  positive,
  processId,
  version,
  words,
} from '../../wires/response-parts.ts';

const changedMembers = z
  .record(z.string(), z.unknown())
  .describe(
    'Members of a key by their names, such as `plan` and `limits`, or the limits of a plan; `secret` is the beginning of a digest. A value with more than 200 characters of JSON is shown as a shortened text.',
  );
const changed = z
  .union([version, changedMembers])
  .optional()
  .describe('The version of a configuration, or the members of a key that differ.');
const limitsByName = z.record(z.string(), z.record(z.string(), z.unknown())).optional();

const listedShape = {
  id: z.string(),
  at: instant,
  process: processId,
  processes: positive.describe(
    'The number of processes that reported the change; `process` is the first of these processes.',
  ),
};

export const changesPage = z
  .object({
    isComplete,
    changes: list(
      z.object({
        ...listedShape,
        action: words(...changeActions).describe(
          'The change of a key, or of many keys by an `import`. `token` is a change of the tokens of this API. A guard makes the change `plan.reverted`, and `plan.retried` ends a revert. `reload` and `reload_failed` are loads of the configuration.',
        ),
        by: z
          .string()
          .describe(
            'The author of the change: the name of the token, `file` for an edit of the configuration files, or `guard` for a plan that its guard has reverted.',
          ),
        key: z.string().optional().describe('The id of the key.'),
        plan: z.string().optional().describe('The plan that was reverted or retried.'),
        figures: z
          .object({ sinceAt: instant, requests: count, refused: count })
          .optional()
          .describe('The requests and refused requests during the ten minutes before a revert.'),
        files: list(z.string()).optional().describe('The names of the configuration files that were edited.'),
        text: z.string().describe('The change as a sentence.'),
        edits: list(z.string())
          .optional()
          .describe(
            'The changes of a `reload`, such as `free 60 → 50 a minute`. The texts have no secrets and no names of customers. Absent in records of an earlier version.',
          ),
        limitsBefore: z
          .object({ plans: limitsByName, keys: limitsByName })
          .optional()
          .describe(
            'The previous limits of up to 20 plans and up to 5 keys that a `reload` changed, or of a reverted or retried plan. Absent if no limits changed.',
          ),
        inForce: z
          .object({ processes: positive, of: positive })
          .optional()
          .describe(
            'The number of processes that use the configuration of a `reload` now; absent if no process uses it.',
          ),
        before: changed,
        after: changed,
        error: z
          .string()
          .optional()
          .describe('The reason why the change failed, or why its outcome is unknown.'),
      }),
    ),
    next: z.string().optional().describe('The value of `after` for the next page; absent on the last page.'),
  })
  .register(components, { id: 'Changes' });

export type ChangesShown = z.output<typeof changesPage>;

/** The response of `/events`, which `Events.list` makes. */
export const eventsPage = z
  .object({
    isComplete,
    events: list(
      z.object({
        ...listedShape,
        kind: words(...eventKinds),
        group: words(...eventGroups).describe(
          '`incident`: a failure. `ban`: a ban or its end. `change`: a change that an operator made.',
        ),
        text: z.string().describe('The event in one sentence, with times in UTC.'),
        beganAt: instant.optional().describe('The beginning of the outage; `at` is its end.'),
        server: z.string().optional().describe('The server of a Redis Cluster.'),
        key: z.string().optional().describe('The id of the key that was banned or changed.'),
        plan: z.string().optional().describe('The plan of the key.'),
        upstream: z.string().optional(),
        target: z.string().optional().describe('An address of the upstream.'),
        untilAt: instant.optional().describe('The end of the ban, or the expiry of the certificate.'),
        count: positive
          .optional()
          .describe(
            'The number of further events of this kind that this entry summarises. Absent if the entry is a single event.',
          ),
      }),
    ),
    next: z.string().optional().describe('The value of `after` for the next page; absent on the last page.'),
  })
  .register(components, { id: 'Events' });

export type EventsShown = z.output<typeof eventsPage>;

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
    case 'plan.reverted': {
      const { requests = 0, refused = 0 } = change.figures ?? {};
      return revertText({ plan: change.plan, requests, refused, edit: change.before, inForce: change.after });
    }
    case 'plan.retried':
      return retryText(change);
    default:
      return keyChangeText(change, nowMs);
  }
}

/** Shortens a version of the configuration to its first digits. */
function short(version: string): string {
  return version.slice(0, 6);
}
