import type { DeliveriesQuery, QueuedEvent } from '../queue/delivery-queue.ts';
import { matchesDelivery, matchesEvent } from '../queue/redis-list.ts';

/**
 * The events that were read last, for the time in which Redis does not reply.
 *
 * @param eventsMax the maximum number of events
 */
export function createEventMemory(eventsMax: number) {
  /** By id. The event that was read last comes last. */
  const events = new Map<string, QueuedEvent>();

  return {
    /** Remembers events. The deliveries that a filter has left out stay as they were read before. */
    remember(read: readonly QueuedEvent[]): void {
      for (const event of read.toReversed()) {
        const deliveries = [...(events.get(event.id)?.deliveries ?? []), ...event.deliveries];
        const latest = new Map(deliveries.map((delivery) => [delivery.receiver, delivery]));
        events.delete(event.id);
        events.set(event.id, { ...event, deliveries: [...latest.values()] });
      }
      for (const id of events.keys()) {
        if (events.size <= eventsMax) break;
        events.delete(id);
      }
    },
    /** Returns the remembered events that a query selects, the newest first. */
    find(query: DeliveriesQuery): readonly QueuedEvent[] {
      // A place in the queue has a meaning only in Redis.
      if (query.after !== undefined) return [];
      return [...events.values()]
        .filter((event) => matchesEvent(event, query))
        .map((event) => ({
          ...event,
          deliveries: event.deliveries.filter((one) => matchesDelivery(one, query)),
        }))
        .filter(({ deliveries }) => deliveries.length > 0)
        .sort((a, b) => b.atMs - a.atMs)
        .slice(0, query.limit);
    },
  };
}
