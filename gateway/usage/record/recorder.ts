import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { networkOf } from '../../shared/addresses/address-ranges.ts';
import { hasGroups } from '../../shared/limits.ts';
import type { Decision, Limits } from '../../shared/model.ts';
import { withinDeadline } from '../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { packCounts } from '../store/counts.ts';
import type { Batch, RecordName, UsageStore } from '../store/usage-store.ts';
import { type Outcome, outcomeOf, outcomes } from '../tally.ts';
import { trialName } from '../trial.ts';
import { type UnsentCounts, type UnsentRecord, UnsentRoom } from '../unsent-counts.ts';
import type { UsageCalendar } from '../usage-calendar.ts';
import { countDeadSecrets, type DeadSecretUse, type LongUse } from './dead-secrets.ts';
import { type FailedCharge, KeyUsage } from './key-usage.ts';
import { type EndedRequest, OperationsUsage } from './operations-usage.ts';

/** Counts the outcomes of requests in the memory of this process, and adds the counts to the store every few seconds. */
export interface UsageRecorder {
  /** Counts a decided request of a key. `secret` has the first digits of the digest of the presented secret. */
  decided(keyId: string, decision: Decision, address: string, secret: string, trial?: DecidedTrial): void;
  ended(exchange: EndedExchange): void;
  /**
   * Returns the counts that each stored record may lack, in the order of `records`; undefined for a record without such
   * counts. A caller must read the record first. If a batch is sent between the read and this call, both results
   * contain the batch, and the batch number identifies the duplicate.
   */
  unsent(records: readonly RecordName[]): readonly (UnsentRecord | undefined)[];
  /**
   * Returns the time of the last request of each key that this process has counted recently. The index of active keys
   * may contain an older time.
   */
  lastSeen(): ReadonlyMap<string, number>;
  /** Returns the number of requests that were not recorded because the store was away for too long. */
  lost(): number;
  /** Sends all counts now. Returns whether the store has added all counts. Sends nothing to a server on which recording is paused. */
  send(): Promise<boolean>;
  /** Sends all counts that can be sent before the deadline. */
  close(): Promise<void>;
}

interface DecidedTrial {
  /** The limits of the trial that made `decision.trial`. */
  readonly limits: Limits;
  /** The cost of the request. If the decision has fewer units, the plan refuses the request with 403. */
  readonly cost: number;
}

export interface EndedExchange extends EndedRequest {
  /** The key for which the request was decided. The request also counts for the key's operations. */
  readonly keyId: string | undefined;
  /** Present if the request failed because of the gateway or the upstream, and was charged. */
  readonly failed?: FailedCharge | undefined;
  /** The name under which the refusal of the request is counted for its key and operation. */
  readonly countedAs?: string | undefined;
  /** The presented secret, if it is not valid for any address. */
  readonly unauthorized?: DeadSecretUse | undefined;
  /** The key and the client address, if the key does not allow this address. */
  readonly refusedAddress?: { readonly keyId: string; readonly address: string } | undefined;
}

/** The counts of one key or of all operations, and the batch that the store has not confirmed yet. */
interface Source {
  readonly counted: { readonly unsent: UnsentCounts; close(): void };
  recordOf(day: number): RecordName;
  batch: Batch | undefined;
  /** The numbers of decided and of ended requests since the last batch. */
  decided: number;
  ended: number;
  /** The number of flushes since the last batch in which the source had unsent counts. */
  quietRounds: number;
  /**
   * Batches that the store has confirmed recently. A reader may have read the stored record before these batches were
   * added to it.
   */
  confirmed: readonly { readonly batch: Batch; readonly atMs: number }[];
}

interface KeySource extends Source {
  readonly counted: KeyUsage;
  /** The time of the key's last request in the index of active keys. */
  notedMs: number;
  /** The day of the key's last batch. */
  day: number;
  /** The number of flushes since the last request. */
  idleRounds: number;
}

const outcomeIndex = Object.fromEntries(outcomes.map((outcome, index) => [outcome, index])) as Record<
  Outcome,
  number
>;

