import { jsonResponse, storeUnavailable } from '../../../admin/admin-response.ts';
import { noteMissing } from '../../../admin/api/missing-data.ts';
import type { ReadSources } from '../../../admin/api/read-sources.ts';
import { defineRoute, type Route } from '../../../admin/api/route.ts';
import {
  type DeliveriesQuery,
  emptyQueue,
  type QueueCounts,
  type QueuedEvent,
} from '../queue/delivery-queue.ts';
import { createQueueReader } from '../queue/redis-queue.ts';
import { deliveriesView } from './deliveries-view.ts';
import { createEventMemory } from './remembered-events.ts';
import { listDeliveriesWire } from './wires.ts';

declare module '../../../admin/api/read-sources.ts' {
  interface LentMembers {
    /** `read` is undefined while Redis does not reply, and `last` before the first reply. */
    readonly countDeliveries: () => Promise<{
      readonly read: QueueCounts | undefined;
      readonly last: QueueCounts | undefined;
    }>;
  }
}

/**
 * `GET /deliveries` lists the webhook events with their deliveries. A filter may read all events of the queue. While Redis does not reply, the
 * response has the figures and events that were read last.
 */
export function deliveriesRoute({ keys: { settings, bounds }, redis, lent }: ReadSources): Route {
  const read = redis === undefined ? emptyQueue.list : createQueueReader(redis, bounds).list;
  const memory = createEventMemory(bounds.webhooksRememberedMax);
  let lastTroubled: { readonly events: readonly QueuedEvent[]; readonly untilMs: number } | undefined;

  return defineRoute({
    ...listDeliveriesWire(bounds),
    needs: 'read',
    async respond({ query: { state, type, subject, receiver, from, to, limit, after } }) {
      const [page, figures] = await Promise.all([
        list({
          limit,
          after,
          states: state,
          receivers: receiver === undefined ? undefined : new Set([receiver]),
          types: type,
          subject,
          fromMs: from,
          toMs: to,
        }),
        lent.countDeliveries(),
      ]);
      if (figures.read === undefined) noteMissing('deliveries');
      const counts = figures.read ?? figures.last;
      if (counts === undefined) {
        return storeUnavailable(
          ', and this gateway has not read the deliveries of webhooks before; retry later.',
        );
      }
      const troubled = counts.waiting + counts.failed === 0 ? [] : await readTroubled();
      return jsonResponse(deliveriesView(page, counts, { troubled, receivers: settings().notify }));
    },
  });

  async function list(query: DeliveriesQuery) {
    const page = await read(query);
    if (page === undefined) {
      noteMissing('deliveries');
      return { events: memory.find(query), isRemembered: true };
    }
    memory.remember(page.events);
    return page;
  }

  /** Returns the last events with a waiting or failed delivery. The events are cached for a multiple of the time that the read took. */
  async function readTroubled(): Promise<readonly QueuedEvent[]> {
    const startMs = performance.now();
    if (lastTroubled !== undefined && startMs < lastTroubled.untilMs) return lastTroubled.events;
    const states = new Set(['waiting', 'failed'] as const);
    const page = await list({ limit: bounds.webhooksPerPageMax, states });
    if ('isRemembered' in page) return page.events;
    const endMs = performance.now();
    const untilMs = endMs + (endMs - startMs) * bounds.webhookProblemsRestFactor;
    lastTroubled = { events: page.events, untilMs };
    return page.events;
  }
}
