import { jsonResponse, storeUnavailable } from '../../../admin/admin-response.ts';
import type { ReadSources } from '../../../admin/api/read-sources.ts';
import { defineRoute, type Route } from '../../../admin/api/route.ts';
import { type DeliveryQueue, emptyQueue, type QueuedEvent } from '../queue/delivery-queue.ts';
import { createQueueReader } from '../queue/redis-queue.ts';
import { deliveriesView } from './deliveries-view.ts';
import { listDeliveriesWire } from './wires.ts';

declare module '../../../admin/api/read-sources.ts' {
  interface LentMembers {
    readonly countDeliveries: DeliveryQueue['counts'];
  }
}

/** `GET /deliveries` lists the webhook events with their deliveries. A filter may read all events of the queue. */
export function deliveriesRoute({ keys: { settings, bounds }, redis, lent }: ReadSources): Route {
  const list = redis === undefined ? emptyQueue.list : createQueueReader(redis, bounds).list;
  let lastTroubled: { readonly events: readonly QueuedEvent[]; readonly untilMs: number } | undefined;

  return defineRoute({
    ...listDeliveriesWire(bounds),
    needs: 'read',
    async respond({ query: { state, type, subject, receiver, from, to, limit, after } }) {
      const [page, counts] = await Promise.all([
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
    const page = await list({ limit: bounds.webhooksPerPageMax, states });
    if (page === undefined) return undefined;
    const endMs = performance.now();
    const untilMs = endMs + (endMs - startMs) * bounds.webhookProblemsRestFactor;
    lastTroubled = { events: page.events, untilMs };
    return page.events;
  }
}
