import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type {
  DeliveriesQuery,
  DeliveryQueue,
  EventReport,
  Settlement,
} from '../../../../gateway/capabilities/webhooks/queue/delivery-queue.ts';
import { allRedisForms, startForm, tagsOf } from '../../../support/start-form.ts';
import { until } from '../../../support/until.ts';
import {
  onceReportOf,
  type QueueSubject,
  type QueueTuning,
  receiverOf,
  redisSubject,
  reportOf,
} from './delivery-queues.ts';

const [a, b] = ['aaaaaaaaaaaa', 'bbbbbbbbbbbb'];
const wantsAll = (receiver = a) => [{ receiver, deliveriesMax: 100 }];
const failure = { status: 500, error: 'status 500' };

async function claimed(queue: DeliveryQueue, receiver = a) {
  const claims = await queue.claim(wantsAll(receiver));
  return claims?.deliveries ?? [];
}

async function claimedIds(queue: DeliveryQueue, receiver = a) {
  return (await claimed(queue, receiver)).map(({ eventId }) => eventId);
}

/** Claims the due deliveries, and stores the same result for each of them. */
async function settleAll(
  queue: DeliveryQueue,
  kind: 'delivered' | 'failed' | 'retry',
  { receiver = a, pauseMs = 0 } = {},
) {
  for (const delivery of await claimed(queue, receiver)) {
    const settlement =
      kind === 'delivered'
        ? { kind, status: 204 }
        : kind === 'failed'
          ? { kind, ...failure }
          : { kind, pauseMs, ...failure };
    expect(await queue.settle(delivery, settlement)).toBe(true);
  }
}

async function addAll(queue: DeliveryQueue, ...reports: readonly EventReport[]) {
  for (const report of reports) await queue.add(report);
  return reports.map(({ event }) => event.id);
}

/** The deliveries of the list as `<place of the event> <receiver> <state> <attempts>`, the last event first. */
async function states(queue: DeliveryQueue, ids: readonly string[], query: Partial<DeliveriesQuery> = {}) {
  const page = await queue.list({ limit: 100, ...query });
  return page?.events.flatMap(({ id, deliveries }) =>
    deliveries.map(
      ({ receiver, state, attempts }) => `${ids.indexOf(id)} ${receiver[0]} ${state} ${attempts}`,
    ),
  );
}

const subjects: readonly {
  readonly name: string;
  readonly tags: string[];
  readonly start: (tuning?: QueueTuning) => Promise<QueueSubject>;
}[] = allRedisForms.map((form) => {
  const place = startForm(form);
  return {
    name: `in Redis, ${form.name}`,
    tags: tagsOf(form, ['a Cluster']),
    start: (tuning?: QueueTuning) => redisSubject(tuning, place()),
  };
});