/**
 * The recorder sends the counts of a busy key once per `usageFlushIntervalMs`, and the counts of a quiet key once per
 * `usageQuietRounds` of these intervals. A key is quiet while fewer than `usageQuietRequestsMax` of its requests are
 * unsent. The keys are divided into slices, which are sent one after another during the interval. The keys of a slice
 * are usually on the same Redis server, because batches for the same server share a call. A failed batch is sent again
 * unchanged and under the same number, so the store adds it only once. When the store answers again, the recorder sends
 * the failed batch and newer counts immediately. The function is long because counting, sending and retrying share the
 * keys and their batches.
 */
export function createUsageRecorder({
  store,
  calendar,
  keptMs,
  allKeptMs,
  onNewDay,
  onLongUse,
  bounds,
}: {
  readonly store: UsageStore;
  readonly calendar: UsageCalendar;
  /** How long the record of a day is kept after that day. */
  readonly keptMs: number;
  /** How long the record of all requests is kept after its day, in ms. */
  readonly allKeptMs: number;
  /** Called with a key's id when the key sends requests on a new day. */
  readonly onNewDay?: (keyId: string) => void;
  /** Called when a secret that is not valid was used for an hour. */
  readonly onLongUse?: ((use: LongUse) => void) | undefined;
  readonly bounds: Pick<
    Bounds,
    | 'usageFlushIntervalMs'
    | 'usageSlicesPerFlush'
    | 'usageSlicesAtOnceMax'
    | 'usageQuietRequestsMax'
    | 'usageQuietRounds'
    | 'usageUnsentCountsMax'
    | 'usageOperationsPerKeyMax'
    | 'usageSecretsPerKeyMax'
    | 'usageNetworksPerKeyMax'
    | 'usageUpstreamsPerKeyMax'
    | 'usageTrialsPerKeyMax'
    | 'usageGroupsPerKeyMax'
    | 'usageDeadSecretsMax'
    | 'usageIdleRoundsMax'
    | 'usageKeysMax'
    | 'usageActiveKeysMax'
    | 'usageActiveNotedMs'
    | 'usageCloseTimeoutMs'
    | 'usageReadsPerTurnMax'
    | 'usageCallTimeoutMs'
    | 'readingCallTimeoutMs'
    | 'usageFieldsPerCallMax'
    | 'fleetFlushRecordsAtOnce'
    | 'fleetFlushRestFactor'
  >;
}): UsageRecorder {
  // The name of this process in batches. The name has 48 random bits, because a record drops the batches of a second
  // process with the same name.
  const sender = randomBytes(6).toString('base64url');
  const room = new UnsentRoom(bounds.usageUnsentCountsMax);
  const keys = new Map<string, KeySource>();
  const slices = Array.from({ length: bounds.usageSlicesPerFlush }, () => new Set<KeySource>());
  const counted = new OperationsUsage({ calendar, room });
  const countDead = countDeadSecrets({ calendar, unsent: counted.unsent, onLongUse, bounds });
  const operations: Source = {
    counted,
    recordOf: (day) => ({ kind: 'operations', day }),
    batch: undefined,
    decided: 0,
    ended: 0,
    quietRounds: 0,
    confirmed: [],
  };
  /** The key of the last counted request, cached because the next request often belongs to the same key. */
  let lastSource: KeySource | undefined;
  // Each process begins with another slice, because processes that start together would send to the same Redis server together.
  let nextSlice = Math.floor(Math.random() * slices.length);
  /** The number of keys that were added since the last early flush of a slice. */
  let keysAdded = 0;
  let batches = 0;
  let isNoting = false;
  /** The number of keys that the recorder may add to the index of active keys, counted at `countedMs`. */
  const mayNote = { keys: bounds.usageActiveKeysMax, countedMs: performance.now() };
  /** Sources of counts whose last write failed, in the order of their retries. */
  const failed = new Set<Source>();
  let isSendingFailed = false;
  const sliceMs = bounds.usageFlushIntervalMs / bounds.usageSlicesPerFlush;
  const startedMs = performance.now();
  /** The number of slices that the timer has flushed or skipped. */
  let slicesDone = 0;
  const timer = setInterval(flushDueSlices, sliceMs).unref();

  return {
    decided(keyId, decision, address, secret, trial) {
      const source = sourceOf(keyId);
      const { counted } = source;
      source.decided += 1;
      counted.decided(
        outcomeIndex[outcomeOf(decision)],
        decision.units,
        decision.rateLimit.nowMs,
        address,
        secret,
      );
      if (hasGroups(decision.rateLimit.windows)) counted.decidedInGroups(decision);
      if (decision.trial === undefined || trial === undefined) return;
      const isRefusedNow = decision.kind !== 'admitted' || decision.units < trial.cost;
      counted.decidedByTrial(trialName(trial.limits), outcomeIndex[decision.trial], isRefusedNow);
    },
    ended(exchange) {
      counted.ended(exchange);
      const { keyId, unauthorized, refusedAddress, operationId, atMs, status, failed, countedAs } = exchange;
      if (unauthorized !== undefined) countDead(atMs, unauthorized);
      if (unauthorized?.keyId !== undefined) {
        const source = sourceOf(unauthorized.keyId);
        source.decided += 1;
        source.counted.unauthorized(atMs, unauthorized.digestStart);
      }
      if (refusedAddress !== undefined) {
        const source = sourceOf(refusedAddress.keyId);
        source.decided += 1;
        source.counted.refusedAddress(atMs, networkOf(refusedAddress.address));
      }
      if (keyId === undefined) return;
      const source = sourceOf(keyId);
      source.ended += 1;
      source.counted.ended(operationId, atMs, status, countedAs);
      if (failed !== undefined) source.counted.failed(atMs, failed);
    },
    unsent: (records) => records.map(unsentOf),
    lastSeen() {
      const seen = [...keys].map(([keyId, { counted }]) => [keyId, counted.lastSeenMs] as const);
      return new Map(seen.filter(([, lastSeenMs]) => lastSeenMs > 0));
    },
    lost: () => room.lost,
    send: () =>
      sendEverything({
        atOnce: bounds.fleetFlushRecordsAtOnce,
        restFactor: bounds.fleetFlushRestFactor,
        isWanted: mayBeSent,
      }),
    async close() {
      clearInterval(timer);
      let isLate = false;
      await withinDeadline(
        sendEverything({ atOnce: bounds.usageReadsPerTurnMax, restFactor: 0, isWanted: () => !isLate }),
        bounds.usageCloseTimeoutMs,
        () => {
          isLate = true;
          return false;
        },
      );
    },
  };

  function unsentOf(record: RecordName): UnsentRecord | undefined {
    const source = record.kind === 'operations' ? operations : keys.get(record.keyId);
    if (source === undefined || record.kind === 'totals') return undefined;
    return { sender, ...unsentOn(record.day, source) };
  }

  /**
   * @param atOnce the number of sources that are sent at the same time
   * @param restFactor the pause before further sources are sent, in relation to the time for the last sources
   * @returns whether the store has added all counts
   */
  async function sendEverything({
    atOnce,
    restFactor,
    isWanted,
  }: {
    readonly atOnce: number;
    readonly restFactor: number;
    readonly isWanted: (source: Source) => boolean;
  }): Promise<boolean> {
    const sendIfWanted = (source: Source) => isWanted(source) && sendParts(source);
    let isSent = await sendIfWanted(operations);
    const all = slices.flatMap((slice) => [...slice]);
    for (let from = 0; from < all.length; from += atOnce) {
      const part = all.slice(from, from + atOnce);
      const beganMs = performance.now();
      const sent = await Promise.all(part.map(sendIfWanted));
      if (sent.includes(false)) isSent = false;
      const restMs = restFactor * (performance.now() - beganMs);
      if (restMs >= 1 && from + atOnce < all.length) await sleep(restMs, undefined, { ref: false });
      await noteActive(part);
    }
    return isSent;
  }

  function mayBeSent({ recordOf }: Source): boolean {
    return store.pausedBecause() === undefined || store.pausedBecause(recordOf(0)) === undefined;
  }

  function sourceOf(keyId: string): KeySource {
    if (lastSource?.counted.keyId === keyId) return lastSource;
    lastSource = keys.get(keyId) ?? addKey(keyId);
    return lastSource;
  }

  function addKey(keyId: string): KeySource {
    const source: KeySource = {
      counted: new KeyUsage(keyId, { calendar, room, bounds }),
      recordOf: (day) => ({ kind: 'day', keyId, day }),
      batch: undefined,
      decided: 0,
      ended: 0,
      quietRounds: 0,
      confirmed: [],
      notedMs: 0,
      day: 0,
      idleRounds: 0,
    };
    slices[Math.floor(store.placeOf(keyId) * slices.length)]?.add(source);
    keys.set(keyId, source);
    keysAdded += 1;
    if (keys.size > bounds.usageKeysMax && keysAdded >= bounds.usageKeysMax / slices.length) {
      keysAdded = 0;
      // The flush runs later, because it must not delay the current request.
      setImmediate(flushSlice, true);
    }
    return source;
  }

  /**
   * Flushes the slices whose time has come. The clock decides, because a timer that fires late would delay all later flushes. After a long
   * pause of the process, each call flushes a few of the late slices.
   */
  function flushDueSlices(): void {
    const due = Math.floor((performance.now() - startedMs) / sliceMs);
    slicesDone = Math.max(slicesDone, due - slices.length);
    for (let more = bounds.usageSlicesAtOnceMax; more > 0 && slicesDone < due; more--) {
      slicesDone += 1;
      flushSlice();
    }
  }

  /** @param isEarly whether there are too many keys, so that the counts of quiet keys are sent too */
  function flushSlice(isEarly = false): void {
    const slice = slices[nextSlice];
    void sendFailed();
    if (nextSlice === 0) {
      forgetConfirmed(operations);
      if (mayBeSent(operations)) void sendParts(operations);
    }
    nextSlice = (nextSlice + 1) % slices.length;
    const isAll = isEarly || room.isHalfFull;
    for (const source of slice ?? []) {
      forgetConfirmed(source);
      if (hasCounts(source)) {
        source.idleRounds = 0;
        if (!(isAll || isDue(source)) || !mayBeSent(source)) continue;
        void sendParts(source);
        noteDay(source);
        continue;
      }
      noteDay(source);
      source.idleRounds += 1;
      const idleMax = keys.size > bounds.usageKeysMax ? 0 : bounds.usageIdleRoundsMax;
      if (source.idleRounds <= idleMax || source.confirmed.length > 0) continue;
      slice?.delete(source);
      keys.delete(source.counted.keyId);
      if (source === lastSource) lastSource = undefined;
    }
    void noteActive([...(slice ?? [])]);
  }

  /** Called after the counts of earlier days are sent, because the totals of these days are computed from the stored records. */
  function noteDay(source: KeySource): void {
    const day = Math.floor(source.counted.lastSeenMs / calendar.dayMs);
    if (day !== source.day) onNewDay?.(source.counted.keyId);
    source.day = day;
  }

  function isDue(source: KeySource): boolean {
    source.quietRounds += 1;
    const isBusy = Math.max(source.decided, source.ended) >= bounds.usageQuietRequestsMax;
    return isBusy || source.batch !== undefined || source.quietRounds >= bounds.usageQuietRounds;
  }

  /**
   * Drops confirmed batches after the timeouts of a store call and of a call between threads. After both timeouts, every
   * read that began before the confirmation has ended.
   */
  function forgetConfirmed(source: Source): void {
    if (source.confirmed.length === 0) return;
    const sinceMs = performance.now() - bounds.usageCallTimeoutMs - bounds.readingCallTimeoutMs;
    source.confirmed = source.confirmed.filter(({ atMs }) => atMs >= sinceMs);
  }

  /**
   * Retries one of the sources whose last write failed. If this retry succeeds, many of the other sources are retried
   * immediately.
   */
  async function sendFailed(): Promise<void> {
    if (isSendingFailed || failed.size === 0) return;
    isSendingFailed = true;
    const [first, ...others] = failed.values().take(bounds.usageReadsPerTurnMax);
    const send = (source: Source) => mayBeSent(source) && sendParts(source);
    if (first !== undefined) {
      // The source moves to the end of the queue, because the Redis servers of other sources may be available.
      failed.delete(first);
      failed.add(first);
      if (await send(first)) await Promise.all(others.map(send));
    }
    isSendingFailed = false;
  }

  /**
   * Sends all counts of a source. The counts need several batches if they have too many fields or span two days, or if an
   * earlier batch has failed.
   *
   * @returns whether the store added all of them
   */
  async function sendParts(source: Source): Promise<boolean> {
    source.counted.close();
    source.decided = 0;
    source.ended = 0;
    source.quietRounds = 0;
    while (isUnsent(source)) {
      if (await sendNext(source)) continue;
      failed.add(source);
      return false;
    }
    failed.delete(source);
    return true;
  }

  /** Sends the unconfirmed batch, or a new batch with the counts of the earliest day. */
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

  function openBatch(source: Source): Batch | undefined {
    source.counted.close();
    const taken = source.counted.unsent.takeDay(bounds.usageFieldsPerCallMax);
    if (taken === undefined) return undefined;
    const { day } = taken;
    batches += 1;
    const fields = new Map([...taken.fields].map(([field, counts]) => [field, packCounts(counts)]));
    const record = source.recordOf(day);
    const expiresMs = (day + 1) * calendar.dayMs + (record.kind === 'operations' ? allKeptMs : keptMs);
    source.batch = { record, sender, number: batches, fields, expiresMs };
    return source.batch;
  }

  /**
   * Adds keys to the index of active keys. The index keeps `usageActiveKeysMax` keys, so the recorder adds at most this number of keys in
   * `usageActiveNotedMs`. In a large fleet, further keys would only replace keys that were just added. The recorder adds the other keys later.
   */
  async function noteActive(sources: readonly KeySource[]): Promise<void> {
    if (isNoting) return;
    const stale = sources
      .filter(({ counted: { lastSeenMs }, notedMs }) => lastSeenMs - notedMs > bounds.usageActiveNotedMs)
      .slice(0, Math.floor(countMayNote()));
    if (stale.length === 0) return;
    isNoting = true;
    mayNote.keys -= stale.length;
    const noted = stale.map(({ counted: { keyId, lastSeenMs } }) => ({ keyId, lastSeenMs }));
    if (await store.noteActive(noted)) {
      for (const [index, source] of stale.entries()) source.notedMs = noted[index]?.lastSeenMs ?? 0;
    }
    isNoting = false;
  }

  function countMayNote(): number {
    const { usageActiveKeysMax: max, usageActiveNotedMs: periodMs } = bounds;
    const nowMs = performance.now();
    const more = ((nowMs - mayNote.countedMs) * max) / Math.max(1, periodMs);
    mayNote.keys = Math.min(max, mayNote.keys + more);
    mayNote.countedMs = nowMs;
    return mayNote.keys;
  }
}

/** Returns the counts of a day that the store has not confirmed, or has confirmed only recently. */
function unsentOn(day: number, source: Source): Omit<UnsentRecord, 'sender'> {
  source.counted.close();
  const batches = [...source.confirmed.map(({ batch }) => batch), ...(source.batch ? [source.batch] : [])];
  const counted = [...(source.counted.unsent.of(day) ?? [])];
  return {
    batches: batches
      .filter((batch) => dayOf(batch) === day)
      .map(({ number, fields }) => ({ number, fields })),
    counted: new Map(counted.map(([field, counts]) => [field, packCounts(counts)])),
  };
}

function dayOf({ record }: Batch): number | undefined {
  return record.kind === 'totals' ? undefined : record.day;
}

function isUnsent({ counted, batch }: Source): boolean {
  return batch !== undefined || !counted.unsent.isEmpty;
}

/** Returns whether a source may have counts that the store has not confirmed. The function does not close the counts. */
function hasCounts(source: Source): boolean {
  return source.decided > 0 || source.ended > 0 || isUnsent(source);
}
