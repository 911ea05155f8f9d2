import { changeSentence } from '../../../admin/api/fleet/changes-view.ts';
import { type Page, readPages } from '../../../admin/read-pages.ts';
import {
  type Changes,
  isLimitsChange,
  type LimitsBefore,
  type RecordedChange,
} from '../../../fleet/changes.ts';
import type { Events } from '../../../fleet/events.ts';
import type { EventKind } from '../../../fleet/kinds/kinds.ts';
import type { Presence } from '../../../fleet/presence.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { dayMs, ending } from '../../../shared/words/figures.js';
import type { Circumstance, ReplayedKey } from '../replay/explain-difference.ts';

export interface CircumstanceSources {
  readonly events: Pick<Events, 'read'>;
  readonly changes: Pick<Changes, 'read'>;
  readonly presence: Pick<Presence, 'read'>;
}

/**
 * Lists the events and changes that may explain a difference between the replay and the record. The list includes everything since the
 * start of the period's first day, and is sorted by time.
 */
export async function readCircumstances(
  { events, changes, presence }: CircumstanceSources,
  fromMs: number,
  { eventsPerPageMax, changesPerPageMax }: Bounds,
): Promise<readonly Circumstance[]> {
  const sinceMs = Math.floor(fromMs / dayMs) * dayMs;
  const [happened, changed, { processes }] = await Promise.all([
    allSince(sinceMs, async (after) => {
      const { events: entries, next } = await events.read({ limit: eventsPerPageMax, after });
      return { entries, next };
    }),
    allSince(sinceMs, async (after) => {
      const { changes: entries, next } = await changes.read({ limit: changesPerPageMax, after });
      return { entries, next };
    }),
    presence.read(),
  ]);
  const found: Circumstance[] = [];
  for (const { kind, at, text } of happened) {
    const kindOf = circumstanceKinds[kind];
    if (kindOf !== undefined) found.push({ kind: kindOf, atMs: Date.parse(at), text });
  }
  // The oldest first, because `sort` keeps the order of changes with the same time.
  for (const change of changed.toReversed()) {
    const concerns = concernedBy(change);
    if (concerns === undefined) continue;
    if (change.action === 'grant') {
      const untilMs = Date.parse(String(change.after?.untilAt));
      const atMs = Date.parse(String(change.after?.fromAt ?? change.at));
      const text = `given by ${change.by}, until ${ending(untilMs || 0)}.`;
      found.push({ kind: 'grant', atMs, text, concerns, untilMs });
    } else {
      const atMs = Date.parse(change.at);
      found.push({ kind: 'edit', atMs, text: changeSentence(change, atMs), concerns, isCut: isCut(change) });
    }
  }
  for (const { startedAt, host, pid, store } of processes) {
    // Without Redis, the counts are in the memory of a process and are lost when the process restarts.
    if (store.kind !== 'memory') continue;
    const text = `process ${pid} on ${host} was started at ${startedAt}, and counts are in its memory.`;
    found.push({ kind: 'start', atMs: Date.parse(startedAt), text });
  }
  return found.sort((a, b) => a.atMs - b.atMs);
}

/** The events that can explain a difference. */
const circumstanceKinds: Partial<Record<EventKind, Circumstance['kind']>> = {
  store_away: 'store_away',
  store_back: 'store_back',
  recording_paused: 'recording_paused',
  recording_resumed: 'recording_resumed',
};

/** Returns whether a change may have changed the limits of a key; undefined for a change that concerns no limits. */
function concernedBy(change: RecordedChange): ((key: ReplayedKey) => boolean) | undefined {
  if (isLimitsChange(change)) return concernedByLimits(change);
  switch (change.action) {
    case 'reload':
      return isCut(change) ? () => true : concernedByLimits(change);
    case 'update': {
      const edited = { ...change.before, ...change.after };
      const isOnLimits = ['plan', 'limits', 'groups'].some((member) => member in edited);
      return isOnLimits ? ({ id }) => id === change.key : undefined;
    }
    case 'grant':
      return ({ id }) => id === change.key;
    default:
      return undefined;
  }
}

function concernedByLimits({ limitsBefore }: { readonly limitsBefore?: LimitsBefore | undefined }) {
  const { plans = {}, keys = {} } = limitsBefore ?? {};
  return ({ id, plan = '' }: ReplayedKey) => Object.hasOwn(plans, plan) || Object.hasOwn(keys, id);
}

/** Whether the record of a reload leaves out edits, which may concern every key (`describeEdit`). */
function isCut(change: RecordedChange): boolean {
  return change.action === 'reload' && change.edits?.some((text) => /\d more\b/.test(text)) === true;
}

async function allSince<Entry extends { readonly at: string }>(
  sinceMs: number,
  read: (after: string | undefined) => Promise<Page<Entry>>,
): Promise<readonly Entry[]> {
  const isOlder = ({ at }: Entry) => Date.parse(at) < sinceMs;
  const all = await readPages(read, (page) => page.some(isOlder));
  return all.filter((entry) => !isOlder(entry));
}