for (const { name, tags, start } of subjects)
  describe(`the queue ${name}`, { tags }, () => {
    async function open(tuning?: QueueTuning) {
      const subject = await start(tuning);
      onTestFinished(() => subject.close());
      return subject.open();
    }

    it('gives a delivery to one claim, and keeps it after its end', async () => {
      const queue = await open();
      const report = reportOf([a, b], {
        body: '{"text":"ünï \\u2028 😀"}',
        type: 'key.banned',
        subject: 'acme',
      });
      expect(await queue.add(report)).toEqual({ kind: 'added', id: report.event.id });

      const [first] = await claimed(queue);
      expect(first).toMatchObject({
        receiver: a,
        eventId: report.event.id,
        body: report.event.body,
        attempts: 0,
      });
      expect(await claimed(queue)).toEqual([]);
      if (first) await queue.settle(first, { kind: 'delivered', status: 204 });

      const { id, body, type, atMs } = report.event;
      const delivered = {
        receiver: a,
        state: 'delivered',
        attempts: 1,
        last: { status: 204, error: undefined },
      };
      const waiting = { receiver: b, state: 'waiting', attempts: 0, last: undefined };
      const event = { id, type, atMs, subject: 'acme', deliveries: [delivered, waiting] };
      expect(await queue.read(id)).toMatchObject({ ...event, body });
      expect((await queue.list({ limit: 10 }))?.events).toMatchObject([event]);
      expect(await queue.counts()).toMatchObject({
        events: 1,
        waiting: 1,
        delivered: 1,
        failed: 0,
        dropped: 0,
      });
      expect(await queue.read('evt_unknown')).toBe('unknown');
    });

    it('claims at most as many deliveries as wanted, the earliest first', async () => {
      const queue = await open();
      const ids = await addAll(queue, ...Array.from({ length: 5 }, () => reportOf([a])));
      const few = async (deliveriesMax: number) =>
        (await queue.claim([{ receiver: a, deliveriesMax }]))?.deliveries.map(({ eventId }) =>
          ids.indexOf(eventId),
        );
      expect(await few(0)).toEqual([]);
      const all = [...((await few(2)) ?? []), ...((await few(2)) ?? []), ...((await few(2)) ?? [])];
      expect(all.toSorted()).toEqual([0, 1, 2, 3, 4]);
    });

    it('gives a failed attempt to the next claim after its pause, and a failed delivery to none', async () => {
      const queue = await open();
      const ids = await addAll(queue, reportOf([a]));
      await settleAll(queue, 'retry', { pauseMs: 600_000 });
      expect(await claimed(queue)).toEqual([]);
      expect(await states(queue, ids)).toEqual(['0 a waiting 1']);
      await queue.resend(ids[0] ?? '');
      await settleAll(queue, 'retry', { pauseMs: 1 });
      await until('the pause has ended', async () => (await states(queue, ids))?.[0] === '0 a waiting 2');
      await expect.poll(() => claimedIds(queue)).toEqual(ids);
    });

    it('gives a delivery to another claim after the end of the first, whose failure then has no effect', async () => {
      const queue = await open({ webhookClaimMs: 20 });
      const ids = await addAll(queue, reportOf([a]), reportOf([b]));
      const [first] = await claimed(queue);
      await expect.poll(() => claimedIds(queue)).toEqual([ids[0]]);
      if (first) await queue.settle(first, { kind: 'failed', ...failure });
      expect(await states(queue, ids)).toEqual(['1 b waiting 0', '0 a waiting 0']);
      if (first) await queue.settle(first, { kind: 'delivered', status: 200 });
      expect(await states(queue, ids)).toEqual(['1 b waiting 0', '0 a delivered 1']);
      expect(await claimed(queue)).toEqual([]);
    });

    it('makes a returned delivery due without counting an attempt', async () => {
      const queue = await open();
      const ids = await addAll(queue, reportOf([a]));
      const [first] = await claimed(queue);
      if (first) await queue.settle(first, { kind: 'returned' });
      expect(await states(queue, ids)).toEqual(['0 a waiting 0']);
      expect(await claimedIds(queue)).toEqual(ids);
    });

    it('gives the events of one subject to a receiver in their order, and each receiver has its own order', async () => {
      const queue = await open();
      const ids = await addAll(queue, ...[1, 2, 3].map(() => reportOf([a, b], { subject: 'acme' })));
      expect(await claimedIds(queue, b)).toEqual([ids[0]]);
      for (const id of ids) {
        const [delivery, ...others] = await claimed(queue);
        expect([delivery?.eventId, others]).toEqual([id, []]);
        if (delivery) await queue.settle(delivery, { kind: 'retry', pauseMs: 0, ...failure });
        expect(await claimedIds(queue)).toEqual([id]);
        if (delivery) await queue.settle(delivery, { kind: 'delivered', status: 200 });
      }
      const [another] = await addAll(queue, reportOf([a], { subject: 'acme' }));
      expect(await claimedIds(queue)).toEqual([another]);
    });

    it('no longer holds the events of a subject after some failed attempts of the first', async () => {
      const queue = await open({ webhookOrderedAttemptsMax: 2 });
      const reports = [1, 2, 3].map(() => reportOf([a], { subject: 'acme' }));
      const ids = await addAll(queue, ...reports.slice(0, 2));
      await settleAll(queue, 'retry');
      expect(await states(queue, ids)).toEqual(['1 a waiting 0', '0 a waiting 1']);
      await settleAll(queue, 'retry', { pauseMs: 600_000 });
      expect(await claimedIds(queue)).toEqual([ids[1]]);
      ids.push(...(await addAll(queue, ...reports.slice(2))));
      expect(await claimedIds(queue)).toEqual([]);
    });

    it('removes the oldest ended events first when it is full, then the oldest waiting ones, which it counts', async () => {
      const queue = await open({ webhooksMax: 4 });
      const ids = await addAll(
        queue,
        reportOf([b]),
        reportOf([a]),
        reportOf([a], { subject: 's' }),
        reportOf([a, b]),
      );
      await settleAll(queue, 'delivered');
      ids.push(...(await addAll(queue, reportOf([b], { subject: 's' }), reportOf([b], { subject: 's' }))));
      expect(await states(queue, ids)).toEqual([
        ...['5 b waiting 0', '4 b waiting 0', '3 a delivered 1', '3 b waiting 0', '0 b waiting 0'],
      ]);
      ids.push(...(await addAll(queue, reportOf([b]), reportOf([b]), reportOf([b]))));
      expect(await states(queue, ids)).toEqual([
        '8 b waiting 0',
        '7 b waiting 0',
        '6 b waiting 0',
        '5 b waiting 0',
      ]);
      expect(await queue.counts()).toMatchObject({ events: 4, waiting: 4, delivered: 0, dropped: 3 });
      // Event 4 held event 5 back until it was removed.
      expect((await claimedIds(queue, b)).map((id) => ids.indexOf(id)).toSorted()).toEqual([5, 6, 7, 8]);
      expect(await queue.read(ids[0] ?? '')).toBe('unknown');
    });

    it('removes events that are too old', async () => {
      const queue = await open({ webhooksKeptMs: 300 });
      const [old] = await addAll(queue, reportOf([a]));
      await until('the event is removed', async () => {
        await addAll(queue, reportOf([a]));
        return (await queue.read(old ?? '')) === 'unknown';
      });
    });

    it('sends an ended event again, to one receiver or to all, and a waiting event at once', async () => {
      const queue = await open();
      const ids = await addAll(queue, reportOf([a, b]), reportOf([a]));
      await settleAll(queue, 'failed');
      await settleAll(queue, 'delivered', { receiver: b });
      expect(await queue.counts()).toMatchObject({ waiting: 0, delivered: 1, failed: 2 });
      expect(await queue.resend(ids[0] ?? '', b)).toBe(1);
      expect(await claimedIds(queue, a)).toEqual([]);
      // The delivery has an attempt in progress, and is not given to a second claim.
      expect(await claimedIds(queue, b)).toEqual([ids[0]]);
      expect(await queue.resend(ids[0] ?? '')).toBe(2);
      expect(await claimedIds(queue, b)).toEqual([]);
      await settleAll(queue, 'retry', { pauseMs: 600_000 });
      expect(await states(queue, ids)).toEqual(['1 a failed 1', '0 a waiting 1', '0 b waiting 0']);
      expect(await queue.resend(ids[0] ?? '', a)).toBe(1);
      expect(await claimedIds(queue)).toEqual([ids[0]]);
      expect(await queue.resend(ids[0] ?? '', 'cccccccccccc')).toBe(0);
      expect(await queue.resend('evt_unknown')).toBe('unknown');
      expect(await queue.counts()).toMatchObject({ waiting: 2, delivered: 0, failed: 1 });
    });

    it('fails the deliveries of a receiver that no process has any more, and keeps the origin of its URL', async () => {
      const queue = await open({ webhookReceiverGoneMs: 200, webhooksEndedAtOnceMax: 2 });
      await queue.noteReceivers([receiverOf(a), receiverOf(b)]);
      const subject = { subject: 'acme' };
      const ids = await addAll(
        queue,
        ...[1, 2, 3].map(() => reportOf([a, b], subject)),
        reportOf([a]),
        reportOf([a]),
      );
      await until('the deliveries of the removed receiver have failed', async () => {
        await queue.noteReceivers([receiverOf(b)]);
        return (await queue.counts())?.failed === 5;
      });
      expect(await queue.counts()).toMatchObject({ waiting: 3, failed: 5 });
      const [event] = (await queue.list({ limit: 1, receivers: new Set([a]) }))?.events ?? [];
      expect(event).toMatchObject({
        id: ids[4],
        deliveries: [
          { receiverOrigin: `https://${a}.example.com`, last: { error: expect.stringMatching(/no longer/) } },
        ],
      });
    });

    it('lists pages, and selects by state, receiver, type, subject and time', async () => {
      const queue = await open({ webhooksReadAtOnceMax: 3 });
      const at = (atMs: number) => ({ atMs });
      const ids = await addAll(
        queue,
        reportOf([a], { ...at(1_000), type: 'key.banned', subject: 'acme' }),
        reportOf([a, b], at(2_000)),
        reportOf([b], { ...at(3_000), type: 'key.banned' }),
        ...Array.from({ length: 5 }, () => reportOf([a], at(4_000))),
      );
      await settleAll(queue, 'delivered', { receiver: b });
      const seen: number[] = [];
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page = await queue.list({ limit: 3, ...(after !== '' && { after }) });
        seen.push(...(page?.events ?? []).map(({ id }) => ids.indexOf(id)));
        after = page?.next;
      }
      expect(seen).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
      const found = (query: Partial<DeliveriesQuery>) => states(queue, ids, query);
      expect(await found({ states: new Set(['delivered']) })).toEqual(['2 b delivered 1', '1 b delivered 1']);
      expect(await found({ receivers: new Set([a]), toMs: 4_000 })).toEqual([
        '1 a waiting 0',
        '0 a waiting 0',
      ]);
      expect(await found({ types: new Set(['key.banned']) })).toEqual(['2 b delivered 1', '0 a waiting 0']);
      expect(await found({ subject: 'acme' })).toEqual(['0 a waiting 0']);
      expect(await found({ fromMs: 2_000, toMs: 3_000 })).toEqual(['1 a waiting 0', '1 b delivered 1']);
    });

    it('merges reports about an event that occurs once, until no process reports it any more', async () => {
      const queue = await open();
      const [first, second, third] = [[a], [a], [a, b]].map((receivers) =>
        onceReportOf(receivers, 'ban of acme'),
      );
      if (!first || !second || !third) throw new Error('three reports were made');
      expect(await queue.add(first)).toEqual({ kind: 'added', id: first.event.id });
      expect(await queue.add(second)).toEqual({ kind: 'merged', id: first.event.id });
      await settleAll(queue, 'delivered');
      // A process with a newer configuration reports the event to one more receiver.
      expect(await queue.add(third)).toEqual({ kind: 'merged', id: first.event.id });
      expect(await states(queue, [first.event.id])).toEqual(['0 a delivered 1', '0 b waiting 0']);
      await queue.mergeUntil(first.identity, 1);
      await until('the reports are no longer merged', async () => {
        return (await queue.add(onceReportOf([a], 'ban of acme'))).kind === 'added';
      });
    });

    it('tells the listener about added events and about events that are sent again', async () => {
      const queue = await open();
      let calls = 0;
      queue.onDue(() => (calls += 1));
      const [id = ''] = await addAll(queue, reportOf([a]));
      expect(calls).toBe(1);
      await queue.resend(id);
      expect(calls).toBe(2);
    });
  });

