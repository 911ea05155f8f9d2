import type { RedisConnection } from '../redis/redis-connection.ts';
import { redisKeys } from '../redis-keys.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { type EventKind, eventsInWords, eventText, type Happening } from './event-text.ts';
import { createSharedList, type ListBounds, type Listed, type Report } from './shared-list.ts';
import { figure } from './wording.ts';

/** What the list of events says of something that happened. Instants are ISO 8601, in UTC. */
export interface GatewayEvent {
  readonly kind: EventKind;
  /** One sentence that says it all. */
  readonly text: string;
  readonly key?: string;
  readonly plan?: string;
  readonly upstream?: string;
  readonly target?: string;
  /** Until when a key is banned, or a certificate is valid. */
  readonly untilAt?: string;
  /** How many of this kind it stands for, where there were too many to list. */
  readonly count?: number;
}

export interface EventsPage {
  /** False while Redis is away: then only those of this process are known. */
  readonly isComplete: boolean;
  /** The newest first. */
  readonly events: readonly Listed<GatewayEvent>[];
  readonly next?: string;
}

/** What happened lately, on all processes. */
export interface Events {
  /** @param seenBy the process that has seen it, where that is another one */
  record(happening: Happening, seenBy?: string): void;
  /** @param after the id of the last event of the page before */
  read(options: { readonly limit: number; readonly after?: string }): Promise<EventsPage>;
  /** Sends what is left to send, and stops. */
  close(): Promise<void>;
}

type EventBounds = Pick<
  Bounds,
  | 'eventsMax'
  | 'eventsKeptMs'
  | 'eventsMergedWithinMs'
  | 'eventsAtOnceMax'
  | 'eventsRefillMs'
  | 'eventsSummaryPauseMs'
  | 'eventsSummaryPauseMaxMs'
  | 'changesMergedWithinMs'
  | 'changeErrorCharsMax'
> &
  ListBounds;

/** The events of one kind: how many may be listed now, and how many wait to be counted in one. */
interface Flow {
  room: number;
  /** When that was so, of `performance.now()`. */
  roomAtMs: number;
  untold: number;
  pauseMs: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Events come from where they are logged. A process lists the first of many and counts the others in one further event, so
 * that a flood of bans neither pushes out all else nor keeps Redis busy.
 */
export function createEvents({
  bounds,
  ...deps
}: {
  readonly records: RedisConnection | undefined;
  readonly processId: string;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: EventBounds;
}): Events {
  const { processId, nowMs } = deps;
  const list = createSharedList<GatewayEvent>({
    ...deps,
    names: (prefix) => [redisKeys.events.name(prefix), redisKeys.eventsReports.name(prefix)],
    entriesMax: bounds.eventsMax,
    keptMs: bounds.eventsKeptMs,
    bounds,
  });
  const flows = new Map<EventKind, Flow>();

  function record(happening: Happening, seenBy?: string): void {
    const { kind } = happening;
    const flow = flowOf(kind);
    refill(flow);
    if (flow.room >= 1 && flow.untold === 0) {
      flow.room -= 1;
      list.record({ ...reportOf(happening, { processId, nowMs: nowMs(), bounds }), seenBy });
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
    const text = `And ${figure(count)} more ${eventsInWords[kind]}.`;
    // Each process counts those that it saw.
    list.record({ what: ['more', kind, processId], mergedWithinMs: 0, entry: { kind, text, count } });
  }

  return {
    record,
    async read(options) {
      const { entries: events, ...page } = await list.read(options);
      return { ...page, events };
    },
    async close() {
      for (const [kind, flow] of flows) tellCount(kind, flow);
      await list.close();
    },
  };
}

/** What of it is the same on all processes, and how it is listed. */
function reportOf(
  happening: Happening,
  { processId, nowMs, bounds }: { processId: string; nowMs: number; bounds: EventBounds },
): Report<GatewayEvent> {
  const { kind } = happening;
  const { eventsMergedWithinMs, changesMergedWithinMs, eventsKeptMs } = bounds;
  const text = eventText(happening, nowMs).slice(0, bounds.changeErrorCharsMax);
  switch (happening.kind) {
    case 'ban':
    case 'ban_ended': {
      const { keyId: key, plan, untilMs } = happening;
      const untilAt = new Date(untilMs).toISOString();
      const entry = { kind, text, key, ...(plan !== undefined && { plan }), untilAt };
      // A process may hear of a ban as late as with its last request.
      return { what: [kind, key, untilMs], mergedWithinMs: eventsKeptMs, entry };
    }
    case 'target_unhealthy':
    case 'target_healthy': {
      const { upstream, target } = happening;
      const entry = { kind, text, upstream, target };
      return { what: [kind, upstream, target], mergedWithinMs: eventsMergedWithinMs, entry };
    }
    case 'key_changed': {
      const { key } = happening;
      // One process did it.
      return {
        what: [kind, processId],
        mergedWithinMs: 0,
        entry: { kind, text, ...(key !== undefined && { key }) },
      };
    }
    case 'certificate_expiring': {
      // The notice has the days that are left: one event a day.
      const { notice, notAfterMs } = happening;
      const entry = { kind, text, untilAt: new Date(notAfterMs).toISOString() };
      return { what: [kind, notice], mergedWithinMs: eventsKeptMs, entry };
    }
    case 'reload':
    case 'reload_failed': {
      const { before, after } = happening;
      return { what: [kind, before, after], mergedWithinMs: changesMergedWithinMs, entry: { kind, text } };
    }
    case 'recording_paused':
    case 'recording_resumed':
      // Each process looks in its own time, every ten seconds.
      return { what: [kind], mergedWithinMs: changesMergedWithinMs, entry: { kind, text } };
    case 'worker_ended':
      // One supervisor did it.
      return { what: [kind, processId], mergedWithinMs: 0, entry: { kind, text } };
    case 'store_away':
    case 'store_back':
      return {
        what: happening.server === undefined ? [kind] : [kind, happening.server],
        mergedWithinMs: eventsMergedWithinMs,
        entry: { kind, text },
      };
  }
}
