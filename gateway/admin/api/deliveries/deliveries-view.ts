import * as z from 'zod';
import {
  type DeliveriesPage,
  type Delivery,
  deliveryStates,
  type QueueCounts,
  type QueuedEvent,
} from '../../../notify/queue/delivery-queue.ts';
import type { Receiver } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { maskPath } from '../../settings/mask-url.ts';
import { count, instant, integer, list, words } from '../response-parts.ts';

const receiverId = z.string().meta({
  pattern: '^[0-9a-f]{12}$',
  description: 'The id of a receiver: the first 12 hex digits of the SHA-256 digest of its URL.',
});
const receiverUrl = z
  .string()
  .describe('The URL of the receiver without its path and parameters, which may contain a token.');

const lastShape = {
  at: instant.describe('The end of the attempt.'),
  status: integer.optional().describe('The status of the response; absent without a response.'),
  error: z.string().optional().describe('The reason why the attempt failed; absent after a success.'),
};

export const deliveryShown = z.object({
  receiver: receiverId,
  url: receiverUrl.optional(),
  isConfigured: z
    .boolean()
    .describe('Whether the configuration has the receiver. Only then can the event be sent to it again.'),
  state: words(...deliveryStates).describe(
    '`waiting`: an attempt follows. `failed`: no attempt follows unless the event is sent again.',
  ),
  attempts: count.describe('The attempts since the event was recorded, or since it was last sent again.'),
  last: z.object(lastShape).optional().describe('The last attempt.'),
  nextAt: instant
    .optional()
    .describe(
      'The earliest time of the next attempt. Absent while an earlier event with the same subject must arrive first.',
    ),
});

export type DeliveryShown = z.output<typeof deliveryShown>;

const eventShape = {
  id: z.string().describe('The `webhook-id` of each attempt.'),
  at: instant,
  type: z.string().describe('The type of the event, such as `quota.threshold`.'),
  subject: z.string().optional().describe('What the event is about, such as a key or a target.'),
  deliveries: list(deliveryShown).describe('A delivery for each receiver of the event.'),
};

/** The response of `/deliveries`. */
export const deliveriesPage = z.object({
  counts: z.object({
    events: count.describe('The events in the queue.'),
    waiting: count,
    delivered: count,
    failed: count,
    dropped: count.describe(
      'The events that were removed before each receiver got them, because the queue was full.',
    ),
    unsent: count.describe('The events of this process that Redis does not have yet.'),
  }),
  problems: list(
    z.object({
      receiver: receiverId,
      url: receiverUrl.optional(),
      waiting: count,
      failed: count,
      last: z.object(lastShape).describe('The last failed attempt.'),
      nextAt: instant.optional().describe('The earliest next attempt.'),
    }),
  ).describe(
    'The receivers that did not accept their last attempts. Only the last 200 events with a waiting or failed delivery are considered.',
  ),
  receivers: list(z.object({ id: receiverId, url: receiverUrl })).describe(
    'The receivers of the configuration.',
  ),
  events: list(z.object(eventShape)),
  next: z.string().optional().describe('The value of `after` for the next page; absent on the last page.'),
});

export type DeliveriesShown = z.output<typeof deliveriesPage>;
export type DeliveryEvent = DeliveriesShown['events'][number];
export type ReceiverProblem = DeliveriesShown['problems'][number];

/** The response of `/deliveries/{id}`. */
export const deliveredEvent = z.object({
  ...eventShape,
  body: z.string().describe('The body of each attempt: a JSON text, exactly as the receivers get it.'),
});

export type DeliveredEvent = z.output<typeof deliveredEvent>;

/**
 * @param troubled the last events with a waiting or failed delivery, with only these deliveries
 */
export function deliveriesView(
  { events, next }: DeliveriesPage,
  counts: QueueCounts,
  {
    troubled,
    receivers,
  }: { readonly troubled: readonly QueuedEvent[]; readonly receivers: readonly Receiver[] },
): DeliveriesShown {
  const { waiting, delivered, failed, dropped, unsent } = counts;
  return {
    counts: { events: counts.events, waiting, delivered, failed, dropped, unsent },
    problems: problemsOf(troubled, receivers),
    receivers: receivers.map(({ id, url }) => ({ id, url: maskPath(url) })),
    events: events.map((event) => eventView(event, receivers)),
    next,
  };
}

export function eventView(
  { id, type, atMs, subject, deliveries }: QueuedEvent,
  receivers: readonly Receiver[],
): DeliveryEvent {
  return {
    id,
    at: isoOf(atMs),
    type,
    subject: subject === '' ? undefined : subject,
    deliveries: deliveries.map((delivery) => deliveryView(delivery, receivers)),
  };
}

function deliveryView(
  { receiver, receiverOrigin, state, attempts, last, nextMs }: Delivery,
  receivers: readonly Receiver[],
): DeliveryShown {
  const configured = receivers.find(({ id }) => id === receiver);
  return {
    receiver,
    url: configured === undefined ? receiverOrigin : maskPath(configured.url),
    isConfigured: configured !== undefined,
    state,
    attempts,
    last: last && { at: isoOf(last.atMs), status: last.status, error: last.error },
    nextAt: isoOf(nextMs),
  };
}

/** One entry for each receiver with a failed attempt, the most recent first. */
function problemsOf(
  troubled: readonly QueuedEvent[],
  receivers: readonly Receiver[],
): readonly ReceiverProblem[] {
  const deliveries = troubled.flatMap((event) => eventView(event, receivers).deliveries);
  const problems = Array.from(Map.groupBy(deliveries, ({ receiver }) => receiver).values()).flatMap((own) => {
    const [newest] = own.filter(({ last }) => last?.error !== undefined).toSorted(byLastAttempt);
    if (newest?.last === undefined) return [];
    const { receiver, url, last } = newest;
    const [nextAt] = own.flatMap((one) => one.nextAt ?? []).toSorted();
    const counted = (state: DeliveryShown['state']) => own.filter((one) => one.state === state).length;
    return [{ receiver, url, waiting: counted('waiting'), failed: counted('failed'), last, nextAt }];
  });
  return problems.toSorted(byLastAttempt);
}

/** RFC 3339 texts in UTC sort as their times. */
function byLastAttempt(a: Pick<DeliveryShown, 'last'>, b: Pick<DeliveryShown, 'last'>): number {
  return (b.last?.at ?? '').localeCompare(a.last?.at ?? '');
}
