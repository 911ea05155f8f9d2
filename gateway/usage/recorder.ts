import { randomBytes } from 'node:crypto';
import type { Decision } from '../shared/model.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { KeyUsage } from './key-usage.ts';
import { type EndedRequest, OperationsUsage } from './operations-usage.ts';
import { packCounts } from './store/counts.ts';
import type { Batch, RecordName, UsageStore } from './store/usage-store.ts';
import { type Outcome, outcomeOf, outcomes } from './tally.ts';
import { type UnsentCounts, type UnsentRecord, UnsentRoom } from './unsent-counts.ts';
import type { UsageCalendar } from './usage-calendar.ts';

/** Counts what becomes of requests, in this process's memory, and adds it to the store every few seconds. */
export interface UsageRecorder {
  /** A request of a key was decided; `secret` is the beginning of the digest of the secret that it presented. */
  decided(keyId: string, decision: Decision, address: string, secret: string): void;
  /** An exchange is over. */
  ended(exchange: EndedExchange): void;
  /**
   * What this process has counted of each record and the store may not have, in their order; undefined where that is nothing.
   * Ask when the record has been read: what is sent in between is then in both, and told apart by its number.
   */
  unsent(records: readonly RecordName[]): readonly (UnsentRecord | undefined)[];
  /** The keys that this process has counted lately, with the instant of their last request: the index may have an older one. */
  lastSeen(): ReadonlyMap<string, number>;
  /** Requests that are in no record, because the store was away for too long. */
  lost(): number;
  /** Sends everything that can be sent before the deadline. */
  close(): Promise<void>;
}

export interface EndedExchange extends EndedRequest {
  /** Set where a key's limits were decided: its operations are counted too. */
  readonly keyId: string | undefined;
  /** The secret that was presented is not valid; absent, too, when it is no key's. */
  readonly unauthorized?: { readonly keyId: string; readonly digestStart: string } | undefined;
}

/** What is counted of one key or of all operations, and its batch that the store has not confirmed yet. */
interface Source {
  readonly counted: { readonly unsent: UnsentCounts; close(): void };
  recordOf(day: number): RecordName;
  batch: Batch | undefined;
  /** Batches that the store has confirmed lately, and when: whoever reads may have a copy of the record from before them. */
  confirmed: readonly { readonly batch: Batch; readonly atMs: number }[];
}

interface KeySource extends Source {
  readonly counted: KeyUsage;
  /** When the index of active keys was told last. */
  notedMs: number;
  /** The day of its last batch. */
  day: number;
  idleRounds: number;
}

const outcomeIndex = Object.fromEntries(outcomes.map((outcome, index) => [outcome, index])) as Record<
  Outcome,
  number
>;

/**
 * Each key is sent once in `usageFlushIntervalMs`, and the keys are spread over that time: a turn of the event loop sends a
 * part of them. The batch of a call that failed is sent again as it was, under the same number, so nothing is added twice.
 * It is sent as soon as the store answers, and what was counted meanwhile follows at once: the next round would be too late
 * for other processes, which show a request after one round at most.
 */
