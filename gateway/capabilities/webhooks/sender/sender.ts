import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createSharedLookup } from '../../../shared/http/shared-lookup.ts';
import { Pace } from '../../../shared/structures/pace.ts';
import { withinDeadline } from '../../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type {
  ClaimedDelivery,
  DeliveryQueue,
  FailingReceiver,
  SenderState,
  Settlement,
} from '../queue/delivery-queue.ts';
import type { Receiver } from '../settings/receivers.ts';
import { postDelivery } from './post-delivery.ts';
import { settlementOf } from './retry-schedule.ts';
import { signDelivery } from './sign-delivery.ts';

type Target = Pick<Receiver, 'id' | 'url' | 'secrets'>;

/**
 * Sends the due deliveries of the queue. Each receiver has its own places for attempts, so a slow receiver delays no other receiver. A place
 * is free again when the queue has the result of the attempt, so few results are lost if the process dies.
 */
export function createSender({
  queue,
  nowMs,
  log,
  bounds,
}: {
  readonly queue: DeliveryQueue;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly bounds: Bounds;
}) {
  let receivers: ReadonlyMap<string, Target> = new Map();
  /** The deliveries of each receiver that this process has claimed and not settled yet. */
  const claimed = new Map<string, Set<string>>();
  const attempts = new Set<Promise<void>>();
  const pace = new Pace(bounds.webhooksPerSecondMax, bounds.webhooksAtOnceMax);
  const lookup = createSharedLookup(bounds);
  const health = createHealth({ log, nowMs, bounds });
  const closing = new AbortController();
  let isOpen = false;
  let claiming: Promise<void> | undefined;
  let isMoreExpected = false;
  let timer: NodeJS.Timeout | undefined;
  let noteTimer: NodeJS.Timeout | undefined;

  /** Claims deliveries soon, because there may be due deliveries and free places. */
  function claimSoon(): void {
    if (!isOpen || isMoreExpected) return;
    isMoreExpected = true;
    if (claiming === undefined) claimAfter(bounds.webhookClaimPauseMs);
  }

  function claimAfter(pauseMs: number): void {
    clearTimeout(timer);
    if (!isOpen) return;
    timer = setTimeout(() => {
      claiming = claim().then((nextMs) => {
        claiming = undefined;
        claimAfter(isMoreExpected ? bounds.webhookClaimPauseMs : nextMs);
      });
    }, pauseMs).unref();
  }

  /** @returns the time until the next claim, if no delivery becomes due and no place becomes free earlier */
  async function claim(): Promise<number> {
    isMoreExpected = false;
    const claimedMs = performance.now();
    const wanted = Array.from(receivers.keys(), (receiver) => {
      const deliveriesMax = bounds.webhooksPerReceiverMax - claimedOf(receiver).size;
      return { receiver, deliveriesMax: Math.max(0, deliveriesMax) };
    });
    const claims = wanted.length === 0 ? undefined : await queue.claim(wanted);
    for (const delivery of claims?.deliveries ?? []) start(delivery, claimedMs);
    return claims?.isSending === false ? bounds.webhookSenderCheckMs : bounds.webhookPollMs;
  }

  function claimedOf(receiver: string): Set<string> {
    const known = claimed.get(receiver);
    if (known !== undefined) return known;
    const added = new Set<string>();
    claimed.set(receiver, added);
    return added;
  }

  function start(delivery: ClaimedDelivery, claimedMs: number): void {
    const { receiver, eventId } = delivery;
    const own = claimedOf(receiver);
    // An earlier claim of this process has ended before its result was stored. The result will end the delivery.
    if (own.has(eventId)) return;
    own.add(eventId);
    const turn = new Promise<void>((resolve) => {
      pace.take(receiver, () => {
        resolve();
        return true;
      });
    });
    const attempt = turn
      .then(() => deliver(delivery, claimedMs))
      .finally(() => {
        attempts.delete(attempt);
        own.delete(eventId);
        claimSoon();
      });
    attempts.add(attempt);
  }

  async function deliver(delivery: ClaimedDelivery, claimedMs: number): Promise<void> {
    const { receiver: id, eventId, body } = delivery;
    const receiver = receivers.get(id);
    if (receiver === undefined || !isOpen) return store(delivery, { kind: 'returned' });
    // The process was suspended. Another process may have claimed the delivery before an attempt of this process ends.
    const endsMs = claimedMs + bounds.webhookClaimMs - bounds.storePatientDeadlineMs;
    if (performance.now() + bounds.webhookTimeoutMs > endsMs) return;
    const { url, secrets } = receiver;
    const headers = signDelivery({ id: eventId, body, secrets, nowMs: nowMs() });
    const attempt = await postDelivery({ url, headers, body, lookup, signal: closing.signal, bounds });
    const settlement = settlementOf(attempt, delivery, { nowMs: nowMs(), random: Math.random(), bounds });
    health.note(receiver, settlement);
    await store(delivery, settlement);
  }

  /** Repeats the call until it succeeds. Until then, this process does not attempt the delivery again. */
  async function store(delivery: ClaimedDelivery, settlement: Settlement): Promise<void> {
    while (!(await queue.settle(delivery, settlement)) && isOpen)
      await sleep(bounds.webhookPollMs, undefined, { ref: false });
  }

  function noteReceivers(): void {
    clearTimeout(noteTimer);
    if (!isOpen) return;
    noteTimer = setTimeout(noteReceivers, bounds.webhookReceiversNoteMs).unref();
    void queue.noteReceivers(Array.from(receivers.values()));
  }

  function replace(next: readonly Target[]): void {
    receivers = new Map(next.map((receiver) => [receiver.id, receiver]));
    health.keep(receivers);
    noteReceivers();
    claimSoon();
  }

  return {
    replace,
    start(first: readonly Target[]): void {
      isOpen = true;
      queue.onDue(claimSoon);
      replace(first);
    },
    state: health.state,
    /** Waits a short time for the attempts in progress, cancels the other attempts, and lets other processes send. */
    async close(): Promise<void> {
      isOpen = false;
      clearTimeout(timer);
      clearTimeout(noteTimer);
      await claiming;
      await ended();
      closing.abort();
      await ended();
      await queue.leave();
    },
  };

  async function ended(): Promise<void> {
    await withinDeadline<unknown>(Promise.all(attempts), bounds.webhooksCloseTimeoutMs, () => undefined);
  }
}

