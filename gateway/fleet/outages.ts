import { beginOfOutage } from '../shared/words/event-names.js';
import type { EventKind, GatewayEvent, Happening } from './kinds/kinds.ts';
import type { Listed } from './shared-list.ts';

type Begin = Extract<Happening, { kind: (typeof beginOfOutage)[keyof typeof beginOfOutage] }>;

const beginOf: Partial<Record<EventKind, Begin['kind']>> = beginOfOutage;
const begins: ReadonlySet<EventKind> = new Set(Object.values(beginOf));

type Subject = Pick<GatewayEvent, 'kind' | 'server' | 'upstream' | 'target'>;

/** The same for the first and the last event of the outage. Undefined for an event that belongs to no outage. */
function subjectOf({ kind, server = '', upstream = '', target = '' }: Subject): string | undefined {
  const begin = beginOf[kind] ?? (begins.has(kind) ? kind : undefined);
  return begin && [begin, server, upstream, target].join(' ');
}

/** An outage whose first event this process has recorded. */
export interface Begun {
  readonly happening: Begin;
  /** Epoch ms. */
  readonly atMs: number;
}

/** The last event of an outage can then include the start and the reason. */
export function createBegunOutages(max: number) {
  const begun = new Map<string, Begun>();
  return {
    /** @returns the begin of the outage, if the event ends an outage whose begin is known */
    note(happening: Happening, seenBy: string, atMs: number): Begun | undefined {
      const subject = subjectOf(happening as Subject);
      if (subject === undefined) return undefined;
      const key = `${seenBy} ${subject}`;
      const before = begun.get(key);
      begun.delete(key);
      if (!begins.has(happening.kind)) return before;
      // A target that changes from `silent` to `down` stays unhealthy, so the outage began with the first of the two events.
      begun.set(key, { happening: happening as Begin, atMs: before?.atMs ?? atMs });
      const [oldest] = begun.keys();
      if (begun.size > max && oldest !== undefined) begun.delete(oldest);
      return undefined;
    },
  };
}

type ListedEvent = Listed<GatewayEvent>;

/** An event that ends an outage also matches the kind of the event that began it. */
export function isOfKind({ kind }: Pick<GatewayEvent, 'kind'>, kinds: ReadonlySet<string>): boolean {
  return kinds.has(kind) || kinds.has(beginOf[kind] ?? '');
}

/**
 * Omits the first event of an outage whose last event is listed, and reports of the same outage by other processes.
 *
 * @param nearMs longest time between the reports of two processes about the beginning of one outage
 * @returns a function that receives events, newest first, and returns whether to list the event. If an event of the same outage is listed,
 * it may get further processes and an earlier start
 */
export function createOutageMerger(nearMs: number) {
  /** By subject. */
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
