import type { Logger } from 'pino';
import { kindOf, type Notice, webhookTypeOf } from '../../fleet/kinds/kinds.ts';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { makeEventBody } from './events/event-body.ts';
import { eventIdentity } from './events/event-identity.ts';
import { isWantedBy } from './events/is-wanted-by.ts';
import { newEventId, type QueueCounts, type SenderState } from './queue/delivery-queue.ts';
import { createRedisQueue } from './queue/redis-queue.ts';
import { createSender } from './sender/sender.ts';
import type { Receiver } from './settings/receivers.ts';

/**
 * - `queued`: the queue has the event, from this report or from an earlier report.
 * - `unwanted`: no receiver wants the event.
 * - `dropped`: too many events waited in this process while Redis was away.
 */
export type Recorded = 'queued' | 'unwanted' | 'dropped';

/** The state of the webhooks, for metrics and for the state of the gateway. */
export interface NotifyState extends SenderState {
  /** The numbers of waiting deliveries, and of dropped events, of all processes. */
  readonly waiting: number;
  readonly dropped: number;
  /** The time at which this process saw that events were dropped, epoch ms; undefined if no event was dropped recently. */
  readonly droppedSinceMs: number | undefined;
}

/** Makes an event of each notice that a receiver wants, and puts it into the queue of deliveries. */
export function createNotify({
  receivers: first,
  redis,
  processId,
  planOf,
  nowMs,
  log,
  bounds,
}: {
  readonly receivers: readonly Receiver[];
  readonly redis: RedisConnection;
  readonly processId: string;
  /** Returns the present plan of a key; undefined if the key is unknown. */
  readonly planOf: (keyId: string) => Promise<string | undefined>;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly bounds: Bounds;
}) {
  const queue = createRedisQueue({ redis, processId, bounds });
  const sender = createSender({ queue, nowMs, log, bounds });
  let receivers = first;
  /** The last figures of the queue, and the time at which the number of dropped events last grew. */
  let counts: QueueCounts | undefined;
  let droppedSinceMs: number | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function readCounts(): Promise<void> {
    const read = receivers.length > 0 ? await queue.counts() : undefined;
    if (read === undefined) return;
    if (counts !== undefined && read.dropped > counts.dropped) droppedSinceMs ??= nowMs();
    else if (droppedSinceMs !== undefined && nowMs() - droppedSinceMs > bounds.webhookDroppedNoticeMs)
      droppedSinceMs = undefined;
    counts = read;
  }

  /** Returns the plan of a notice's key if a filter needs it and the notice does not state it. */
  async function planFor(notice: Notice): Promise<string | undefined> {
    const type = webhookTypeOf(notice);
    const { key, plan } = kindOf(notice).about(notice);
    const isNeeded = receivers.some(
      ({ plans, events }) => plans && type !== undefined && events.includes(type),
    );
    return isNeeded && key !== undefined && plan === undefined ? planOf(key) : undefined;
  }

  return {
    queue,
    /**
     * Records a notice. The promise never rejects.
     *
     * @param seenBy the process that observed it, if another process records it
     */
    async record(notice: Notice, seenBy?: string): Promise<Recorded> {
      const atMs = nowMs();
      const plan = await planFor(notice);
      const wanting = receivers.filter((receiver) => isWantedBy(receiver, notice, plan));
      const body = wanting.length > 0 ? makeEventBody(notice, atMs, bounds) : undefined;
      if (body === undefined) return 'unwanted';
      const { kind } = await queue.add({
        event: {
          id: newEventId(),
          type: body.type,
          body: JSON.stringify(body),
          atMs,
          subject: kindOf(notice).subject(notice),
        },
        identity: eventIdentity(notice, atMs, bounds),
        seenBy,
        receivers: wanting.map(({ id }) => id),
      });
      return kind === 'dropped' ? 'dropped' : 'queued';
    },
    /** Replaces the receivers after a reload. */
    replace(next: readonly Receiver[]) {
      receivers = next;
      sender.replace(next);
    },
    /** @returns undefined without receivers */
    state(): NotifyState | undefined {
      if (receivers.length === 0) return undefined;
      const { attempts, failing } = sender.state();
      const { waiting = 0, dropped = 0 } = counts ?? {};
      const isLong = ({ sinceMs }: { sinceMs: number }) => nowMs() - sinceMs >= bounds.webhookFailingNoticeMs;
      return { attempts, failing: failing.filter(isLong), waiting, dropped, droppedSinceMs };
    },
    start() {
      sender.start(receivers);
      void readCounts();
      timer = setInterval(() => void readCounts(), bounds.webhookCountsIntervalMs).unref();
    },
    /** Stops sending, and writes the events that Redis does not have yet. */
    async close() {
      clearInterval(timer);
      await sender.close();
      const lost = await queue.close();
      if (lost > 0) log.warn({ events: lost }, 'webhook events are lost, because Redis did not take them');
    },
  };
}
