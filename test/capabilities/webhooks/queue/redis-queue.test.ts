import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type {
  DeliveryQueue,
  EventReport,
} from '../../../../gateway/capabilities/webhooks/queue/delivery-queue.ts';
import { createRedisQueue } from '../../../../gateway/capabilities/webhooks/queue/redis-queue.ts';
import { webhooksKeys } from '../../../../gateway/capabilities/webhooks/redis-keys.ts';
import type { RedisConnection } from '../../../../gateway/redis/redis-connection.ts';
import { connectRedis, keysOf } from '../../../support/connect-redis.ts';
import { freshPrefix } from '../../../support/redis.ts';
import { startRedis } from '../../../support/start-redis.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientStore, steadyStore } from '../../../support/tuning.ts';
import { until } from '../../../support/until.ts';
import {
  failingCalls,
  longClaims,
  onceReportOf,
  type QueueTuning,
  redisSubject,
  reportOf,
} from './delivery-queues.ts';

const [a, b] = ['aaaaaaaaaaaa', 'bbbbbbbbbbbb'];

async function open(tuning?: QueueTuning) {
  const subject = await redisSubject(tuning);
  onTestFinished(() => subject.close());
  return subject;
}

async function claimOf(queue: DeliveryQueue, ...receivers: readonly string[]) {
  const claims = await queue.claim(receivers.map((receiver) => ({ receiver, deliveriesMax: 100 })));
  return { isSending: claims?.isSending, ids: claims?.deliveries.map(({ eventId }) => eventId) };
}

async function listedIds(queue: DeliveryQueue) {
  return (await queue.list({ limit: 100 }))?.events.map(({ id }) => id);
}

describe('several processes', () => {
  it('send to a receiver one at a time, and each receiver may have another sender', async () => {
    const { open: openQueue } = await open();
    const [one, other] = [openQueue('one'), openQueue('other')];
    const { event } = reportOf([a]);
    await one.add({ ...reportOf([a]), event });
    expect(await claimOf(other, b)).toEqual({ isSending: true, ids: [] });
    expect(await claimOf(one, a, b)).toEqual({ isSending: true, ids: [event.id] });
    const later = reportOf([a, b]);
    await one.add(later);
    expect(await claimOf(other, a, b)).toEqual({ isSending: true, ids: [later.event.id] });
    expect(await claimOf(other, a)).toEqual({ isSending: false, ids: [] });
  });

  it('take over the receivers of a process that has left, or that no longer claims', async () => {
    const { open: openQueue } = await open({ webhookSenderMs: 400, webhookClaimMs: 400 });
    const [one, other, third] = [openQueue('one'), openQueue('other'), openQueue('third')];
    const report = reportOf([a]);
    await one.add(report);
    expect((await claimOf(one, a)).ids).toEqual([report.event.id]);
    // Process `one` dies. Both its time as the sender and its claim end.
    await until(
      'another process sends the event',
      async () => (await claimOf(other, a)).ids?.[0] === report.event.id,
    );
    await other.leave();
    expect((await claimOf(third, a)).isSending).toBe(true);
  });

  it('report one event, which goes to the receivers of all of them', async () => {
    const { open: openQueue } = await open();
    const reports = ['p1', 'p2', 'p3'].map((processId, index) => {
      return { queue: openQueue(processId), report: onceReportOf(index === 1 ? [a, b] : [a], 'ban of acme') };
    });
    const added = await Promise.all(reports.map(({ queue, report }) => queue.add(report)));
    const [id] = new Set(added.map((each) => (each.kind === 'dropped' ? undefined : each.id)));
    expect(added.map(({ kind }) => kind).toSorted()).toEqual(['added', 'merged', 'merged']);
    const queue = openQueue();
    expect(await listedIds(queue)).toEqual([id]);
    expect(await claimOf(queue, a, b)).toEqual({ isSending: true, ids: [id, id] });
  });

  it('report two events of a target that flaps, although each process reports both', async () => {
    const { open: openQueue } = await open();
    const [one, other] = [openQueue('one'), openQueue('other')];
    const down = () =>
      reportOf([a], { identity: { what: ['down', 't1'], mergedWithinMs: 60_000, isOnce: false } });
    const kinds: string[] = [];
    for (const queue of [one, one, other, other]) kinds.push((await queue.add(down())).kind);
    expect(kinds).toEqual(['added', 'added', 'merged', 'merged']);
    expect(await listedIds(one)).toHaveLength(2);
    expect((await one.add(down())).kind).toBe('added');
  });

  it('report one event if the reports of two workers arrive through one supervisor', async () => {
    const queue = (await open()).open();
    const identity = { what: ['down', 't1'], mergedWithinMs: 60_000, isOnce: false };
    const kinds: string[] = [];
    for (const seenBy of ['p1-w1', 'p1-w2', 'p1-w1']) {
      kinds.push((await queue.add({ ...reportOf([a], { identity }), seenBy })).kind);
    }
    expect(kinds).toEqual(['added', 'merged', 'added']);
  });

  it('do not merge a report with an event that is too long ago', async () => {
    const { open: openQueue } = await open();
    const down = () =>
      reportOf([a], { identity: { what: ['down', 't1'], mergedWithinMs: 1, isOnce: false } });
    await openQueue('one').add(down());
    let number = 0;
    await until('the first event is too long ago', async () => {
      number += 1;
      return (await openQueue(`other ${number}`).add(down())).kind === 'added';
    });
  });
});

