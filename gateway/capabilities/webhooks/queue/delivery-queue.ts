import { randomBytes } from 'node:crypto';
import type { deliveryStates } from '../api/wires.ts';
import type { EventIdentity } from '../events/event-identity.ts';
import type { Receiver } from '../settings/receivers.ts';

/** An event, as receivers get it. */
export interface WebhookEvent {
  /** The `webhook-id` of every attempt to every receiver: `evt_` and 20 random characters (`newEventId`). */
  readonly id: string;
  /** For example `quota.threshold`. */
  readonly type: string;
  /** The JSON text that receivers get, at most `webhookBodyBytesMax` octets. */
  readonly body: string;
  /** The time of the event on the store's clock, epoch ms. */
  readonly atMs: number;
  /**
   * The subject of the event, for example a key or a target. A receiver gets the events of one subject in their order. Events with the empty
   * subject have no order.
   */
  readonly subject: string;
}

/** The report of one process about an event. */
export interface EventReport {
  readonly event: WebhookEvent;
  /** Reports of several processes with the same identity are one event. The queue keeps the event that it got first. */
  readonly identity: EventIdentity;
  /** The process that observed the event, if another process reports it: the worker of a supervisor. Absent: this process. */
  readonly seenBy?: string | undefined;
  /** The ids of the receivers that want the event; at least one. */
  readonly receivers: readonly string[];
}

/**
 * - `added`: the queue has the event.
 * - `merged`: the queue has or had the event from an earlier report. `id` is the id of this event.
 * - `dropped`: too many events waited in this process while Redis was away.
 */
export type Added = { readonly kind: 'added' | 'merged'; readonly id: string } | { readonly kind: 'dropped' };

/** The result of the last attempt of a delivery. */
interface LastAttempt {
  /** The end of the attempt, epoch ms. */
  readonly atMs: number;
  /** The status of the response; undefined if there was no response. */
  readonly status: number | undefined;
  /** Why the delivery failed, without secrets and without the receiver's URL; undefined after a success. */
  readonly error: string | undefined;
}

export interface Delivery {
  readonly receiver: string;
  /** The origin of the receiver's URL, for example `https://hooks.example.com`; undefined if no process has served the receiver yet. */
  readonly receiverOrigin: string | undefined;
  readonly state: DeliveryState;
  /** The number of ended attempts since the event was added, or since it was sent again. */
  readonly attempts: number;
  readonly last: LastAttempt | undefined;
  /**
   * The earliest time of the next attempt, epoch ms. Undefined after the end of the delivery, and while an earlier event of the same
   * subject must arrive first.
   */
  readonly nextMs: number | undefined;
}

/** `failed`: no further attempt follows unless an operator sends the event again. */
export type DeliveryState = (typeof deliveryStates)[number];

export interface QueuedEvent extends Omit<WebhookEvent, 'body'> {
  readonly deliveries: readonly Delivery[];
}

