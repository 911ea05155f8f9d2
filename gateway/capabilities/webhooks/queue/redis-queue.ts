import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RedisCommands, RedisConnection } from '../../../redis/redis-connection.ts';
import { replyOrUndefined } from '../../../redis/redis-reply.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { EventIdentity } from '../events/event-identity.ts';
import { webhooksKeys } from '../redis-keys.ts';
import {
  type Added,
  type ClaimedDelivery,
  type DeliveryQueue,
  type EventReport,
  type QueueCounts,
  receiverGone,
} from './delivery-queue.ts';
import { createOutbox, type Unsent } from './outbox.ts';
import { createRedisList } from './redis-list.ts';

/**
 * The queue of all processes, in Redis. The scripts of `scripts/` make each change, so a process that dies leaves no half-made change. The
 * keys have the same hash tag, so one server of a Cluster stores the whole queue.
 */
export function createRedisQueue({
  redis,
  processId,
  bounds,
}: {
  readonly redis: RedisConnection;
  readonly processId: string;
  readonly bounds: Bounds;
}): DeliveryQueue {
  const { commands, prefix } = redis;
  const names = namesOf(prefix);
  const receiversName = webhooksKeys.deliveriesReceivers.name(prefix);
  defineScripts(commands);
  const outbox = createOutbox({ send, isReady: () => redis.isReady(names[0]), bounds });
  const attempt = createAttempt(redis, bounds);
  const list = createQueueReader(redis, bounds);
  /** Redis's clock minus the clock of `performance.now()`, in ms. Undefined before the first claim. */
  let clockAheadMs: number | undefined;
  let onDue = () => {};
  let lastCounts: QueueCounts | undefined;

  async function send({ report, number, reportedMs, lost }: Unsent): Promise<Added> {
    const { event, identity, seenBy = processId, receivers } = report;
    const { id, type, atMs, subject, body } = event;
    const { isOnce, mergedWithinMs } = identity;
    const [kind, storedId] = await commands.addWebhook(
      ...[...names, sameName(identity), id, type, atMs, subject, body, seenBy, number],
      ...[
        Math.round(performance.now() - reportedMs),
        isOnce ? 1 : 0,
        mergedWithinMs,
        identityKeptMs(identity),
      ],
      ...[bounds.listReportsMax, bounds.webhooksMax, bounds.webhooksKeptMs, bounds.webhookOrderedAttemptsMax],
      ...[lost, ...receivers],
    );
    return { kind, id: storedId };
  }

  function sameName({ what }: EventIdentity): string {
    return webhooksKeys.deliveriesSame.name(prefix, hash('sha256', JSON.stringify(what)).slice(0, 32));
  }

  /** A late report may arrive long after the first report if the process had lost Redis. */
  function identityKeptMs({ isOnce, mergedWithinMs }: EventIdentity): number {
    if (mergedWithinMs === 0) return 0;
    return Math.round(isOnce ? mergedWithinMs : Math.max(mergedWithinMs, bounds.webhookIdentityKeptMs));
  }

  return {
    ...list,
    async add(report: EventReport) {
      const added = await outbox.add(report);
      if (added.kind !== 'dropped') onDue();
      return added;
    },
    async mergeUntil(identity, mergedWithinMs) {
      await attempt(() => commands.pexpire(sameName(identity), Math.round(mergedWithinMs)));
    },
    async resend(eventId, receiver = '') {
      const due = await attempt(() =>
        commands.resendWebhook(...names, eventId, receiver, bounds.webhooksKeptMs),
      );
      if (due !== undefined && due > 0) onDue();
      return due === -1 ? 'unknown' : due;
    },
    async counts() {
      const read = await list.counts(outbox.size());
      lastCounts = read ?? lastCounts;
      return read;
    },
    lastCounts: () => lastCounts && { ...lastCounts, unsent: outbox.size() },

    async claim(wanted) {
      const { webhookSenderMs, webhookClaimMs, webhooksKeptMs } = bounds;
      const flat = wanted.flatMap(({ receiver, deliveriesMax }) => [receiver, deliveriesMax]);
      const sentMs = performance.now();
      const untilMs =
        clockAheadMs === undefined ? 0 : Math.round(sentMs + clockAheadMs + bounds.storePatientDeadlineMs);
      const times = [webhookSenderMs, webhookClaimMs, webhooksKeptMs];
      const reply = await attempt(() =>
        commands.claimWebhooks(...names, receiversName, processId, ...times, untilMs, ...flat),
      );
      if (reply === undefined) return undefined;
      const [isSending, redisMs, ...parts] = reply;
      clockAheadMs = Number(redisMs) - sentMs;
      return { isSending: isSending === 1, deliveries: toClaimed(parts) };
    },
    async settle({ receiver, eventId, token }, settlement) {
      const { kind } = settlement;
      const pauseMs = kind === 'retry' ? Math.round(settlement.pauseMs) : 0;
      const status = (kind !== 'returned' && settlement.status) || '';
      const error = kind === 'retry' || kind === 'failed' ? settlement.error : '';
      const reply = await attempt(() =>
        commands.settleWebhook(
          ...[...names, receiver, eventId, token, kind, pauseMs, status],
          ...[
            error.slice(0, bounds.webhookErrorCharsMax),
            bounds.webhookOrderedAttemptsMax,
            bounds.webhooksKeptMs,
          ],
        ),
      );
      return reply !== undefined;
    },
    async noteReceivers(receivers) {
      const noted = receivers.flatMap(({ id, url }) => [id, new URL(url).origin]);
      const atOnceMax = bounds.webhooksEndedAtOnceMax;
      const limits = [bounds.webhookReceiverGoneMs, receiverGone, atOnceMax, bounds.webhooksKeptMs];
      const note = () => commands.noteWebhookReceivers(...names, receiversName, ...limits, ...noted);
      // A call ends few deliveries, so that Redis serves other calls in between.
      while (((await attempt(note)) ?? 0) > 0);
    },
    async leave() {
      await attempt(() => commands.leaveWebhookReceivers(...names, receiversName, processId));
    },
    onDue(listener) {
      onDue = listener;
    },
    close: outbox.close,
  };
}

