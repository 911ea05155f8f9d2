import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DeliveryQueue } from '../../../gateway/capabilities/webhooks/queue/delivery-queue.ts';
import { createSender } from '../../../gateway/capabilities/webhooks/sender/sender.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { until } from '../../support/until.ts';
import { type QueueTuning, redisSubject, reportOf } from './queue/delivery-queues.ts';
import { hang, type Response, startReceiver, status, type TestReceiver } from './receivers.ts';

const fast: QueueTuning = {
  webhookPollMs: 20,
  webhookClaimPauseMs: 1,
  webhookSenderCheckMs: 20,
  webhookRetryMs: 20,
  webhooksPerSecondMax: 1_000,
  webhookTimeoutMs: 60_000,
};
const [a, b] = ['aaaaaaaaaaaa', 'bbbbbbbbbbbb'];

async function receiverOf(id: string, response?: Response) {
  const receiver = await startReceiver(id, response);
  onTestFinished(() => receiver.close());
  return receiver;
}

function senderOf(queue: DeliveryQueue, receivers: readonly TestReceiver[], tuning: QueueTuning = {}) {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(line) });
  const bounds = tunedBounds({ ...fast, webhookClaimMs: 600_000, ...tuning });
  const sender = createSender({ queue, nowMs: Date.now, log, bounds });
  sender.start(receivers.map(({ receiver }) => receiver));
  onTestFinished(() => sender.close());
  return { ...sender, logged: () => lines.map((line) => JSON.parse(line)), lines };
}

async function openQueue(tuning: QueueTuning = {}) {
  const subject = await redisSubject({ ...fast, ...tuning });
  onTestFinished(() => subject.close());
  return subject;
}

describe('a sender', () => {
  it('repeats an attempt with the same id and body until the receiver accepts it', async () => {
    const queue = (await openQueue()).open();
    const receiver = await receiverOf(a, status(500));
    senderOf(queue, [receiver]);
    const report = reportOf([a], { type: 'key.banned' });
    await queue.add(report);
    await until('the attempt is repeated', () => receiver.received.length >= 3);
    receiver.respond(status(200));
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(1);
    const { id, body } = report.event;
    expect(new Set(receiver.received.map((each) => `${each.id} ${each.body}`))).toEqual(
      new Set([`${id} ${body}`]),
    );
    expect(receiver.refused).toEqual([]);
    expect(await queue.read(id)).toMatchObject({
      deliveries: [{ state: 'delivered', attempts: receiver.received.length }],
    });
  });

  it('delays no receiver by a receiver that hangs, which gets a limited number of concurrent attempts', async () => {
    const queue = (await openQueue()).open();
    const [slow, quick] = [await receiverOf(a, hang), await receiverOf(b)];
    const sender = senderOf(queue, [slow, quick], { webhooksPerReceiverMax: 3 });
    const reports = Array.from({ length: 40 }, (_, index) => reportOf([a, b], { subject: `key ${index}` }));
    for (const report of reports) await queue.add(report);
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(reports.length);
    await until('the slow receiver has all of its attempts', () => slow.received.length === 3);
    expect(new Set(quick.received.map(({ id }) => id)).size).toBe(reports.length);
    expect(await queue.counts()).toMatchObject({ waiting: reports.length, delivered: reports.length });
    expect(slow.received).toHaveLength(3);
    slow.respond(status(200));
    await slow.close();
    expect(sender.state().attempts.delivered).toBe(reports.length);
  });

  it('sends an added event before the next poll, also if it is added during a claim', async () => {
    const queue = (await openQueue()).open();
    const receiver = await receiverOf(a);
    senderOf(queue, [receiver], { webhookPollMs: 600_000, webhookSenderCheckMs: 600_000 });
    for (let events = 1; events <= 60; events++) {
      await queue.add(reportOf([a]));
      await until('the event has arrived', () => receiver.received.length === events);
    }
  });

  it('sends the events of one subject in their order, although the receiver fails meanwhile', async () => {
    const queue = (await openQueue()).open();
    let requests = 0;
    const receiver = await receiverOf(a, (response, received) => {
      requests += 1;
      status(requests % 3 === 0 ? 204 : 500)(response, received);
    });
    senderOf(queue, [receiver]);
    const reports = Array.from({ length: 8 }, () => reportOf([a], { subject: 'acme' }));
    for (const report of reports) await queue.add(report);
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(reports.length);
    const ids = [...new Set(receiver.received.map(({ id }) => id))];
    expect(ids).toEqual(reports.map(({ event }) => event.id));
  });

  it('gives up after 410, and does not follow a redirect', async () => {
    const queue = (await openQueue()).open();
    const gone = await receiverOf(a, status(410));
    const moved = await receiverOf(b, status(302, { location: gone.receiver.url }));
    senderOf(queue, [gone, moved], { webhookRetryMs: 600_000 });
    const report = reportOf([a, b]);
    await queue.add(report);
    await expect.poll(async () => (await queue.counts())?.failed).toBe(1);
    await expect
      .poll(() => queue.read(report.event.id))
      .toMatchObject({
        deliveries: [
          {
            receiver: a,
            state: 'failed',
            attempts: 1,
            last: { status: 410 },
            receiverOrigin: new URL(gone.receiver.url).origin,
          },
          {
            receiver: b,
            state: 'waiting',
            attempts: 1,
            last: { status: 302, error: 'status 302: a redirect is not followed' },
          },
        ],
      });
    expect([gone.received.length, moved.received.length]).toEqual([1, 1]);
  });

  it('cancels its attempts when it closes, and the next sender makes them', async () => {
    const subject = await openQueue({ webhooksCloseTimeoutMs: 20 });
    const receiver = await receiverOf(a, hang);
    const first = senderOf(subject.open('first'), [receiver], { webhooksCloseTimeoutMs: 20 });
    const report = reportOf([a]);
    await subject.open('first').add(report);
    await until('the first attempt is in progress', () => receiver.received.length === 1);
    await first.close();
    receiver.respond(status(200));
    const next = subject.open('next');
    senderOf(next, [receiver]);
    await expect.poll(async () => (await next.counts())?.delivered).toBe(1);
    expect(await next.read(report.event.id)).toMatchObject({ deliveries: [{ attempts: 1 }] });
  });

  it('sends the events that waited while no process ran for a long time', async () => {
    const queue = (await openQueue({ webhookReceiverGoneMs: 1 })).open();
    const receiver = await receiverOf(a);
    await queue.noteReceivers([receiver.receiver]);
    const report = reportOf([a]);
    await queue.add(report);
    await until(
      'the time has passed after which a receiver is gone',
      () => Date.now() > report.event.atMs + 10,
    );
    senderOf(queue, [receiver]);
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(1);
  });

  it('sends to a receiver after a reload has added it', async () => {
    const queue = (await openQueue()).open();
    const [old, added] = [await receiverOf(a), await receiverOf(b)];
    const sender = senderOf(queue, [old]);
    await queue.add(reportOf([a, b]));
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(1);
    sender.replace([added.receiver]);
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(2);
    await queue.add(reportOf([a]));
    await queue.add(reportOf([b]));
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(3);
    expect([old.received.length, added.received.length]).toEqual([1, 2]);
  });

  it('logs once that a receiver fails and once that it accepts again, without the path of its URL', async () => {
    const queue = (await openQueue()).open();
    const receiver = await receiverOf(a, status(503));
    const sender = senderOf(queue, [receiver]);
    for (let index = 0; index < 3; index++) await queue.add(reportOf([a]));
    await until('several attempts have failed', () => receiver.received.length > 6);
    const { origin } = new URL(receiver.receiver.url);
    expect(sender.state()).toMatchObject({
      attempts: { delivered: 0 },
      failing: [{ receiver: a, origin, error: 'status 503' }],
    });
    receiver.respond(status(204));
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(3);
    await expect.poll(() => sender.state()).toMatchObject({ attempts: { delivered: 3 }, failing: [] });
    expect(
      sender.logged().map(({ level, msg, origin: logged, error }) => [level, msg, logged, error]),
    ).toEqual([
      [40, 'a receiver does not accept webhooks', origin, 'status 503'],
      [30, 'a receiver accepts webhooks again', origin, undefined],
    ]);
    expect(sender.lines.join('')).not.toMatch(/token|whsec/);
  });
});

