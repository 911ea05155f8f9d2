import type { DeliveriesQuery, Delivery, WebhookEvent } from './delivery-queue.ts';

/** Whether a query selects an event, apart from the event's deliveries. */
export function matchesEvent(
  { type, subject, atMs }: Pick<WebhookEvent, 'type' | 'subject' | 'atMs'>,
  { types, subject: wanted, fromMs = 0, toMs = Number.POSITIVE_INFINITY }: DeliveriesQuery,
): boolean {
  return types?.has(type) !== false && (wanted ?? subject) === subject && atMs >= fromMs && atMs < toMs;
}

/** Whether a query selects a delivery. */
export function matchesDelivery(
  { state, receiver }: Pick<Delivery, 'state' | 'receiver'>,
  { states, receivers }: DeliveriesQuery,
): boolean {
  return states?.has(state) !== false && receivers?.has(receiver) !== false;
}
