import type * as z from 'zod';
import {
  type AdminResponse,
  errorResponse,
  jsonResponse,
  storeUnavailable,
} from '../../../admin/admin-response.ts';
import { defineRoute, type Route } from '../../../admin/api/route.ts';
import type { Settings } from '../../../shared/model.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';
import { eventView } from './deliveries-view.ts';
import { type DeliveredEvent, getDeliveryWire, sendAgainWire, type sentAgain } from './wires.ts';

/** The queue of webhook deliveries, as the admin API uses it. */
export interface DeliverySources {
  readonly queue: Pick<DeliveryQueue, 'list' | 'read' | 'resend' | 'counts' | 'lastCounts'>;
  /** Logs that an operator has sent an event again. */
  readonly logResend: (resend: Resend) => void;
}

interface Resend {
  /** The name of the token. */
  readonly by: string;
  readonly eventId: string;
  readonly receivers: readonly string[];
}

/** An id has the form of `newEventId`, or of a later version of the gateway. */
const eventIdPattern = /^[\w-]{1,64}$/;

/** The routes of one webhook event: its deliveries, and sending it again. */
export function createDeliveryRoutes(
  { queue, logResend }: DeliverySources,
  settings: () => Settings,
): readonly Route[] {
  return [
    defineRoute({
      ...getDeliveryWire,
      needs: 'read',
      async respond({ params: { id = '' } }) {
        const event = await read(id);
        if ('status' in event) return event;
        const { body } = event;
        return jsonResponse({ ...eventView(event, settings().notify), body } satisfies DeliveredEvent);
      },
    }),
    defineRoute({
      ...sendAgainWire,
      needs: 'write',
      respond: ({ params: { id = '' }, body: { receiver }, token }) => sendAgain(id, receiver, token.name),
    }),
  ];

  /** @returns an error response if the queue does not have the event */
  async function read(id: string) {
    const event = eventIdPattern.test(id) ? await queue.read(id) : 'unknown';
    if (event === undefined) {
      return storeUnavailable(`, and the webhook event ${id} is only in Redis; retry later.`);
    }
    return event === 'unknown' ? unknownEvent() : event;
  }

  async function sendAgain(id: string, receiver: string | undefined, by: string): Promise<AdminResponse> {
    const event = await read(id);
    if ('status' in event) return event;
    const known = new Set(settings().notify.map((one) => one.id));
    const chosen = event.deliveries
      .map((delivery) => delivery.receiver)
      .filter((one) => receiver === undefined || one === receiver);
    if (chosen.length === 0) {
      return errorResponse('not_found', `The event ${id} has no delivery to the receiver ${receiver}.`);
    }
    const receivers = chosen.filter((one) => known.has(one));
    if (receivers.length === 0) {
      return errorResponse(
        'conflict',
        'The configuration no longer has a receiver of this event, so the event cannot be sent again.',
      );
    }
    let due = 0;
    for (const one of receivers) {
      const resent = await queue.resend(id, one);
      if (resent === undefined) return storeUnavailable();
      // Another event may have replaced the event in the full queue.
      if (resent === 'unknown') return unknownEvent();
      due += resent;
    }
    logResend({ by, eventId: id, receivers });
    return jsonResponse({ due } satisfies z.output<typeof sentAgain>);
  }
}

function unknownEvent(): AdminResponse {
  return errorResponse(
    'not_found',
    'The queue has no event with this id. A full queue removes its oldest events.',
  );
}
