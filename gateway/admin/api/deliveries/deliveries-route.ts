import type { DeliveryQueue, QueuedEvent } from '../../../notify/queue/delivery-queue.ts';
import type { Settings } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { listDeliveriesWire } from '../../wires/deliveries.ts';
import { defineRoute, type Route } from '../route.ts';
import { deliveriesView } from './deliveries-view.ts';

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
