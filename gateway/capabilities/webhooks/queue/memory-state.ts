import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { DeliveryState, LastAttempt, WebhookEvent } from './delivery-queue.ts';

/** The delivery of an event to a receiver. */
export interface StoredDelivery {
  readonly eventId: string;
  readonly receiver: string;
  readonly subject: string;
  state: DeliveryState;
  attempts: number;
  /** The end of the first attempt. */
  firstMs: number | undefined;
  /** Undefined after the end of the delivery, and while an earlier delivery of the same subject must arrive first. */
  dueMs: number | undefined;
  isClaimed: boolean;
  /** The delivery that waits for this delivery. */
  next: StoredDelivery | undefined;
  last: LastAttempt | undefined;
}

export interface StoredEvent {
  readonly event: WebhookEvent;
  readonly place: number;
  readonly addedMs: number;
  readonly deliveries: Map<string, StoredDelivery>;
}

/** The events of a queue in memory, and the changes of their deliveries. `scripts/queue-state.lua` does the same in Redis. */
export function createMemoryState({
  nowMs,
  bounds,
}: {
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}) {
  const { webhooksMax, webhooksKeptMs, webhookOrderedAttemptsMax } = bounds;
  /** The oldest first. */
  const events = new Map<string, StoredEvent>();
  /** The waiting deliveries of each receiver. */
  const waiting = new Map<string, Set<StoredDelivery>>();
  /** The last delivery of each subject to each receiver, if later deliveries must wait for it. */
  const tails = new Map<string, StoredDelivery>();
  let lastPlace = 0;
  let dropped = 0;

  function add(event: WebhookEvent, receivers: readonly string[]): void {
    makeRoom();
    lastPlace += 1;
    events.set(event.id, { event, place: lastPlace, addedMs: nowMs(), deliveries: new Map() });
    addReceivers(event.id, receivers);
  }

  /** Adds a delivery for each receiver that the event does not have yet. */
  function addReceivers(eventId: string, receivers: readonly string[]): void {
    const stored = events.get(eventId);
    if (stored === undefined) return;
    const { event, deliveries } = stored;
    for (const receiver of receivers) {
      if (deliveries.has(receiver)) continue;
      const delivery: StoredDelivery = {
        eventId,
        receiver,
        subject: event.subject,
        state: 'waiting',
        attempts: 0,
        firstMs: undefined,
        dueMs: nowMs(),
        isClaimed: false,
        next: undefined,
        last: undefined,
      };
      deliveries.set(receiver, delivery);
      waitingFor(receiver).add(delivery);
      if (event.subject !== '') followTail(delivery);
    }
  }

  function followTail(delivery: StoredDelivery): void {
    const name = tailName(delivery);
    const before = tails.get(name);
    if (before !== undefined && before.attempts < webhookOrderedAttemptsMax) {
      before.next = delivery;
      delivery.dueMs = undefined;
    }
    tails.set(name, delivery);
  }

  function waitingFor(receiver: string): Set<StoredDelivery> {
    const known = waiting.get(receiver);
    if (known !== undefined) return known;
    const added = new Set<StoredDelivery>();
    waiting.set(receiver, added);
    return added;
  }

  /** Lets the next delivery of the subject start. */
  function releaseNext(delivery: StoredDelivery): void {
    const { next } = delivery;
    delivery.next = undefined;
    if (tails.get(tailName(delivery)) === delivery) tails.delete(tailName(delivery));
    if (next?.state === 'waiting') next.dueMs ??= nowMs();
  }

  function end(delivery: StoredDelivery, state: 'delivered' | 'failed'): void {
    delivery.state = state;
    delivery.dueMs = undefined;
    delivery.isClaimed = false;
    waiting.get(delivery.receiver)?.delete(delivery);
    releaseNext(delivery);
  }

  function makeRoom(): void {
    for (const stored of events.values()) {
      if (nowMs() - stored.addedMs <= webhooksKeptMs) break;
      remove(stored);
    }
    if (events.size < webhooksMax) return;
    const oldest = events.values().find((stored) => !isWaiting(stored)) ?? events.values().next().value;
    if (oldest !== undefined) remove(oldest);
  }

  function remove(stored: StoredEvent): void {
    if (isWaiting(stored)) dropped += 1;
    events.delete(stored.event.id);
    for (const delivery of stored.deliveries.values())
      if (delivery.state === 'waiting') end(delivery, 'failed');
  }

  return {
    events,
    add,
    addReceivers,
    end,
    /** The waiting deliveries of a receiver. */
    waiting: (receiver: string): Iterable<StoredDelivery> => waiting.get(receiver) ?? [],
    delivery: (eventId: string, receiver: string) => events.get(eventId)?.deliveries.get(receiver),
    retry(delivery: StoredDelivery, pauseMs: number): void {
      delivery.dueMs = nowMs() + pauseMs;
      delivery.isClaimed = false;
      if (delivery.attempts >= webhookOrderedAttemptsMax) releaseNext(delivery);
    },
    /** Makes a delivery due. A delivery that has ended begins anew. */
    begin(delivery: StoredDelivery): void {
      const isWaitingNow = delivery.state === 'waiting';
      if (isWaitingNow && delivery.isClaimed && (delivery.dueMs ?? 0) > nowMs()) return;
      if (!isWaitingNow) {
        Object.assign(delivery, { state: 'waiting', attempts: 0, firstMs: undefined });
        waitingFor(delivery.receiver).add(delivery);
      }
      delivery.dueMs = nowMs();
      delivery.isClaimed = false;
    },
    dropped: () => dropped,
    waitingEvents: () => events.values().filter(isWaiting).toArray().length,
  };
}

function tailName({ receiver, subject }: StoredDelivery): string {
  return `${receiver}:${subject}`;
}

function isWaiting({ deliveries }: StoredEvent): boolean {
  return deliveries.values().some(({ state }) => state === 'waiting');
}