/** Reads the queue in Redis, also over a connection that writes nothing. */
export function createQueueReader(redis: RedisConnection, bounds: Bounds) {
  const receiversName = webhooksKeys.deliveriesReceivers.name(redis.prefix);
  const attempt = createAttempt(redis, bounds);
  return createRedisList({ redis, names: namesOf(redis.prefix), receiversName, attempt, bounds });
}

/** Makes a function that runs a call to Redis. The function returns undefined if Redis is unavailable or refuses the call. */
function createAttempt(redis: RedisConnection, bounds: Bounds) {
  const [hashName] = namesOf(redis.prefix);
  return <T>(call: () => Promise<T>): Promise<T | undefined> =>
    replyOrUndefined(redis, [hashName], call, bounds.storePatientDeadlineMs);
}

type Names = readonly [hash: string, order: string, ended: string, due: string];

function namesOf(prefix: string): Names {
  const { deliveries, deliveriesOrder, deliveriesEnded, deliveriesDue } = webhooksKeys;
  return [
    deliveries.name(prefix),
    deliveriesOrder.name(prefix),
    deliveriesEnded.name(prefix),
    deliveriesDue.name(prefix),
  ];
}

/** @param parts six for each delivery (`claim-due.lua`) */
function toClaimed(parts: readonly (string | number)[]): readonly ClaimedDelivery[] {
  return Array.from({ length: parts.length / 6 }, (_, index) => {
    const [receiver, eventId, token, attempts, sinceFirstMs, body] = parts
      .slice(6 * index, 6 * index + 6)
      .map(String);
    return {
      receiver: receiver ?? '',
      eventId: eventId ?? '',
      token: token ?? '',
      attempts: Number(attempts),
      sinceFirstMs: Number(sinceFirstMs),
      body: body ?? '',
    };
  });
}

function defineScripts(commands: RedisCommands): void {
  const state = readScript('queue-state.lua');
  const define = (name: string, numberOfKeys: number, file: string, before = state) =>
    commands.defineCommand(name, { numberOfKeys, lua: `${before}\n${readScript(file)}` });
  // A full Redis refuses new events. The process keeps them until Redis has room.
  define('addWebhook', 5, 'add-event.lua', state.replace(' flags=allow-oom', ''));
  define('claimWebhooks', 5, 'claim-due.lua');
  define('settleWebhook', 4, 'settle-delivery.lua');
  define('resendWebhook', 4, 'resend-event.lua');
  define('noteWebhookReceivers', 5, 'note-receivers.lua');
  define('leaveWebhookReceivers', 5, 'leave-receivers.lua');
}

function readScript(name: string): string {
  return readFileSync(new URL(`scripts/${name}`, import.meta.url), 'utf8');
}

type Arguments = readonly (string | number)[];

declare module 'ioredis' {
  interface RedisCommander<Context> {
    addWebhook(...args: Arguments): Result<['added' | 'merged', string], Context>;
    claimWebhooks(...args: Arguments): Result<(string | number)[], Context>;
    settleWebhook(...args: Arguments): Result<null, Context>;
    resendWebhook(...args: Arguments): Result<number, Context>;
    noteWebhookReceivers(...args: Arguments): Result<number, Context>;
    leaveWebhookReceivers(...args: Arguments): Result<null, Context>;
  }
}
