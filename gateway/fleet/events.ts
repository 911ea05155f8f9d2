import type { RedisConnection } from '../redis/redis-connection.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { figure } from '../shared/words/figures.js';
import type { EventGroup } from './kinds/kind.ts';
import { type EventKind, type GatewayEvent, type Happening, isEventKind, listedKind } from './kinds/kinds.ts';
import { type Begun, createBegunOutages, createOutageMerger, isOfKind } from './outages.ts';
import { createSharedList, type Listed, type PageQuery, type Report } from './shared-list.ts';

export interface EventsPage {
  /** False while Redis is unavailable; then the page has only the events of this process. */
  readonly isComplete: boolean;
  /** The newest first. */
  readonly events: readonly Listed<GatewayEvent>[];
  readonly next?: string | undefined;
}

export interface EventsQuery extends PageQuery {
  /** Groups and kinds; absent: all events. */
  readonly kinds?: ReadonlySet<string> | undefined;
  /** Epoch ms. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

export type Events = ReturnType<typeof createEvents>;

/** The rate limit for one kind of event. `untold` events await a summary. */
interface Flow {
  room: number;
  /** When `room` was computed, on the clock of `performance.now()`. */
  roomAtMs: number;
  untold: number;
  pauseMs: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * The events of all processes in a shared list. The code that logs an event also records it. Each process lists the first events of one
 * kind and summarises the rest in one further event, so a flood of bans neither displaces other events nor overloads Redis.
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
    const text = `And ${figure(count)} more ${listedKind(kind).list.many}.`;
    // The number counts only events of this process, so it is not merged.
    list.record({ what: ['more', kind, processId], mergedWithinMs: 0, entry: { kind, text, count } });
  }

  /** During a rolling upgrade, kinds that only the newer version knows are omitted. */
  async function read(options: PageQuery): Promise<EventsPage> {
    const { entries, ...page } = await list.read(options);
    return { ...page, events: entries.filter(({ kind }) => isEventKind(kind)) };
  }

  return {
    record,
    read,
    /** Lists events with their groups, and each outage as one event. */
    list: (query: EventsQuery) => listEvents(read, query, bounds),
    /** Sends the remaining events, and stops. */
    async close() {
      for (const [kind, flow] of flows) tellCount(kind, flow);
      await list.close();
    },
  };
}

/**
 * Every page reads the list from its newest event, because an event may belong to an outage that an earlier page shows. The list has at
 * most 2,000 events.
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
      const event = { ...each, group: listedKind(each.kind).list.group };
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
    // An event happens before its entry is written, so earlier entries describe events before the period.
  } while (next !== undefined && found.length <= limit && Number.parseInt(next, 10) >= fromMs);
  const events = found.slice(0, limit);
  const last = events.at(-1);
  return { isComplete, events, next: found.length > limit ? last?.id : undefined };
}

/** With the identity by which the reports of several processes are merged. */
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
  const definition = listedKind(kind);
  const text = definition.text(happening, nowMs, ends?.happening).slice(0, bounds.changeErrorCharsMax);
  const began = ends && { beganAt: new Date(ends.atMs).toISOString() };
  const entry = { kind, text, ...definition.list.entry(happening), ...began };
  const identity = definition.identity(happening);
  switch (identity.kind) {
    case 'once':
      return { what: [kind, ...identity.what], mergedWithinMs: bounds.eventsKeptMs, entry };
    case 'near':
      return { what: [kind, ...identity.what], mergedWithinMs: bounds[identity.within], entry };
    case 'own':
      return { what: [kind, processId], mergedWithinMs: 0, entry };
  }
}