it('random operations keep the counts, the claims and the order of the events', async () => {
  const operations = fc.array(
    fc.record({
      verb: fc.constantFrom(
        ...['add', 'add', 'add', 'once', 'claim', 'claim'],
        ...['delivered', 'failed', 'retry', 'returned', 'resend'],
      ),
      to: fc.constantFrom([a], [b], [a, b]),
      subject: fc.constantFrom('', 'acme', 'globex'),
      index: fc.nat(6),
    }),
    { minLength: 30, maxLength: 60 },
  );
  let ordered = 0;
  // The order is only compared without events that are sent again, so half of the runs have none.
  const keepsOrder = (isResending: boolean) =>
    fc.asyncProperty(operations, async (steps) => {
      const tuning = { webhooksMax: 5, webhookOrderedAttemptsMax: 2, webhookRetryMs: 0 };
      const subject = await redisSubject(tuning);
      const queue = subject.open();
      const ids: string[] = [];
      let held: Awaited<ReturnType<typeof claimed>>[number][] = [];
      for (const { verb, to, subject, index } of steps) {
        const report = verb === 'once' ? onceReportOf(to, subject) : reportOf(to, { subject });
        const [delivery] = held.slice(index);
        if (verb === 'add' || verb === 'once') {
          if ((await queue.add(report)).kind === 'added') ids.push(report.event.id);
        } else if (verb === 'resend') {
          if (isResending) await queue.resend(ids.at(-1 - index) ?? '');
        } else if (verb === 'claim') {
          held.push(...(await claimed(queue, a)), ...(await claimed(queue, b)));
        } else if (delivery !== undefined) {
          const settlement: Settlement =
            verb === 'delivered'
              ? { kind: 'delivered', status: 200 }
              : { kind: verb as 'failed' | 'retry' | 'returned', pauseMs: 0, ...failure };
          expect(await queue.settle(delivery, settlement)).toBe(true);
          held = held.filter((one) => one !== delivery);
        }

        const { events } = (await queue.list({ limit: 100 })) ?? { events: [] };
        expect(events.map(({ id }) => ids.indexOf(id))).toEqual(
          events.map(({ id }) => ids.indexOf(id)).toSorted((x, y) => y - x),
        );
        const all = events.flatMap(({ deliveries }) => deliveries);
        const countOf = (state: string) => all.filter((one) => one.state === state).length;
        const { dropped, ...counts } = (await queue.counts()) ?? { dropped: 0 };
        expect(counts).toEqual({
          events: events.length,
          waiting: countOf('waiting'),
          delivered: countOf('delivered'),
          failed: countOf('failed'),
          unsent: 0,
        });
        expect(events.length).toBeLessThanOrEqual(5);
        if (events.length < 5) expect([dropped, events.length]).toEqual([0, ids.length]);
        // A claim of a removed event has no effect.
        const claims = held.flatMap(({ eventId, receiver, attempts }) => {
          const event = events.find(({ id }) => id === eventId);
          return event === undefined ? [] : [{ eventId, receiver, attempts, subject: event.subject }];
        });
        expect(new Set(claims.map(({ eventId, receiver }) => `${eventId} ${receiver}`)).size).toBe(
          claims.length,
        );
        if (isResending) continue;
        const inOrder = claims.filter(({ attempts, subject }) => subject !== '' && attempts < 2);
        expect(new Set(inOrder.map((one) => `${one.subject} ${one.receiver}`)).size).toBe(inOrder.length);
        ordered += inOrder.length;
      }
      await subject.close();
    });
  for (const isResending of [false, true]) await fc.assert(keepsOrder(isResending), { numRuns: 4 });
  expect(ordered).toBeGreaterThan(10);
});
