import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Added } from '../../../../gateway/capabilities/webhooks/queue/delivery-queue.ts';
import { createRedisQueue } from '../../../../gateway/capabilities/webhooks/queue/redis-queue.ts';
import { webhooksKeys } from '../../../../gateway/capabilities/webhooks/redis-keys.ts';
import { connectRedis } from '../../../support/connect-redis.ts';
import { startRedis } from '../../../support/start-redis.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { until } from '../../../support/until.ts';
import { reportOf } from '../queue/delivery-queues.ts';
import { gigabyte, hang, startReceiver, status, type TestReceiver } from '../receivers.ts';
import type { SenderOptions } from '../sender-process.ts';

export interface Webhooks {
  /** The number of events that the queue has confirmed. */
  readonly events: number;
  /** For each receiver, the number of events that it never got. */
  readonly lost: Readonly<Record<string, number>>;
  /** For each receiver, the number of accepted requests for an event that it had accepted before. */
  readonly repeated: Readonly<Record<string, number>>;
  /** Events with several bodies, and requests with a wrong signature. */
  readonly broken: readonly string[];
  /** The time from the kill of a sender to the next event at the healthy receiver, for each kill. */
  readonly takeoverMs: readonly number[];
  /** The longest time from a report to its arrival at the healthy receiver, while no sender was killed and Redis was not frozen. */
  readonly slowestMs: number;
}

/**
 * Kills senders with SIGKILL and freezes Redis, while one receiver works, and others fail, hang, redirect or send 1 GB. At the end all
 * receivers accept.
 */
export async function measureWebhooks({
  eventsPerRound,
  kills,
  frozenMs,
  tuning = {},
}: {
  readonly eventsPerRound: number;
  readonly kills: number;
  readonly frozenMs: number;
  readonly tuning?: SenderOptions['tuning'];
}): Promise<Webhooks> {
  const server = await startRedis();
  const prefix = 'test';
  const place = { url: server.url };
  const bounds = tunedBounds(tuning);
  const redis = await connectRedis({ prefix, place, bounds });
  const queue = createRedisQueue({ redis, processId: 'reporter', bounds });
  const start = (name: string, response: Parameters<typeof startReceiver>[1]) =>
    startReceiver(name.padEnd(12, '0'), response);
  const healthy = await start('healthy', status(204));
  const receivers = [
    healthy,
    await start('failing', status(500)),
    await start('hanging', hang),
    await start('moved', status(302, { location: healthy.receiver.url })),
    await start('endless', gigabyte),
  ];
  const options = { place, prefix, receivers: receivers.map(({ receiver }) => receiver), tuning };
  const senders = await Promise.all([startSender(options), startSender(options)]);
  const added: Promise<Added>[] = [];
  const reportedMs = new Map<string, number>();

  function report(events: number): string[] {
    return Array.from({ length: events }, (_, index) => {
      const one = reportOf(
        receivers.map(({ receiver }) => receiver.id),
        { subject: `key ${index % 10}` },
      );
      reportedMs.set(one.event.id, performance.now());
      added.push(queue.add(one));
      return one.event.id;
    });
  }

  const hasAll = (ids: readonly string[]) => {
    const got = new Set(healthy.received.map(({ id }) => id));
    return ids.every((id) => got.has(id));
  };

  try {
    const calm = report(eventsPerRound);
    await until('the healthy receiver has the first events', () => hasAll(calm));
    const arrivedMs = new Map(healthy.received.map(({ id, atMs }) => [id, atMs]));
    const slowestMs = Math.max(...calm.map((id) => (arrivedMs.get(id) ?? 0) - (reportedMs.get(id) ?? 0)));

    const takeoverMs: number[] = [];
    for (let kill = 0; kill < kills; kill++) {
      const ids = report(eventsPerRound);
      await until('events arrive', () => healthy.received.some(({ id }) => ids.includes(id)));
      const index = await senderOf(healthy.receiver.id);
      const killedMs = performance.now();
      await senders[index]?.kill();
      const [next] = report(1);
      await until('another process sends', () => healthy.received.some(({ id }) => id === next), 600_000);
      takeoverMs.push((healthy.received.find(({ id }) => id === next)?.atMs ?? 0) - killedMs);
      senders[index] = await startSender(options);
    }

    report(eventsPerRound);
    server.freeze();
    report(eventsPerRound);
    await sleep(frozenMs);
    server.thaw();

    for (const { respond } of receivers) respond(status(200));
    const kinds = (await Promise.all(added)).map(({ kind }) => kind);
    await until(
      'all events are delivered',
      async () => (await queue.counts())?.delivered === receivers.length * added.length,
      1_200_000,
    );
    return {
      events: kinds.filter((kind) => kind === 'added').length,
      ...judge(receivers, [...reportedMs.keys()]),
      takeoverMs,
      slowestMs,
    };
  } finally {
    await Promise.all(senders.map(({ kill }) => kill()));
    await queue.close();
    redis.close();
    await Promise.all(receivers.map(({ close }) => close()));
    await server.stop();
  }

  /** The index of the process that sends to a receiver. */
  async function senderOf(receiver: string): Promise<number> {
    const stored = await redis.commands.hget(webhooksKeys.deliveriesReceivers.name(prefix), receiver);
    const { process: id } = JSON.parse(stored ?? '{}');
    const index = senders.findIndex(({ processId }) => processId === id);
    if (index < 0) throw new Error('one of the processes sends to the receiver');
    return index;
  }
}

async function startSender(options: SenderOptions) {
  const child = fork(new URL('../sender-process.ts', import.meta.url), [JSON.stringify(options)]);
  const exited = once(child, 'exit');
  const [processId] = await once(child, 'message');
  return {
    processId: String(processId),
    async kill(): Promise<void> {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function judge(
  receivers: readonly TestReceiver[],
  ids: readonly string[],
): Pick<Webhooks, 'lost' | 'repeated' | 'broken'> {
  const lost: Record<string, number> = {};
  const repeated: Record<string, number> = {};
  const bodies = new Map<string, Set<string>>();
  for (const { receiver, accepted, received } of receivers) {
    const name = receiver.id.replace(/0+$/, '');
    const unique = new Set(accepted);
    lost[name] = ids.filter((id) => !unique.has(id)).length;
    repeated[name] = accepted.length - unique.size;
    for (const { id, body } of received) bodies.set(id, (bodies.get(id) ?? new Set()).add(body));
  }
  const broken = [...bodies].filter(([id, found]) => found.size > 1 || !ids.includes(id)).map(([id]) => id);
  return { lost, repeated, broken: [...broken, ...receivers.flatMap(({ refused }) => refused)] };
}
