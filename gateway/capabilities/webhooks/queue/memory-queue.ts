import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import {
  type Added,
  type Claims,
  type DeliveriesPage,
  type DeliveriesQuery,
  type DeliveryQueue,
  type EventReport,
  type QueuedEvent,
  receiverGone,
  type Settlement,
  type WantedDeliveries,
} from './delivery-queue.ts';
import { matchesDelivery, matchesEvent } from './matches-query.ts';
import { createMemoryState, type StoredDelivery, type StoredEvent } from './memory-state.ts';

/**
 * The queue of a gateway without Redis. It behaves like the queue in Redis with one process, and is empty after a restart.
 *
 * @param options.nowMs the clock for all times of the queue, epoch ms
 */
export function createMemoryQueue({
  nowMs,
  bounds,
}: {
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}): DeliveryQueue {
  const state = createMemoryState({ nowMs, bounds });
  /** The event of each identity that occurs only once, and the time until which reports are merged with it. */
  const identities = new Map<string, { readonly id: string; untilMs: number }>();
  const receivers = new Map<string, { readonly origin: string; readonly notedMs: number }>();
  let onDue = () => {};

  function add({ event, identity, receivers }: EventReport): Added {
    const { what, mergedWithinMs, isOnce } = identity;
    const name = JSON.stringify(what);
    const known = identities.get(name);
    if (isOnce && known !== undefined && known.untilMs >= nowMs()) {
      state.addReceivers(known.id, receivers);
      return { kind: 'merged', id: known.id };
    }
    // A process reports each event only once, so reports with other identities are never merged.
    if (isOnce) remember(name, { id: event.id, untilMs: nowMs() + mergedWithinMs });
    state.add(event, receivers);
    return { kind: 'added', id: event.id };
  }

  function remember(name: string, entry: { readonly id: string; untilMs: number }): void {
    identities.delete(name);
    identities.set(name, entry);
    for (const [oldest, { untilMs }] of identities) {
      if (identities.size <= bounds.webhookIdentitiesInMemoryMax && untilMs >= nowMs()) break;
      identities.delete(oldest);
    }
  }

  function claim(wanted: readonly WantedDeliveries[]): Claims {
    const deliveries = wanted.flatMap(({ receiver, deliveriesMax }) => {
      if (deliveriesMax === 0) return [];
      const due = Array.from(state.waiting(receiver)).filter(
        ({ dueMs }) => dueMs !== undefined && dueMs <= nowMs(),
      );
      due.sort((a, b) => (a.dueMs ?? 0) - (b.dueMs ?? 0));
      return due.slice(0, deliveriesMax).flatMap((delivery) => {
        const body = state.events.get(delivery.eventId)?.event.body;
        if (body === undefined) return [];
        delivery.dueMs = nowMs() + bounds.webhookClaimMs;
        delivery.isClaimed = true;
        const { eventId, attempts, firstMs = nowMs(), dueMs } = delivery;
        return [{ receiver, eventId, body, attempts, sinceFirstMs: nowMs() - firstMs, token: String(dueMs) }];
      });
    });
    return { isSending: wanted.length > 0, deliveries };
  }

  function settle(delivery: StoredDelivery, settlement: Settlement): void {
    if (settlement.kind === 'returned') {
      state.retry(delivery, 0);
      return;
    }
    const { kind, status } = settlement;
    const error = kind === 'delivered' ? undefined : settlement.error.slice(0, bounds.webhookErrorCharsMax);
    delivery.attempts += 1;
    delivery.firstMs ??= nowMs();
    delivery.last = { atMs: nowMs(), status, error };
    if (kind === 'retry') state.retry(delivery, settlement.pauseMs);
    else state.end(delivery, kind);
  }

  function list(query: DeliveriesQuery): DeliveriesPage {
    const before = query.after === undefined ? Number.POSITIVE_INFINITY : Number(query.after);
    const events: QueuedEvent[] = [];
    let next: string | undefined;
    for (const stored of Array.from(state.events.values()).reverse()) {
      if (stored.place >= before || !matchesEvent(stored.event, query)) continue;
      const event = toQueued(stored);
      const deliveries = event.deliveries.filter((delivery) => matchesDelivery(delivery, query));
      if (deliveries.length === 0) continue;
      if (events.length === query.limit) return { events, next };
      events.push({ ...event, deliveries });
      next = String(stored.place);
    }
    return { events };
  }

  function toQueued({ event: { id, type, atMs, subject }, deliveries }: StoredEvent): QueuedEvent {
    const own = Array.from(deliveries.values(), ({ receiver, state, attempts, last, dueMs: nextMs }) => {
      return { receiver, receiverOrigin: receivers.get(receiver)?.origin, state, attempts, last, nextMs };
    });
    return { id, type, atMs, subject, deliveries: own };
  }

  return {
    async add(report) {
      const added = add(report);
      onDue();
      return added;
    },
    async mergeUntil({ what }, mergedWithinMs) {
      const known = identities.get(JSON.stringify(what));
      if (known !== undefined) known.untilMs = nowMs() + mergedWithinMs;
    },
    list: async (query) => list(query),
    async read(eventId) {
      const stored = state.events.get(eventId);
      return stored === undefined ? 'unknown' : { ...toQueued(stored), body: stored.event.body };
    },
    async resend(eventId, receiver) {
      const stored = state.events.get(eventId);
      if (stored === undefined) return 'unknown';
      const again = Array.from(stored.deliveries.values()).filter(
        (delivery) => receiver === undefined || delivery.receiver === receiver,
      );
      for (const delivery of again) state.begin(delivery);
      if (again.length > 0) onDue();
      return again.length;
    },
    async counts() {
      const counts = { waiting: 0, delivered: 0, failed: 0 };
      for (const { deliveries } of state.events.values())
        for (const delivery of deliveries.values()) counts[delivery.state] += 1;
      return { events: state.events.size, ...counts, dropped: state.dropped(), unsent: 0 };
    },
    claim: async (wanted) => claim(wanted),
    async settle({ receiver, eventId, token }, settlement) {
      const delivery = state.delivery(eventId, receiver);
      if (delivery?.state !== 'waiting') return true;
      const isInForce = delivery.isClaimed && String(delivery.dueMs) === token;
      if (settlement.kind === 'delivered' || isInForce) settle(delivery, settlement);
      return true;
    },
    async noteReceivers(noted) {
      for (const { id, url } of noted) receivers.set(id, { origin: new URL(url).origin, notedMs: nowMs() });
      for (const [id, { notedMs }] of receivers) {
        if (nowMs() - notedMs <= bounds.webhookReceiverGoneMs) continue;
        for (const delivery of Array.from(state.waiting(id))) {
          delivery.last = { atMs: nowMs(), status: undefined, error: receiverGone };
          state.end(delivery, 'failed');
        }
        if (nowMs() - notedMs > bounds.webhooksKeptMs) receivers.delete(id);
      }
    },
    leave: async () => {},
    onDue(listener) {
      onDue = listener;
    },
    close: async () => state.waitingEvents(),
  };
}