export function createUsageRecorder({
  store,
  calendar,
  keptMs,
  onNewDay,
  bounds,
}: {
  readonly store: UsageStore;
  readonly calendar: UsageCalendar;
  /** How long the record of a day is kept after that day. */
  readonly keptMs: number;
  /** Called with each key that was counted on another day than before. */
  readonly onNewDay?: (keyId: string) => void;
  readonly bounds: Pick<
    Bounds,
    | 'usageFlushIntervalMs'
    | 'usageSlicesPerFlush'
    | 'usageUnsentCountsMax'
    | 'usageOperationsPerKeyMax'
    | 'usageSecretsPerKeyMax'
    | 'usageIdleRoundsMax'
    | 'usageKeysMax'
    | 'usageActiveNotedMs'
    | 'usageCloseTimeoutMs'
    | 'usageReadsPerTurnMax'
    | 'usageCallTimeoutMs'
    | 'readingCallTimeoutMs'
    | 'usageFieldsPerCallMax'
  >;
}): UsageRecorder {
  // 48 bits: of two processes with the same one, a record would drop what the later one sends.
  const sender = randomBytes(6).toString('base64url');
  const room = new UnsentRoom(bounds.usageUnsentCountsMax);
  const keys = new Map<string, KeySource>();
  const slices = Array.from({ length: bounds.usageSlicesPerFlush }, () => new Set<KeySource>());
  const counted = new OperationsUsage({ calendar, room });
  const operations: Source = {
    counted,
    recordOf: (day) => ({ kind: 'operations', day }),
    batch: undefined,
    confirmed: [],
  };
  /** Mostly the next request is of the same key, or the same request ends. */
  let lastSource: KeySource | undefined;
  let nextSlice = 0;
  /** Keys that came since a slice was flushed ahead of its time. */
  let keysAdded = 0;
  let batches = 0;
  let isNoting = false;
  /** Sources whose last call failed, in the order in which they are tried again. */
  const failed = new Set<Source>();
  let isSendingFailed = false;
  const timer = setInterval(flushSlice, bounds.usageFlushIntervalMs / bounds.usageSlicesPerFlush).unref();

  return {
    decided(keyId, decision, address, secret) {
      sourceOf(keyId).counted.decided(
        outcomeIndex[outcomeOf(decision)],
        decision.kind === 'unavailable' ? 1 : decision.units,
        decision.rateLimit.nowMs,
        address,
        secret,
      );
    },
    ended(exchange) {
      counted.ended(exchange);
      const { keyId, unauthorized, operationId, atMs, status } = exchange;
      if (unauthorized !== undefined)
        sourceOf(unauthorized.keyId).counted.unauthorized(atMs, unauthorized.digestStart);
      if (keyId === undefined) return;
      sourceOf(keyId).counted.ended(operationId, atMs, status);
    },
    unsent: (records) => records.map(unsentOf),
    lastSeen() {
      const seen = [...keys].map(([keyId, { counted }]) => [keyId, counted.lastSeenMs] as const);
      return new Map(seen.filter(([, lastSeenMs]) => lastSeenMs > 0));
    },
    lost: () => room.lost,
    async close() {
      clearInterval(timer);
      let isLate = false;
      await withinDeadline(
        sendEverything(() => isLate),
        bounds.usageCloseTimeoutMs,
        () => {
          isLate = true;
        },
      );
    },
  };

  function unsentOf(record: RecordName): UnsentRecord | undefined {
    const source = record.kind === 'operations' ? operations : keys.get(record.keyId);
    if (source === undefined || record.kind === 'totals') return undefined;
    source.counted.close();
    const batches = [...source.confirmed.map(({ batch }) => batch), ...(source.batch ? [source.batch] : [])];
    const counted = [...(source.counted.unsent.of(record.day) ?? [])];
    return {
      sender,
      batches: batches
        .filter((batch) => dayOf(batch) === record.day)
        .map(({ number, fields }) => ({ number, fields })),
      counted: new Map(counted.map(([field, counts]) => [field, packCounts(counts)])),
    };
  }

  async function sendEverything(isLate: () => boolean): Promise<void> {
    const all = [operations, ...keys.values()];
    for (let from = 0; from < all.length && !isLate(); from += bounds.usageReadsPerTurnMax) {
      await Promise.all(all.slice(from, from + bounds.usageReadsPerTurnMax).map(sendAll));
    }
    await noteActive([...keys.values()]);
  }

  function sourceOf(keyId: string): KeySource {
    if (lastSource?.counted.keyId === keyId) return lastSource;
    lastSource = keys.get(keyId) ?? addKey(keyId);
    return lastSource;
  }

  function addKey(keyId: string): KeySource {
    const source: KeySource = {
      counted: new KeyUsage(keyId, {
        calendar,
        room,
        operationsMax: bounds.usageOperationsPerKeyMax,
        secretsMax: bounds.usageSecretsPerKeyMax,
      }),
      recordOf: (day) => ({ kind: 'day', keyId, day }),
      batch: undefined,
      confirmed: [],
      notedMs: 0,
      day: 0,
      idleRounds: 0,
    };
    slices[keys.size % slices.length]?.add(source);
    keys.set(keyId, source);
    keysAdded += 1;
    if (keys.size > bounds.usageKeysMax && keysAdded >= bounds.usageKeysMax / slices.length) {
      keysAdded = 0;
      // Not within the request that is being counted.
      setImmediate(flushSlice);
    }
    return source;
  }

  function flushSlice(): void {
    const isPaused = store.pausedBecause() !== undefined;
    const mayBeSent = ({ recordOf }: Source) => !isPaused || store.pausedBecause(recordOf(0)) === undefined;
    const slice = slices[nextSlice];
    void sendFailed(mayBeSent);
    if (nextSlice === 0) {
      forgetConfirmed(operations);
      if (mayBeSent(operations)) void sendParts(operations);
    }
    nextSlice = (nextSlice + 1) % slices.length;
    for (const source of slice ?? []) {
      forgetConfirmed(source);
      source.counted.close();
      if (isUnsent(source)) {
        if (!mayBeSent(source)) continue;
        source.idleRounds = 0;
        void sendParts(source);
        const day = Math.floor(source.counted.lastSeenMs / calendar.dayMs);
        if (day !== source.day) onNewDay?.(source.counted.keyId);
        source.day = day;
        continue;
      }
      source.idleRounds += 1;
      const idleMax = keys.size > bounds.usageKeysMax ? 0 : bounds.usageIdleRoundsMax;
      if (source.idleRounds <= idleMax || source.confirmed.length > 0) continue;
      slice?.delete(source);
      keys.delete(source.counted.keyId);
      if (source === lastSource) lastSource = undefined;
    }
    void noteActive([...(slice ?? [])]);
  }

  /** A read that began before a batch was confirmed has ended when a call, and the question of another thread, may have taken no longer. */
  function forgetConfirmed(source: Source): void {
    if (source.confirmed.length === 0) return;
    const sinceMs = performance.now() - bounds.usageCallTimeoutMs - bounds.readingCallTimeoutMs;
    source.confirmed = source.confirmed.filter(({ atMs }) => atMs >= sinceMs);
  }

  /** One source in each turn until the store answers, and then many at once. */
  async function sendFailed(mayBeSent: (source: Source) => boolean): Promise<void> {
    if (isSendingFailed || failed.size === 0) return;
    isSendingFailed = true;
    const [first, ...others] = failed.values().take(bounds.usageReadsPerTurnMax);
    const send = (source: Source) => mayBeSent(source) && sendParts(source);
    if (first !== undefined) {
      // It goes behind the others, since it may be the only one whose server is away or almost full.
      failed.delete(first);
      failed.add(first);
      if (await send(first)) await Promise.all(others.map(send));
    }
    isSendingFailed = false;
  }

  /**
   * Several batches where there are more fields than one takes, two days, or one that failed and what was counted meanwhile.
   *
   * @returns whether all was added
   */
  async function sendParts(source: Source): Promise<boolean> {
    source.counted.close();
    while (isUnsent(source)) {
      if (await sendNext(source)) continue;
      failed.add(source);
      return false;
    }
    failed.delete(source);
    return true;
  }

  /** One batch: the one that was not confirmed, or else what was counted of the earliest day. */
  async function sendNext(source: Source): Promise<boolean> {
    const batch = source.batch ?? openBatch(source);
    if (batch === undefined) return false;
    if ((await store.add(batch)) === 'failed') return false;
    if (source.batch !== batch) return true;
    source.batch = undefined;
    source.confirmed = [...source.confirmed, { batch, atMs: performance.now() }];
    for (const packed of batch.fields.values()) room.give(packed.length / 2);
    return true;
  }

  async function sendAll(source: Source): Promise<void> {
    source.counted.close();
    while (await sendNext(source));
  }

  function openBatch(source: Source): Batch | undefined {
    source.counted.close();
    const taken = source.counted.unsent.takeDay(bounds.usageFieldsPerCallMax);
    if (taken === undefined) return undefined;
    const { day } = taken;
    batches += 1;
    const fields = new Map([...taken.fields].map(([field, counts]) => [field, packCounts(counts)]));
    const expiresMs = (day + 1) * calendar.dayMs + keptMs;
    source.batch = { record: source.recordOf(day), sender, number: batches, fields, expiresMs };
    return source.batch;
  }

  async function noteActive(sources: readonly KeySource[]): Promise<void> {
    if (isNoting) return;
    const stale = sources.filter(
      ({ counted: { lastSeenMs }, notedMs }) => lastSeenMs - notedMs > bounds.usageActiveNotedMs,
    );
    if (stale.length === 0) return;
    isNoting = true;
    const told = stale.map(({ counted: { keyId, lastSeenMs } }) => ({ keyId, lastSeenMs }));
    if (await store.noteActive(told)) {
      for (const [index, source] of stale.entries()) source.notedMs = told[index]?.lastSeenMs ?? 0;
    }
    isNoting = false;
  }
}

function dayOf({ record }: Batch): number | undefined {
  return record.kind === 'totals' ? undefined : record.day;
}

function isUnsent({ counted, batch }: Source): boolean {
  return batch !== undefined || !counted.unsent.isEmpty;
}
