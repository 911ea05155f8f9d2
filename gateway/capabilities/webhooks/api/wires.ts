import * as z from 'zod';
import {
  components,
  count,
  instant,
  integer,
  list,
  missing,
  nextPage,
  words,
} from '../../../keys/response-parts.ts';
import { afterPage, defineWire } from '../../../shared/http/wire.ts';
import {
  cursor,
  instantParameter,
  queryOf,
  sharedParameters,
  someOf,
  text,
  wholeNumber,
} from '../../../shared/schema/query-parameters.ts';
import { expects, fields } from '../../../shared/schema/schema-parts.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { webhookEventTypes } from '../../../shared/words/event-names.js';

export const deliveryStates = ['waiting', 'delivered', 'failed'] as const;

const receiverId = z
  .string()
  .meta({
    pattern: '^[0-9a-f]{12}$',
    description: 'The id of a receiver: the first 12 hex digits of the SHA-256 digest of its URL.',
  })
  .register(components, { id: 'ReceiverId' });

const receiverUrl = z
  .string()
  .describe(
    'The URL of a receiver, or its origin if the configuration no longer has the receiver. A path and parameters are shown as `***`.',
  )
  .register(components, { id: 'ReceiverUrl' });

const lastShape = {
  at: instant,
  status: integer.optional().describe('The status of the response; absent without a response.'),
  error: z.string().optional().describe('Why it failed; absent after a success.'),
};

const deliveryShown = z
  .object({
    receiver: receiverId,
    url: receiverUrl.optional(),
    isConfigured: z
      .boolean()
      .describe('Whether the configuration has the receiver, so that the event can be sent to it again.'),
    state: words(...deliveryStates).describe(
      '`waiting`: neither delivered nor failed yet. `failed`: no attempt follows unless the event is sent again.',
    ),
    attempts: count.describe(
      'The ended attempts; from zero again if the event is sent again after the end of the delivery.',
    ),
    last: z
      .object(lastShape)
      .optional()
      .describe('The result of the last attempt, or that the configuration no longer has the receiver.'),
    nextAt: instant
      .optional()
      .describe(
        'The planned time of the next attempt. Absent if none follows, and while the delivery waits for an earlier event with the same subject.',
      ),
  })
  .register(components, { id: 'Delivery' });

const eventShape = {
  id: z.string().describe('The `webhook-id` of each attempt.'),
  at: instant,
  type: z.string().describe('Such as `quota.threshold`.'),
  subject: z.string().optional().describe('What the event is about, such as a key or a target.'),
  deliveries: list(deliveryShown),
};

/** The response of `/deliveries`. */
const deliveriesPage = z
  .object({
    missing,
    counts: z.object({
      events: count.describe('The events in the queue.'),
      waiting: count,
      delivered: count,
      failed: count,
      dropped: count.describe(
        'The events that were removed while a delivery waited, because the queue, or the memory of a process while Redis was away, was full.',
      ),
      unsent: count.describe('The events of this process that Redis does not have yet.'),
    }),
    problems: list(
      z.object({
        receiver: receiverId,
        url: receiverUrl.optional(),
        waiting: count,
        failed: count,
        last: z
          .object(lastShape)
          .describe('The last failed attempt, or that the configuration no longer has the receiver.'),
        nextAt: instant.optional().describe('The earliest `nextAt` of the deliveries.'),
      }),
    ).describe(
      'The receivers with a delivery that has failed, or that waits after a failed attempt. Only the last 200 events with a waiting or failed delivery are considered.',
    ),
    receivers: list(z.object({ id: receiverId, url: receiverUrl })).describe(
      'The receivers of the configuration.',
    ),
    events: list(z.object(eventShape)),
    next: nextPage,
  })
  .register(components, { id: 'Deliveries' });

export const listDeliveriesWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/deliveries',
    operationId: 'listDeliveries',
    tag: 'Webhooks',
    summary: 'The webhook deliveries',
    description:
      'The events for the receivers of `notify`, each with its deliveries. The event that was recorded last comes first. The last 10,000 events are kept for 30 days; if the queue is full, the oldest events without a waiting delivery go first. A filter by state or receiver omits the other deliveries of an event.',
    query: queryOf({
      state: someOf(deliveryStates)
        .optional()
        .describe('Only deliveries in these states, separated by commas.'),
      type: someOf(webhookEventTypes).optional().describe('Only events of these types, separated by commas.'),
      subject: text(256).optional().describe('Only events with this subject.'),
      receiver: text(64).optional().describe('Only deliveries to the receiver with this id.'),
      from: instantParameter().optional().describe('Only events at or after this time.'),
      to: instantParameter().optional().describe('Only events before this time.'),
      limit: wholeNumber(1, bounds.webhooksPerPageMax).default(50).describe('The largest number of entries.'),
      after: afterPage(cursor(/^\d{1,15}$/)),
    }),
    answers: { 200: { description: 'The deliveries.', schema: deliveriesPage } },
  });

export type DeliveryShown = z.output<typeof deliveryShown>;

export type DeliveriesShown = z.output<typeof deliveriesPage>;

export type DeliveryEvent = DeliveriesShown['events'][number];

export type ReceiverProblem = DeliveriesShown['problems'][number];

/** The response of `/deliveries/{id}`. */
const deliveredEvent = z
  .object({
    ...eventShape,
    body: z.string().describe('The JSON text that the receivers get.'),
  })
  .register(components, { id: 'DeliveredEvent' });

export type DeliveredEvent = z.output<typeof deliveredEvent>;

const sendAgainBody = fields('an object with receiver', {
  receiver: z
    .string()
    .regex(/^[0-9a-f]{12}$/, expects('the id of a receiver'))
    .optional()
    .describe('The id of the only receiver that gets the event again.'),
});

export const sentAgain = z
  .object({
    due: count.describe('The number of deliveries that are due or under way now.'),
  })
  .register(components, { id: 'SentAgain' });

const eventId = z
  .string()
  .describe('The id of a webhook event, which its receivers get as `webhook-id`.')
  .register(sharedParameters, { id: 'eventId' });

export const getDeliveryWire = defineWire({
  method: 'GET',
  path: '/deliveries/{id}',
  operationId: 'getDelivery',
  tag: 'Webhooks',
  summary: 'One webhook event',
  description: 'An event with its body and its deliveries.',
  params: { id: eventId },
  answers: { 200: { description: 'The event.', schema: deliveredEvent } },
});

export const sendAgainWire = defineWire({
  method: 'POST',
  path: '/deliveries/{id}/send',
  operationId: 'sendAgain',
  tag: 'Webhooks',
  summary: 'Send a webhook event again',
  description:
    'The event is due at once for one receiver, or for each of its receivers in the configuration, unless an attempt is under way. The `webhook-id` and the body stay the same, so a receiver that has the event already can ignore it. A delivery that had ended begins anew, with three days of retries. The response does not wait for the attempt.',
  params: { id: eventId },
  body: sendAgainBody,
  answers: { 200: { description: 'The deliveries are due.', schema: sentAgain } },
});
