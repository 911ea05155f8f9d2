import {
  type DeliveryQueue,
  deliveryStates,
  type QueuedEvent,
} from '../../../notify/queue/delivery-queue.ts';
import { type Settings, webhookEventTypes } from '../../../shared/model.ts';
import {
  cursor,
  instant,
  queryOf,
  someOf,
  text,
  wholeNumber,
} from '../../../shared/schema/query-parameters.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { defineRoute, type Route } from '../route.ts';
import { defineWire } from '../wire.ts';
import { deliveriesPage, deliveriesView } from './deliveries-view.ts';

export const listDeliveriesWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/deliveries',
    operationId: 'listDeliveries',
    tag: 'Webhooks',
    summary: 'The webhook deliveries',
    description:
      'The events that were recorded for the receivers of `notify`, the newest first, each with its deliveries. The first members of the response state how many deliveries wait or failed, and which receivers have a problem. The last 10,000 events are kept; if the queue is full, the oldest events without a waiting delivery go first. A filter by state or receiver omits the other deliveries of an event. With a filter, the gateway may read every event of the queue.',
    query: queryOf({
      state: someOf(deliveryStates)
        .optional()
        .describe('Only deliveries in these states, separated by commas.'),
      type: someOf(webhookEventTypes).optional().describe('Only events of these types, separated by commas.'),
      subject: text(256).optional().describe('Only events with this subject.'),
      receiver: text(64).optional().describe('Only deliveries to the receiver with this id.'),
      from: instant().optional().describe('Only events at or after this time. A date means 00:00 UTC.'),
      to: instant().optional().describe('Only events before this time.'),
      limit: wholeNumber(1, bounds.webhooksPerPageMax).default(50).describe('The largest number of entries.'),
      after: cursor(/^\d{1,15}$/)
        .optional()
        .describe('The `next` of the previous page.'),
    }),
    answers: { 200: { description: 'The deliveries.', schema: deliveriesPage } },
  });

/** `GET /deliveries` lists the webhook events with their deliveries. A filter may read all events of the queue. */
export function deliveriesRoute(
  queue: Pick<DeliveryQueue, 'list' | 'counts'>,
  { settings, bounds }: { readonly settings: () => Settings; readonly bounds: Bounds },
): Route {
  let lastTroubled: { readonly events: readonly QueuedEvent[]; readonly untilMs: number } | undefined;

  return defineRoute({
    ...listDeliveriesWire(bounds),
    needs: 'read',
    async respond({ query: { state, type, subject, receiver, from, to, limit, after } }) {
      const [page, counts] = await Promise.all([
        queue.list({
          limit,
          after,
          states: state,
          receivers: receiver === undefined ? undefined : new Set([receiver]),
          types: type,
          subject,
          fromMs: from,
          toMs: to,
        }),
        queue.counts(),
      ]);
      if (page === undefined || counts === undefined) return storeUnavailable();
      const troubled = counts.waiting + counts.failed === 0 ? [] : await readTroubled();
      if (troubled === undefined) return storeUnavailable();
      return jsonResponse(deliveriesView(page, counts, { troubled, receivers: settings().notify }));
    },
  });

  /** Returns the last events with a waiting or failed delivery. The events are cached for a multiple of the time that the read took. */
  async function readTroubled(): Promise<readonly QueuedEvent[] | undefined> {
    const startMs = performance.now();
    if (lastTroubled !== undefined && startMs < lastTroubled.untilMs) return lastTroubled.events;
    const states = new Set(['waiting', 'failed'] as const);
    const page = await queue.list({ limit: bounds.webhooksPerPageMax, states });
    if (page === undefined) return undefined;
    const endMs = performance.now();
    const untilMs = endMs + (endMs - startMs) * bounds.webhookProblemsRestFactor;
    lastTroubled = { events: page.events, untilMs };
    return page.events;
  }
}
