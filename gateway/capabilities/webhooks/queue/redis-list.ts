import type { RedisConnection } from '../../../redis/redis-connection.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type {
  DeliveriesPage,
  DeliveriesQuery,
  Delivery,
  DeliveryState,
  QueueCounts,
  QueuedEvent,
  WebhookEvent,
} from './delivery-queue.ts';

/** A delivery as the scripts store it (`queue-state.lua`). */
interface StoredDelivery {
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly due?: string;
  readonly lastMs?: number;
  readonly status?: number;
  readonly error?: string;
}

interface StoredEvent {
  readonly type: string;
  readonly atMs: number;
  readonly subject: string;
  readonly receivers: readonly string[];
}

/** Reads the queue in Redis without changing it. */
export function createRedisList({
  redis: { commands },
  names: [hashName, orderName],
  receiversName,
  attempt,
  bounds,
}: {
  readonly redis: RedisConnection;
  readonly names: readonly [hash: string, order: string, ...others: readonly string[]];
  readonly receiversName: string;
  /** Runs a call, and resolves to undefined if Redis is unavailable. */
  readonly attempt: <T>(call: () => Promise<T>) => Promise<T | undefined>;
  readonly bounds: Bounds;
}) {
  async function list(query: DeliveriesQuery): Promise<DeliveriesPage | undefined> {
    const origins = await readOrigins();
    if (origins === undefined) return undefined;
    const events: QueuedEvent[] = [];
    let after = query.after;
    for (;;) {
      const places = await readPlaces(after);
      const part = places && (await readEvents(Array.from(places.keys()), origins, query));
      if (places === undefined || part === undefined) return undefined;
      for (const [id, place] of places) {
        const event = part.get(id);
        if (event !== undefined && events.length === query.limit) return { events, next: after };
        if (event !== undefined) events.push(event);
        after = place;
      }
      if (places.size < bounds.webhooksReadAtOnceMax) return { events };
    }
  }

  /** The ids of the events before a place, the last event first, with their places. */
  async function readPlaces(before: string | undefined): Promise<ReadonlyMap<string, string> | undefined> {
    const from = before === undefined ? '+inf' : `(${before}`;
    const atOnceMax = bounds.webhooksReadAtOnceMax;
    const flat = await attempt(() =>
      commands.zrange(orderName, from, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, atOnceMax, 'WITHSCORES'),
    );
    if (flat === undefined) return undefined;
    const ids = flat.filter((_, index) => index % 2 === 0);
    return new Map(ids.map((id, index) => [id, flat[2 * index + 1] ?? '']));
  }

  /**
   * Reads the events that match the query, with their matching deliveries. The result lacks events that were removed meanwhile, or that
   * another program has overwritten.
   */
  async function readEvents(
    ids: readonly string[],
    origins: ReadonlyMap<string, string>,
    query: DeliveriesQuery,
  ): Promise<ReadonlyMap<string, QueuedEvent> | undefined> {
    const texts = await readFields(ids);
    const stored = texts?.flatMap((text, index) => {
      const event = parse<StoredEvent>(text);
      const id = ids[index];
      return id !== undefined && event !== undefined && matchesEvent(event, query) ? [{ id, ...event }] : [];
    });
    const fields = stored?.flatMap(({ id, receivers }) => receivers.map((receiver) => `${id}:${receiver}`));
    const values = fields && (await readFields(fields));
    if (stored === undefined || values === undefined) return undefined;
    const events = new Map<string, QueuedEvent>();
    let read = 0;
    for (const { id, type, atMs, subject, receivers } of stored) {
      const deliveries = receivers.flatMap((receiver) => {
        const delivery = parse<StoredDelivery>(values[read++]);
        const isAsked = delivery !== undefined && matchesDelivery({ ...delivery, receiver }, query);
        return isAsked ? [toDelivery(receiver, origins.get(receiver), delivery)] : [];
      });
      if (deliveries.length > 0) events.set(id, { id, type, atMs, subject, deliveries });
    }
    return events;
  }

  async function readFields(fields: readonly string[]): Promise<readonly (string | null)[] | undefined> {
    return fields.length === 0 ? [] : await attempt(() => commands.hmget(hashName, ...fields));
  }

  async function readOrigins(): Promise<ReadonlyMap<string, string> | undefined> {
    const stored = await attempt(() => commands.hgetall(receiversName));
    if (stored === undefined) return undefined;
    const origins = Object.entries(stored).flatMap(([id, text]) => {
      const origin = parse<{ origin?: string }>(text)?.origin;
      return origin === undefined ? [] : [[id, origin] as const];
    });
    return new Map(origins);
  }

  return {
    list,
    async read(eventId: string) {
      const origins = await readOrigins();
      const events = origins && (await readEvents([eventId], origins, { limit: 1 }));
      const body = events && (await attempt(() => commands.hget(hashName, `${eventId}:body`)));
      if (body === undefined) return undefined;
      const event = events?.get(eventId);
      return event === undefined || body === null ? 'unknown' : { ...event, body };
    },
    async counts(unsent: number): Promise<QueueCounts | undefined> {
      const figures = await attempt(() =>
        Promise.all([
          commands.zcard(orderName),
          commands.hmget(hashName, 'waiting', 'delivered', 'failed', 'dropped'),
        ]),
      );
      if (figures === undefined) return undefined;
      const [events, counts] = figures;
      const [waiting = 0, delivered = 0, failed = 0, dropped = 0] = counts.map(Number);
      return { events, waiting, delivered, failed, dropped, unsent };
    },
  };
}

/** Whether a query selects an event, apart from the event's deliveries. */
export function matchesEvent(
  { type, subject, atMs }: Pick<WebhookEvent, 'type' | 'subject' | 'atMs'>,
  { types, subject: wanted, fromMs = 0, toMs = Number.POSITIVE_INFINITY }: DeliveriesQuery,
): boolean {
  return types?.has(type) !== false && (wanted ?? subject) === subject && atMs >= fromMs && atMs < toMs;
}

export function matchesDelivery(
  { state, receiver }: Pick<Delivery, 'state' | 'receiver'>,
  { states, receivers }: DeliveriesQuery,
): boolean {
  return states?.has(state) !== false && receivers?.has(receiver) !== false;
}

function toDelivery(
  receiver: string,
  receiverOrigin: string | undefined,
  { state, attempts, due, lastMs, status, error }: StoredDelivery,
): Delivery {
  return {
    receiver,
    receiverOrigin,
    state,
    attempts,
    last: lastMs === undefined ? undefined : { atMs: lastMs, status, error },
    nextMs: due === undefined ? undefined : Number(due),
  };
}

/** @returns undefined for a missing text, and for a text that another program has written */
function parse<T extends object>(text: string | null | undefined): T | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '');
    return typeof value === 'object' && value !== null ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}