describe('several senders with one queue in Redis', () => {
  it('send each event once', async () => {
    const subject = await openQueue();
    const receivers = [await receiverOf(a), await receiverOf(b)];
    const queues = ['p1', 'p2', 'p3'].map((processId) => subject.open(processId));
    for (const queue of queues) senderOf(queue, receivers);
    const reports = Array.from({ length: 60 }, () => reportOf([a, b]));
    await Promise.all(reports.map((report, index) => queues[index % 3]?.add(report)));
    await expect.poll(async () => (await queues[0]?.counts())?.delivered).toBe(2 * reports.length);
    for (const { received } of receivers) {
      expect(received.map(({ id }) => id).toSorted()).toEqual(
        reports.map(({ event }) => event.id).toSorted(),
      );
    }
  });

  it('do not send again what a sender has delivered, although the results arrive late', async () => {
    const subject = await openQueue({ webhookClaimMs: 30 });
    const queue = subject.open();
    let isAway = true;
    const lossy: DeliveryQueue = {
      ...queue,
      settle: (...args) => (isAway ? Promise.resolve(false) : queue.settle(...args)),
    };
    const receiver = await receiverOf(a);
    senderOf(lossy, [receiver]);
    const ids: string[] = [];
    for (let index = 0; index < 3; index++) {
      const report = reportOf([a]);
      ids.push(report.event.id);
      await queue.add(report);
    }
    await until('all events are delivered', () => receiver.received.length === 3);
    await until('the claims have ended', async () => {
      const claims = await queue.claim([{ receiver: a, deliveriesMax: 9 }]);
      return (claims?.deliveries.length ?? 0) > 0;
    });
    isAway = false;
    await expect.poll(async () => (await queue.counts())?.delivered).toBe(3);
    expect(receiver.received.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  });

  it('do not attempt a delivery whose claim ends before the attempt', async () => {
    const subject = await openQueue({ webhookClaimMs: 50 });
    const queue = subject.open();
    const receiver = await receiverOf(a);
    const sender = senderOf(queue, [receiver], { webhookClaimMs: 50 });
    await queue.add(reportOf([a]));
    await until('the delivery was claimed', async () => {
      const [event] = (await queue.list({ limit: 1 }))?.events ?? [];
      return (event?.deliveries[0]?.nextMs ?? 0) > (event?.atMs ?? 0);
    });
    await sender.close();
    expect(receiver.received).toEqual([]);
  });
});
