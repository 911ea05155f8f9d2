import { jsonResponse, storeUnavailable } from '../../../admin/admin-response.ts';
import { defineRoute, type Route } from '../../../admin/api/route.ts';
import type { Settings } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { OpenReadRoutes } from '../../interfaces/operators.ts';
import type { DeliveryQueue, QueuedEvent } from '../queue/delivery-queue.ts';
import { createQueueReader } from '../queue/redis-queue.ts';
import { deliveriesView } from './deliveries-view.ts';
import { listDeliveriesWire } from './wires.ts';

/** The functions of the main thread that the routes in the reading thread call. Only without Redis, the main thread lists the deliveries. */
export interface LentByWebhooks {
  readonly countDeliveries: DeliveryQueue['counts'];
  readonly listDeliveries: DeliveryQueue['list'];
}

/** Opens the routes in the reading thread. */
export const openDeliveryRoutes: OpenReadRoutes = ({ settings, redis, lent, bounds }) => {
  const list = redis === undefined ? lent.listDeliveries : createQueueReader(redis, bounds).list;
  return [deliveriesRoute({ list, counts: lent.countDeliveries }, { settings, bounds })];
};

/** `GET /deliveries` lists the webhook events with their deliveries. A filter may read all events of the queue. */
function deliveriesRoute(
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