export interface DeliveriesQuery {
  /** The maximum number of events. */
  readonly limit: number;
  /** `next` of the previous page. */
  readonly after?: string | undefined;
  /** Only deliveries with one of these states, and only events with such a delivery. The same holds for `receivers`. */
  readonly states?: ReadonlySet<DeliveryState> | undefined;
  readonly receivers?: ReadonlySet<string> | undefined;
  /** Only events of these types, with this subject, and of this period (epoch ms; `toMs` is excluded). */
  readonly types?: ReadonlySet<string> | undefined;
  readonly subject?: string | undefined;
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

export interface DeliveriesPage {
  /** The event that the queue got last is first. */
  readonly events: readonly QueuedEvent[];
  /** Present if there may be more events. */
  readonly next?: string | undefined;
}

/** The figures of the queue. `dropped` never decreases while Redis keeps its data. */
export interface QueueCounts {
  readonly events: number;
  /** Deliveries by their state. */
  readonly waiting: number;
  readonly delivered: number;
  readonly failed: number;
  /** Events that were removed while a delivery waited, because the queue was full. */
  readonly dropped: number;
  /** Events of this process that Redis does not have yet. */
  readonly unsent: number;
}

/** The state of the sender of this process, for metrics and for the state of the gateway. */
export interface SenderState {
  /** Ended attempts since the start of the process. */
  readonly attempts: { readonly delivered: number; readonly failed: number };
  /** The receivers whose last attempt by this process has failed. */
  readonly failing: readonly FailingReceiver[];
}

export interface FailingReceiver {
  readonly receiver: string;
  /** The origin of the receiver's URL. */
  readonly origin: string;
  /** The time of the first failed attempt since the last success, epoch ms. */
  readonly sinceMs: number;
  /** Why the last attempt failed, without secrets and without the path of the URL. */
  readonly error: string;
}

/** A delivery that one process may now attempt, until the claim ends. */
export interface ClaimedDelivery {
  readonly receiver: string;
  readonly eventId: string;
  readonly body: string;
  /** The number of ended attempts. */
  readonly attempts: number;
  /** The time since the end of the first attempt; 0 before that. */
  readonly sinceFirstMs: number;
  /** Identifies the claim. */
  readonly token: string;
}

/** The result of an attempt, for the queue. */
export type Settlement =
  | { readonly kind: 'delivered'; readonly status: number }
  | {
      readonly kind: 'retry';
      readonly pauseMs: number;
      readonly status: number | undefined;
      readonly error: string;
    }
  | { readonly kind: 'failed'; readonly status: number | undefined; readonly error: string }
  /** There was no attempt, or it was cancelled, so the delivery is due again. */
  | { readonly kind: 'returned' };

interface Claims {
  /** Whether this process sends to at least one receiver. If not, another process does. */
  readonly isSending: boolean;
  readonly deliveries: readonly ClaimedDelivery[];
}

interface WantedDeliveries {
  readonly receiver: string;
  readonly deliveriesMax: number;
}

/**
 * The events that wait for their delivery, and the last events that were delivered or failed. All processes of the fleet share the queue. It
 * has at most `webhooksMax` events. If it is full, the oldest events without a waiting delivery are removed first.
 *
 * While Redis is unavailable, methods that read or claim return undefined.
 */
export interface DeliveryQueue {
  /**
   * Adds an event. The promise resolves when the queue has the event, and never rejects. While Redis is away, the process keeps the event and
   * writes it later.
   */
  add(report: EventReport): Promise<Added>;
  /**
   * Shortens the time in which reports with an identity are merged, because no process will report the event again after `mergedWithinMs`.
   * Nothing happens while Redis is away; then the longer time holds.
   */
  mergeUntil(identity: EventIdentity, mergedWithinMs: number): Promise<void>;
  list(query: DeliveriesQuery): Promise<DeliveriesPage | undefined>;
  /** @returns `unknown` if the queue does not have the event */
  read(eventId: string): Promise<(QueuedEvent & { readonly body: string }) | 'unknown' | undefined>;
  /**
   * Makes deliveries of an event due now. A delivery that has ended begins anew, with three days of retries.
   *
   * @param receiver only the delivery to this receiver; all deliveries if absent
   * @returns the number of deliveries that are due, or `unknown` if the queue does not have the event
   */
  resend(eventId: string, receiver?: string): Promise<number | 'unknown' | undefined>;
  counts(): Promise<QueueCounts | undefined>;
  /** The figures that this process has read last, with its present unsent events; undefined before the first read. */
  lastCounts(): QueueCounts | undefined;

  /**
   * Claims due deliveries for `webhookClaimMs`. This process becomes the sender of each receiver that has no sender. Only one process claims
   * a delivery at a time.
   */
  claim(wanted: readonly WantedDeliveries[]): Promise<Claims | undefined>;
  /**
   * Stores the result of an attempt. After the end of its claim, a result other than `delivered` has no effect.
   *
   * @returns false if the call must be repeated, because there was no reply
   */
  settle(claimed: ClaimedDelivery, settlement: Settlement): Promise<boolean>;
  /**
   * Notes that the configuration of this process has these receivers. Waiting deliveries to a receiver that no process has noted for
   * `webhookReceiverGoneMs` fail.
   */
  noteReceivers(receivers: readonly Pick<Receiver, 'id' | 'url'>[]): Promise<void>;
  /** Lets another process take over the receivers of this process. Claims that were not returned end later. */
  leave(): Promise<void>;
  /** Calls the listener when this process has added an event or made one due, so that it is sent without delay. */
  onDue(listener: () => void): void;
  /**
   * Writes the events that Redis does not have yet, and stops.
   *
   * @returns the number of events that are lost, because Redis did not take them
   */
  close(): Promise<number>;
}

/** The queue of a gateway without Redis. Such a gateway has no receivers. */
export const emptyQueue: Pick<DeliveryQueue, 'list' | 'read' | 'resend' | 'counts' | 'lastCounts'> = {
  list: async () => ({ events: [] }),
  read: async () => 'unknown',
  resend: async () => 'unknown',
  counts: async () => ({ events: 0, waiting: 0, delivered: 0, failed: 0, dropped: 0, unsent: 0 }),
  lastCounts: () => undefined,
};

/** Why waiting deliveries fail after their receiver was removed from the configuration. */
export const receiverGone = 'the configuration no longer has this receiver';

/** Draws the id of an event. The id has no full stop, because the signature separates its parts by full stops. */
export function newEventId(): string {
  return `evt_${randomBytes(15).toString('base64url')}`;
}
