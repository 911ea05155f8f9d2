import * as z from 'zod';
import type { DeliveryQueue } from '../../../notify/queue/delivery-queue.ts';
import type { Settings } from '../../../shared/model.ts';
import { expects, fields } from '../../../shared/schema/schema-parts.ts';
import { type AdminResponse, errorResponse, jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { count } from '../response-parts.ts';
import { defineRoute, type Route } from '../route.ts';
import { defineWire, eventIdParameter } from '../wire.ts';
import { type DeliveredEvent, deliveredEvent, eventView } from './deliveries-view.ts';

/** The queue of webhook deliveries, as the admin API uses it. */
export interface DeliverySources {
  readonly queue: Pick<DeliveryQueue, 'list' | 'read' | 'resend' | 'counts'>;
  /** Logs that an operator has sent an event again. */
  readonly logResend: (resend: Resend) => void;
}

export interface Resend {
  /** The name of the token. */
  readonly by: string;
  readonly eventId: string;
  /** The ids of the receivers. */
  readonly receivers: readonly string[];
}

export const sendAgainBody = fields('an object with receiver', {
  receiver: z
    .string()
    .regex(/^[0-9a-f]{12}$/, expects('the id of a receiver'))
    .optional()
    .describe(
      'The id of the only receiver that gets the event again. By default, each receiver of the event gets it.',
    ),
});

export const sentAgain = z.object({
  due: count.describe('The number of deliveries that are due now.'),
});

/** An id has the form of `newEventId`, or of a later version of the gateway. */
const eventIdPattern = /^[\w-]{1,64}$/;

export const getDeliveryWire = defineWire({
  method: 'GET',
  path: '/deliveries/{id}',
  operationId: 'getDelivery',
  tag: 'Webhooks',
  summary: 'One webhook event',
  description: 'An event with the body that the receivers get, and with its deliveries.',
  params: { id: eventIdParameter },
  answers: { 200: { description: 'The event.', schema: deliveredEvent } },
});

export const sendAgainWire = defineWire({
  method: 'POST',
  path: '/deliveries/{id}/send',
  operationId: 'sendAgain',
  tag: 'Webhooks',
  summary: 'Send a webhook event again',
  description:
    'The event is due at once for one receiver, or for each of its receivers in the configuration. The `webhook-id` and the body stay the same, so a receiver that has the event already can ignore it. A delivery that had ended begins anew, with three days of retries. The response does not wait for the attempt.',
  params: { id: eventIdParameter },
  body: sendAgainBody,
  answers: { 200: { description: 'The deliveries are due.', schema: sentAgain } },
});

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
    if (event === undefined) return storeUnavailable();
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