describe('a queue whose connection fails', () => {
  async function failing(script: string, lose: 'call' | 'reply') {
    const { redis, open: openQueue } = await open({ storePatientDeadlineMs: 20_000 });
    const bounds = tunedBounds({ ...patientStore, ...longClaims, webhookPollMs: 20 });
    const fragile = failingCalls(redis, script, { lose, times: 3 });
    const queue = createRedisQueue({ redis: fragile, processId: 'fragile', bounds });
    onTestFinished(async () => void (await queue.close()));
    return { queue, steady: openQueue() };
  }

  it.each(['call', 'reply'] as const)(
    'adds an event once and merges a report once when a %s is lost',
    async (lost) => {
      const { queue, steady } = await failing('addWebhook', lost);
      const report = onceReportOf([a], 'ban of acme');
      expect(await queue.add(report)).toEqual({ kind: 'added', id: report.event.id });
      expect(await steady.add(onceReportOf([a], 'ban of acme'))).toEqual({
        kind: 'merged',
        id: report.event.id,
      });
      const plain = reportOf([a]);
      expect(await queue.add(plain)).toEqual({ kind: 'added', id: plain.event.id });
      expect(await listedIds(steady)).toEqual([plain.event.id, report.event.id]);
      expect(await steady.counts()).toMatchObject({ events: 2, waiting: 2 });
    },
  );

  it('merges a report of a process that repeats the call', async () => {
    const { queue, steady } = await failing('addWebhook', 'reply');
    const down = () =>
      reportOf([a], { identity: { what: ['down', 't1'], mergedWithinMs: 60_000, isOnce: false } });
    const first = down();
    await steady.add(first);
    expect(await queue.add(down())).toEqual({ kind: 'merged', id: first.event.id });
    expect(await listedIds(steady)).toEqual([first.event.id]);
  });

  it.each(['call', 'reply'] as const)('counts an attempt once when a %s is lost', async (lost) => {
    const { queue, steady } = await failing('settleWebhook', lost);
    const report = reportOf([a]);
    await steady.add(report);
    const claims = await queue.claim([{ receiver: a, deliveriesMax: 1 }]);
    const [delivery] = claims?.deliveries ?? [];
    if (delivery === undefined) throw new Error('the delivery is claimed');
    const settle = () =>
      queue.settle(delivery, { kind: 'retry', pauseMs: 600_000, status: 500, error: 'status 500' });
    const replies = [await settle(), await settle(), await settle(), await settle()];
    expect(replies).toEqual([false, false, false, true]);
    expect(await steady.read(report.event.id)).toMatchObject({
      deliveries: [{ state: 'waiting', attempts: 1 }],
    });
  });
});