/** Counts attempts, and logs when a receiver begins to fail and when it accepts deliveries again. */
function createHealth({
  log,
  nowMs,
  bounds,
}: {
  readonly log: Logger;
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}) {
  let counts = { delivered: 0, failed: 0 };
  const failing = new Map<string, FailingReceiver>();
  /** The receivers whose failure was logged, and has not ended. */
  const warned = new Set<string>();
  /** The time of the last warning about a receiver. A receiver that refuses some events causes few warnings. */
  const warnedMs = new Map<string, number>();
  return {
    note({ id, url }: Target, settlement: Settlement): void {
      if (settlement.kind === 'returned') return;
      const { origin } = new URL(url);
      const before = failing.get(id);
      if (settlement.kind === 'delivered') {
        counts = { ...counts, delivered: counts.delivered + 1 };
        failing.delete(id);
        if (warned.delete(id)) log.info({ receiver: id, origin }, 'a receiver accepts webhooks again');
        return;
      }
      const { error } = settlement;
      counts = { ...counts, failed: counts.failed + 1 };
      failing.set(id, { receiver: id, origin, sinceMs: before?.sinceMs ?? nowMs(), error });
      const lastMs = warnedMs.get(id) ?? Number.NEGATIVE_INFINITY;
      if (warned.has(id) || performance.now() - lastMs < bounds.webhookLogPauseMs) return;
      warned.add(id);
      warnedMs.set(id, performance.now());
      log.warn({ receiver: id, origin, error }, 'a receiver does not accept webhooks');
    },
    /** Forgets receivers that the configuration no longer has. */
    keep(receivers: ReadonlyMap<string, unknown>): void {
      for (const each of [failing, warned, warnedMs])
        for (const id of each.keys()) if (!receivers.has(id)) each.delete(id);
    },
    state: (): SenderState => ({ attempts: counts, failing: Array.from(failing.values()) }),
  };
}
