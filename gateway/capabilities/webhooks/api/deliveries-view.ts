import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { statedForm } from '../../../shared/schema/stated-form.ts';
import type { DeliveriesPage, Delivery, QueueCounts, QueuedEvent } from '../queue/delivery-queue.ts';
import type { Receiver } from '../settings/receivers.ts';
import { receiverUrl } from '../settings/schema.ts';
import type { DeliveriesShown, DeliveryEvent, DeliveryShown, ReceiverProblem } from './wires.ts';

/** @param troubled the last events with a waiting or failed delivery, with only these deliveries */
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
    receivers: receivers.map(({ id, url }) => ({ id, url: shownUrl(url) })),
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
    url: configured === undefined ? receiverOrigin : shownUrl(configured.url),
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

function shownUrl(url: string): string {
  return String(statedForm(receiverUrl, url));
}
