import type { RedisConnection } from '../redis/redis-connection.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { figure } from '../shared/words/figures.js';
import { leakIdentity } from './changes.ts';
import {
  type EventGroup,
  type EventKind,
  eventTable,
  eventText,
  type GatewayEvent,
  type Happening,
} from './event-text.ts';
import { type Begun, createBegunOutages, createOutageMerger, isOfKind } from './outages.ts';
import { createSharedList, type Listed, type PageQuery, type Report } from './shared-list.ts';

export interface EventsPage {
  /** False while Redis is unavailable; then the page has only the events of this process. */
  readonly isComplete: boolean;
  /** The newest first. */
  readonly events: readonly Listed<GatewayEvent>[];
  readonly next?: string | undefined;
}

/** A query for one page of the list of events. */
export interface EventsQuery extends PageQuery {
  /** The groups and kinds of events to list; all events if absent. */
  readonly kinds?: ReadonlySet<string> | undefined;
  /** Epoch ms. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

export type Events = ReturnType<typeof createEvents>;

/** The state of the rate limit for one kind of event. `untold` is the number of events that await a summary. */
interface Flow {
  room: number;
  /** The time at which `room` was computed, on the clock of `performance.now()`. */
  roomAtMs: number;
  untold: number;
  pauseMs: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Records the events of all processes in a shared list. The code that logs an event also records the event. Each process lists the first
 * events of one kind and summarises the rest in one further event. A flood of bans therefore neither displaces other events nor overloads
 * Redis.
 */
export function createEvents({
  bounds,
  ...deps
}: {
  readonly records: RedisConnection | undefined;
  readonly processId: string;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}) {
  const { processId, nowMs } = deps;
  const list = createSharedList<GatewayEvent>({
    ...deps,
    names: (prefix) => [redisKeys.events.name(prefix), redisKeys.eventsReports.name(prefix)],
    entriesMax: bounds.eventsMax,
    keptMs: bounds.eventsKeptMs,
    bounds,
  });
  const flows = new Map<EventKind, Flow>();
  const begun = createBegunOutages(bounds.eventsMax);

  /** @param seenBy the process that saw the event, if another process records it */
  function record(happening: Happening, seenBy?: string): void {
    const { kind } = happening;
    const ends = begun.note(happening, seenBy ?? processId, nowMs());
    const flow = flowOf(kind);
    refill(flow);
    if (flow.room >= 1 && flow.untold === 0) {
      flow.room -= 1;
      list.record({ ...reportOf(happening, { processId, nowMs: nowMs(), ends, bounds }), seenBy });
      return;
    }
    flow.untold += 1;
    flow.timer ??= setTimeout(() => tellCount(kind, flow), flow.pauseMs).unref();
  }

  function flowOf(kind: EventKind): Flow {
    const known = flows.get(kind);
    if (known !== undefined) return known;
    const flow = { room: 0, roomAtMs: Number.NEGATIVE_INFINITY, untold: 0, pauseMs: 0, timer: undefined };
    flows.set(kind, flow);
    return flow;
  }

  function refill(flow: Flow): void {
    const atMs = performance.now();
    const room = flow.room + (atMs - flow.roomAtMs) / bounds.eventsRefillMs;
    flow.room = Math.min(room, bounds.eventsAtOnceMax);
    flow.roomAtMs = atMs;
    if (flow.room === bounds.eventsAtOnceMax) flow.pauseMs = bounds.eventsSummaryPauseMs;
  }

  function tellCount(kind: EventKind, flow: Flow): void {
    clearTimeout(flow.timer);
    flow.timer = undefined;
    const count = flow.untold;
    if (count === 0) return;
    flow.untold = 0;
    flow.pauseMs = Math.min(2 * flow.pauseMs, bounds.eventsSummaryPauseMaxMs);
    const text = `And ${figure(count)} more ${eventTable[kind][1]}.`;
    // The number counts only events of this process, so it is not merged with the numbers of other processes.
    list.record({ what: ['more', kind, processId], mergedWithinMs: 0, entry: { kind, text, count } });
  }

  /** During a rolling upgrade, the list may have events of kinds that only the newer version knows. These events are omitted. */
  async function read(options: PageQuery): Promise<EventsPage> {
    const { entries, ...page } = await list.read(options);
    return { ...page, events: entries.filter(({ kind }) => Object.hasOwn(eventTable, kind)) };
  }

  return {
    record,
    read,
    /** Lists events with their groups. Each outage is listed as one event. */
    list: (query: EventsQuery) => listEvents(read, query, bounds),
    /** Sends the remaining events, and stops. */
    async close() {
      for (const [kind, flow] of flows) tellCount(kind, flow);
      await list.close();
    },
  };
}

/**
 * A page of the events that match a query. For every page, the function reads the list from its newest event, because an event may belong
 * to an outage that an earlier page shows. The list has at most 2,000 events.
 */
async function listEvents(
  read: (options: PageQuery) => Promise<EventsPage>,
  { limit, after, kinds, fromMs = 0, toMs = Number.POSITIVE_INFINITY }: EventsQuery,
  bounds: Bounds,
): Promise<EventsPage> {
  const isListed = createOutageMerger(bounds.eventsMergedWithinMs);
  const found: (Listed<GatewayEvent> & { readonly group: EventGroup })[] = [];
  let isBehind = after === undefined;
  let isComplete = true;
  let next: string | undefined;
  do {
    const page = await read({ limit: bounds.eventsPerPageMax, after: next });
    isComplete = page.isComplete;
    for (const each of page.events) {
      const event = { ...each, group: eventTable[each.kind][0] };
      const isNew = isListed(event);
      const isOfPage = isBehind;
      if (event.id === after) isBehind = true;
      const isAsked =
        (kinds === undefined || kinds.has(event.group) || isOfKind(event, kinds)) &&
        Date.parse(event.at) >= fromMs &&
        Date.parse(event.beganAt ?? event.at) < toMs;
      if (isNew && isOfPage && isAsked) found.push(event);
    }
    next = page.next;
    // An event happens before its entry is written. An entry that was written before the period therefore describes an event before the
    // period.
  } while (next !== undefined && found.length <= limit && Number.parseInt(next, 10) >= fromMs);
  const events = found.slice(0, limit);
  const last = events.at(-1);
  return { isComplete, events, next: found.length > limit ? last?.id : undefined };
}

/** Returns the entry of an event, and the identity by which the reports of several processes are merged. */
function reportOf(
  happening: Happening,
  {
    processId,
    nowMs,
    ends,
    bounds,
  }: { processId: string; nowMs: number; ends: Begun | undefined; bounds: Bounds },
): Report<GatewayEvent> {
  const { kind } = happening;
  const { eventsMergedWithinMs, changesMergedWithinMs, eventsKeptMs } = bounds;
  const text = eventText(happening, nowMs, ends?.happening).slice(0, bounds.changeErrorCharsMax);
  const began = ends && { beganAt: new Date(ends.atMs).toISOString() };
  switch (happening.kind) {
    case 'ban':
    case 'ban_ended': {
      const { keyId: key, plan, untilMs } = happening;
      const untilAt = new Date(untilMs).toISOString();
      const entry = { kind, text, key, plan, untilAt };
      // A process detects a ban only when it serves a request of the key. Reports of one ban may therefore be far apart.
      return { what: [kind, key, untilMs], mergedWithinMs: eventsKeptMs, entry };
    }
    case 'target_unhealthy':
    case 'target_healthy': {
      const { upstream, target } = happening;
      const entry = { kind, text, upstream, target, ...began };
      return { what: [kind, upstream, target], mergedWithinMs: eventsMergedWithinMs, entry };
    }
    case 'key_changed': {
      const { key } = happening;
      const leak = leakIdentity(happening);
      if (leak !== undefined) {
        return { what: [kind, ...leak], mergedWithinMs: eventsKeptMs, entry: { kind, text, key } };
      }
      // Only one process reports any other change of a key, so there is nothing to merge.
      return { what: [kind, processId], mergedWithinMs: 0, entry: { kind, text, key } };
    }
    case 'certificate_expiring': {
      // The text of the warning changes with the number of remaining days, so the warning produces one event a day.
      const { notice, notAfterMs } = happening;
      const entry = { kind, text, untilAt: new Date(notAfterMs).toISOString() };
      return { what: [kind, notice], mergedWithinMs: eventsKeptMs, entry };
    }
    case 'plan_reverted': {
      const { plan, sinceMs } = happening;
      // Every process reports the revert. A process without a connection to Redis reports it later.
      return { what: [kind, plan, sinceMs], mergedWithinMs: eventsKeptMs, entry: { kind, text, plan } };
    }
    case 'plan_retried':
      // Only the process that received the command reports the retry.
      return { what: [kind, processId], mergedWithinMs: 0, entry: { kind, text, plan: happening.plan } };
    case 'reload':
    case 'reload_failed': {
      const { before, after } = happening;
      return { what: [kind, before, after], mergedWithinMs: changesMergedWithinMs, entry: { kind, text } };
    }
    case 'recording_paused':
    case 'recording_resumed':
      // Each process checks Redis's memory every ten seconds, but the processes do not check at the same time.
      return { what: [kind], mergedWithinMs: changesMergedWithinMs, entry: { kind, text, ...began } };
    case 'worker_ended':
      // Only one supervisor reports the exit of a worker, so there is nothing to merge.
      return { what: [kind, processId], mergedWithinMs: 0, entry: { kind, text } };
    case 'store_away':
    case 'store_back': {
      const { server } = happening;
      return {
        what: server === undefined ? [kind] : [kind, server],
        mergedWithinMs: eventsMergedWithinMs,
        entry: { kind, text, server, ...began },
      };
    }
  }
}
