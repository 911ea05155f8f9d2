import type { EventKind, GatewayEvent, Happening } from './event-text.ts';
import type { Listed } from './shared-list.ts';

type Begin = Extract<Happening, { kind: 'store_away' | 'target_unhealthy' | 'recording_paused' }>;

/** The events that end an outage, each with the event that begins it. */
const beginOf: Partial<Record<EventKind, Begin['kind']>> = {
  store_back: 'store_away',
  target_healthy: 'target_unhealthy',
  recording_resumed: 'recording_paused',
};
const begins: ReadonlySet<EventKind> = new Set(Object.values(beginOf));

type Subject = Pick<GatewayEvent, 'kind' | 'server' | 'upstream' | 'target'>;

/** What an outage is of: equal in its begin and its end. Undefined of any other event. */
function subjectOf({ kind, server = '', upstream = '', target = '' }: Subject): string | undefined {
  const begin = beginOf[kind] ?? (begins.has(kind) ? kind : undefined);
  return begin && [begin, server, upstream, target].join(' ');
}

/** An outage that a process has seen begin. */
export interface Begun {
  readonly happening: Begin;
  /** Epoch ms. */
  readonly atMs: number;
}

/** Remembers what has begun, so that its end says since when it lasted, and why. @param max outages that are remembered */
export function createBegunOutages(max: number) {
  const begun = new Map<string, Begun>();
  return {
    /** @returns of an end: what it ends, if this is known */
    note(happening: Happening, seenBy: string, atMs: number): Begun | undefined {
      const subject = subjectOf(happening as Subject);
      if (subject === undefined) return undefined;
      const key = `${seenBy} ${subject}`;
      const before = begun.get(key);
      begun.delete(key);
      if (!begins.has(happening.kind)) return before;
      // A target that was silent and is down now has been unhealthy all the while.
      begun.set(key, { happening: happening as Begin, atMs: before?.atMs ?? atMs });
      const [oldest] = begun.keys();
      if (begun.size > max && oldest !== undefined) begun.delete(oldest);
      return undefined;
    },
  };
}

type ListedEvent = Listed<GatewayEvent>;

/** Whether an event is of a kind. An outage that is over is also of the kind of its begin. */
export function isOfKind({ kind }: Pick<GatewayEvent, 'kind'>, kinds: ReadonlySet<string>): boolean {
  return kinds.has(kind) || kinds.has(beginOf[kind] ?? '');
}

/**
 * Makes one event of an outage: its begin is left out when its end is listed, and so are the reports of other processes that
 * saw it in the same time.
 *
 * @param nearMs how far apart processes may see the same begin
 * @returns a function that is given events, the newest first, and returns whether an event is listed. An event that is
 *   listed changes when an older report of the same outage follows
 */
export function createOutageMerger(nearMs: number) {
  /** By subject, the oldest that is listed. */
  const last = new Map<
    string,
    { event: ListedEvent; beganMs: number; isOver: boolean; seenBy: Set<string> }
  >();
  return (event: ListedEvent): boolean => {
    const subject = subjectOf(event);
    if (subject === undefined || event.count !== undefined) return true;
    const isOver = !begins.has(event.kind);
    const atMs = Date.parse(event.at);
    const beganMs = Date.parse(event.beganAt ?? event.at);
    const known = last.get(subject);
    const isSame = known !== undefined && atMs >= known.beganMs - nearMs;
    if (!isSame) {
      last.set(subject, { event, beganMs, isOver, seenBy: new Set([event.process]) });
      return true;
    }
    known.seenBy.add(event.process);
    known.beganMs = Math.min(known.beganMs, beganMs);
    const began = new Date(known.beganMs).toISOString();
    Object.assign(known.event, {
      processes: Math.max(known.event.processes, event.processes, known.seenBy.size),
      ...(known.isOver ? { beganAt: began } : { at: began }),
    });
    return false;
  };
}