describe('a queue without Redis for a while', () => {
  const bounds = tunedBounds({ ...steadyStore, ...longClaims, webhookPollMs: 20, webhooksMax: 3 });

  async function startQueue() {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const redis = await connectRedis({ prefix: freshPrefix(), place: { url: server.url }, bounds });
    onTestFinished(() => redis.close());
    const queue = createRedisQueue({ redis, processId: 'p1', bounds });
    onTestFinished(async () => void (await queue.close()));
    return { server, redis, queue };
  }

  function addAll(queue: DeliveryQueue, reports: readonly EventReport[]) {
    return Promise.all(reports.map((report) => queue.add(report)));
  }

  it('writes the events of a frozen Redis in their order, and counts those for which it had no room', async () => {
    const { server, queue } = await startQueue();
    const before = reportOf([a]);
    await queue.add(before);
    server.freeze();
    const reports = Array.from({ length: 5 }, () => reportOf([b]));
    const adding = addAll(queue, reports);
    expect(await queue.claim([{ receiver: a, deliveriesMax: 1 }])).toBeUndefined();
    expect(await queue.list({ limit: 10 })).toBeUndefined();
    expect(await queue.read(before.event.id)).toBeUndefined();
    expect(await queue.resend(before.event.id)).toBeUndefined();
    expect(await queue.counts()).toBeUndefined();
    server.thaw();
    const kinds = (await adding).map(({ kind }) => kind);
    expect(kinds).toEqual(['dropped', 'dropped', 'added', 'added', 'added']);
    const ids = reports.map(({ event }) => event.id);
    expect(await listedIds(queue)).toEqual(ids.slice(2).reverse());
    // Three of the dropped events never were in Redis, or were in Redis for a moment only.
    await expect.poll(async () => (await queue.counts())?.dropped).toBeGreaterThanOrEqual(3);
  });

  it('claims no delivery when a frozen Redis runs the call late', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const place = { url: server.url };
    const subject = await redisSubject({ storePatientDeadlineMs: 1_000, storeSilenceMaxMs: 1_000 }, place);
    onTestFinished(() => subject.close());
    const queue = subject.open();
    await until('Redis replies', async () => (await claimOf(queue, a)).isSending === true);
    server.freeze();
    const report = reportOf([a]);
    const adding = queue.add(report);
    await until('a claim has no reply', async () => (await claimOf(queue, a)).ids === undefined);
    await sleep(1_500);
    server.thaw();
    await adding;
    await until(
      'the delivery is claimed',
      async () => (await claimOf(queue, a)).ids?.[0] === report.event.id,
    );
  });

  it('continues when Redis has lost its data and its scripts', async () => {
    const { server, redis, queue } = await startQueue();
    await queue.add(reportOf([a]));
    const claims = await queue.claim([{ receiver: a, deliveriesMax: 1 }]);
    await redis.commands.flushall();
    await redis.commands.script('FLUSH');
    for (const delivery of claims?.deliveries ?? []) {
      expect(await queue.settle(delivery, { kind: 'delivered', status: 200 })).toBe(true);
    }
    const adding = addAll(queue, [reportOf([a])]);
    await server.restart();
    const [added] = await adding;
    const later = reportOf([a]);
    await queue.add(later);
    await expect.poll(async () => (await claimOf(queue, a)).ids).toContain(later.event.id);
    expect(added?.kind).toBe('added');
  });

  it('ends with the events that Redis did not take as dropped', async () => {
    const { server, queue } = await startQueue();
    await server.kill();
    const adding = queue.add(reportOf([a]));
    expect(await queue.close()).toBe(1);
    expect(await adding).toEqual({ kind: 'dropped' });
  });

  it('keeps events while Redis is out of memory, and still delivers', async () => {
    const { redis, queue } = await startQueue();
    const report = reportOf([a]);
    await queue.add(report);
    await redis.commands.config('SET', 'maxmemory', '1');
    const adding = queue.add(reportOf([a]));
    const claims = await queue.claim([{ receiver: a, deliveriesMax: 1 }]);
    for (const delivery of claims?.deliveries ?? []) {
      await queue.settle(delivery, { kind: 'delivered', status: 200 });
    }
    expect(await queue.counts()).toMatchObject({ events: 1, delivered: 1, unsent: 1 });
    await redis.commands.config('SET', 'maxmemory', '0');
    expect((await adding).kind).toBe('added');
  });
});

describe('keys in Redis', () => {
  it('expire, and belong to the queue', async () => {
    const { redis, open: openQueue } = await open();
    const queue = openQueue();
    await queue.add(onceReportOf([a], 'ban of acme'));
    await queue.add(reportOf([a], { subject: 'acme' }));
    const claims = await queue.claim([{ receiver: a, deliveriesMax: 1 }]);
    for (const delivery of claims?.deliveries ?? [])
      await queue.settle(delivery, { kind: 'delivered', status: 200 });
    const names = await keysOf(redis);
    expect(names).toHaveLength(6);
    for (const name of names) expect([name, (await redis.commands.pttl(name)) > 0]).toEqual([name, true]);
  });

  it('are replaced or ignored if another program has overwritten them', async () => {
    const { redis, open: openQueue } = await open();
    const queue = openQueue();
    const { deliveries, deliveriesOrder, deliveriesEnded, deliveriesDue, deliveriesReceivers } = webhooksKeys;
    const kinds = [deliveries, deliveriesOrder, deliveriesEnded, deliveriesDue, deliveriesReceivers];
    for (const { name } of kinds) await redis.commands.set(name(redis.prefix), 'foreign');
    await queue.noteReceivers([]);
    const report = reportOf([a], { subject: 'acme' });
    expect((await queue.add(report)).kind).toBe('added');
    expect((await claimOf(queue, a)).ids).toEqual([report.event.id]);

    await overwriteFields(redis, report.event.id);
    const next = reportOf([a], { subject: 'acme' });
    expect((await queue.add(next)).kind).toBe('added');
    expect((await claimOf(queue, a)).ids).toEqual([next.event.id]);
    expect(await listedIds(queue)).toEqual([next.event.id]);
    expect(await queue.resend(report.event.id)).toBe('unknown');
  });

  async function overwriteFields({ commands, prefix }: RedisConnection, eventId: string) {
    const name = webhooksKeys.deliveries.name(prefix);
    await commands.hset(name, eventId, 'no JSON', `${eventId}:${a}`, '[', 'waiting', 'many');
    await commands.hset(webhooksKeys.deliveriesReceivers.name(prefix), a, '7', b, '{');
  }
});
