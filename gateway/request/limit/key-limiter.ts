import type { KnownChanges, QuotaCall, QuotaOutcome } from '../../quota/decide-key.ts';
import type { QuotaState } from '../../quota/hash.ts';
import type { Run } from '../../quota/runs.ts';
import type { BanPolicy, Decision, DecisionSource, Key, QuotaRules, StaleKey } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createActiveRequests } from './active-requests.ts';
import type { BanLog } from './ban-log.ts';
import { type DecidedTogether, decidedRuns, decisionAt } from './decision-at.ts';
import type { KeyLedger } from './key-ledger.ts';
import { rateLimitState } from './rate-limit-state.ts';
import type { QuotaStore } from './store/quota-store.ts';
import type { StoreClock } from './store/store-clock.ts';
import type { ThresholdReports } from './threshold-reports.ts';

/** The availability of the store. `StoreWatch` implements this interface for Redis. The memory store is always available. */
export interface StoreHealth {
  /** Resolves when the store was reached for the first time, or after a time limit. */
  readonly started: Promise<void>;
  /** Whether all servers are available, some of them, or none. The servers of a Redis Cluster can fail independently. */
  reach(): 'all' | 'some' | 'none';
  /** Returns the part of the store that contains the counts of a key. */
  partOf(keyId: string): StorePart;
  /** Groups calls by part of the store, in the order of the calls. */
  divide<Call extends { readonly keyId: string }>(
    calls: readonly Call[],
  ): readonly { readonly part: StorePart; readonly calls: readonly Call[] }[];
}

/** The availability of one part of the store. The limiter reports the outcome of each call to this object. */
export interface StorePart {
  available(): boolean;
  succeeded(): void;
  failed(reason: string): void;
}

type Unavailable = Extract<Decision, { kind: 'unavailable' }>;

/**
 * Decides the requests of valid keys. Requests of one key in one turn of the event loop form a batch, which becomes one call. A batch is a
 * list of runs. A run consists of consecutive requests with equal cost. All calls of a turn are sent in one write. If the store has just
 * refused a request of a key, further requests of this key are refused without a call.
 *
 * If `onFailure` is `local`, the process decides with the last known counts while the store does not reply. The requests of a call that
 * timed out may have been charged. A call that timed out is therefore not sent again, and its requests are not reported later. The store
 * never counts a request twice. If the store becomes unavailable during a call, the requests of the call may remain uncounted. The function
 * is long because each stage of a batch uses the same maps.
 */
export function createKeyLimiter(deps: {
  store: QuotaStore;
  /** The value of `source` in decisions of the store. */
  source: DecisionSource;
  health: StoreHealth;
  ledger: KeyLedger;
  clock: StoreClock;
  nowMs: () => number;
  onFailure: 'local' | 'refuse';
  onDecidedAlone: (requests: number) => void;
  /** Called when the store has an unusable value in place of a key's counts. */
  onUnusable: (keyId: string) => void;
  /** The time of the last leaked secret of the configuration that this process knows, epoch ms; 0 while there is none. */
  leaksReadMs: () => number;
  /** Receives the state of a key after each decision by the store or by this process. */
  bans: Pick<BanLog, 'observe'>;
  /** Receives each decision by the store or by this process. */
  thresholds: Pick<ThresholdReports, 'observe'>;
  bounds: Bounds;
}) {
  const { store, source, health, ledger, clock, nowMs, onFailure, bounds } = deps;
  const { windowsMs } = bounds;
  const active = createActiveRequests({ nowMs, bounds });
  /** Batches that wait for the reply to an earlier call of the same key, in order of arrival. */
  const waiting = new Map<string, Batch[]>();
  /** Keys whose next call is delayed by `bounds.crowdedPauseMs`, each with the batch that the store has just refused. */
  const paused = new Map<string, { readonly batch: Batch; readonly timer: NodeJS.Timeout }>();
  /**
   * The last used definition and rules of each key with a concurrency limit. A call that reports the end of requests needs the
   * definition and the rules.
   */
  const lastTerms = new Map<string, { readonly key: Key; readonly rules: QuotaRules }>();
  let turn: Batch[] = [];
  let openBatches = new Map<string, Batch>();
  /** Recent decisions on banned keys, by key id. When `bounds.banRepeatedMs` has passed since `toldFromMs`, a new map replaces this map. */
  let toldBans = new Map<
    string,
    {
      readonly decision: Decision;
      readonly units: number;
      readonly trial: Key['trial'];
      readonly untilMs: number;
    }
  >();
  let toldFromMs = 0;
  let onSettled: PromiseWithResolvers<void> | undefined;
  let decided = 0;
  let failed = 0;
  /** The number of reports of local decisions that are in progress. */
  let reports = 0;

  return {
    /** @param unitsInTrial the cost in the trial of the key's plan */
    decide(key: Key, rules: QuotaRules, units: number, unitsInTrial = units): Promise<Decision | StaleKey> {
      const trialUnits = key.trial === undefined || unitsInTrial === units ? undefined : unitsInTrial;
      const cost = { units, trialUnits };
      const open = openBatchOf(key);
      if (open !== undefined && canJoin(open, key, rules)) return join(open, cost);
      // If the key has an open batch, the request is not refused from memory, because earlier requests wait in the batch.
      const refused = open === undefined ? refuseFromMemory(key, rules.bans, cost) : undefined;
      return refused === undefined ? join(openBatch(key, rules, cost), cost) : Promise.resolve(refused);
    },
    /** Returns the local counts of a key. If `onFailure` is `refuse`, returns `unavailable`. Called while the store is unavailable. */
    readAlone(key: Key) {
      const storeNowMs = clock.nowMs();
      if (onFailure === 'refuse') return unavailable({ keyId: key.id, limits: key.limits }, storeNowMs);
      const state = ledger.lastSeen({ keyId: key.id, limits: key.limits }, storeNowMs);
      return { kind: 'known', state, nowMs: storeNowMs } as const;
    },
    /** Ends an admitted request of a key with a concurrency limit. */
    release(keyId: string): void {
      active.release(keyId);
      endPause(keyId);
      tellStore(keyId);
    },
    /** Renews the leases of keys whose requests last long. */
    renewLeases(): void {
      for (const keyId of active.toRenew()) tellStore(keyId);
    },
    /** Reports all requests in progress to a store that is available again. The store received no leases during the outage. */
    reportActive(): void {
      for (const keyId of active.keyIds()) tellStore(keyId);
    },
    /** Resolves when the store has replied to each report of requests in progress. */
    activeReported(): Promise<void> {
      if (!active.isSettled()) onSettled ??= Promise.withResolvers<void>();
      return onSettled?.promise ?? Promise.resolve();
    },
    /** Replaces the local counts of a key after an operator's change: a lifted ban, a reset, or a grant. */
    forget(keyId: string, state: Readonly<QuotaState>) {
      toldBans.delete(keyId);
      ledger.replace(keyId, state);
      deps.bans.observe(keyId, state, clock.nowMs());
    },
    /** The numbers of successful and failed calls to the store. */
    calls: () => ({ decided, failed }),
    report,
  };

  /** Returns the newest batch of a key if its call has not been sent. */
  function openBatchOf({ id, concurrent }: Key): Batch | undefined {
    const last = concurrent === undefined ? undefined : waiting.get(id)?.at(-1);
    return last ?? openBatches.get(id);
  }

  /** Whether a request can join a batch. A reload between two requests of a turn may change the limits. */
  function canJoin(batch: Batch, key: Key, { bans, thresholds }: QuotaRules): boolean {
    return (
      batch.limits === key.limits &&
      batch.trial === key.trial &&
      batch.changedMs === key.generation &&
      batch.leaksReadMs === leaksReadMsFor(key) &&
      batch.bans === bans &&
      batch.thresholds === thresholds &&
      batch.concurrent === key.concurrent &&
      batch.size < bounds.requestsPerCallMax
    );
  }

  /**
   * A key of the configuration changes between two reloads only if one of its secrets leaks. The time is read when the request has just been
   * authenticated, so a batch never contains a request that was authenticated before a leak and a request that was authenticated after it.
   */
  function leaksReadMsFor({ generation }: Key): number | undefined {
    return generation === undefined ? deps.leaksReadMs() || undefined : undefined;
  }

  function join(batch: Batch, cost: Cost): Promise<Decision | StaleKey> {
    const { units } = cost;
    const run = openRun(batch, cost);
    const at = batch.later?.length ?? 0;
    const index = run.requests;
    run.requests += 1;
    batch.size += 1;
    return batch.answer.promise.then((answer) =>
      answer.kind === 'decided'
        ? decisionAt(index, answer.runs[at] as DecidedTogether)
        : answer.kind === 'unavailable'
          ? { ...answer, units }
          : answer,
    );
  }

  function openBatch(key: Key, rules: QuotaRules, { units, trialUnits }: Cost): Batch {
    const batch: Batch = {
      keyId: key.id,
      limits: key.limits,
      trial: key.trial,
      changedMs: key.generation,
      leaksReadMs: leaksReadMsFor(key),
      bans: rules.bans,
      thresholds: rules.thresholds,
      concurrent: key.concurrent,
      units,
      trialUnits,
      requests: 0,
      later: undefined,
      size: 0,
      answer: Promise.withResolvers<Answer>(),
    };
    if (key.concurrent !== undefined) lastTerms.set(key.id, { key, rules });
    if (key.concurrent !== undefined && active.isAsking(key.id)) {
      const before = waiting.get(key.id);
      if (before === undefined) waiting.set(key.id, [batch]);
      else {
        before.push(batch);
        endPause(key.id);
      }
    } else sendAtTurnEnd(batch);
    return batch;
  }

  function sendAtTurnEnd(batch: Batch): void {
    if (batch.concurrent !== undefined) active.markAsking(batch.keyId);
    if (turn.length === 0) setImmediate(endTurn);
    turn.push(batch);
    openBatches.set(batch.keyId, batch);
  }

  function refuseFromMemory(key: Key, bans: BanPolicy, cost: Cost): Decision | undefined {
    const { id: keyId, limits, trial, concurrent } = key;
    const { units } = cost;
    const storeNowMs = clock.nowMs();
    const repeated = repeatBan(keyId, { units, trial }, storeNowMs);
    if (repeated !== undefined) return repeated;
    if (concurrent !== undefined && active.of(keyId) >= concurrent) {
      const state = ledger.lastSeen({ keyId, limits }, storeNowMs);
      if (state.bannedUntilMs <= storeNowMs) {
        const none = { admitted: 0, refused: 0, banned: 0, crowded: 1 };
        const tried = trial && ledger.lastSeenTrial({ keyId, limits, trial }, storeNowMs);
        const isTrialBanned = tried !== undefined && tried.bannedUntilMs > storeNowMs;
        const trialOnly = isTrialBanned ? { ...none, banned: 1, crowded: 0 } : none;
        const ofTrial = tried && { ...trialOnly, state: tried };
        const outcome = { nowMs: storeNowMs, ...none, state, ...(ofTrial && { trial: ofTrial }) };
        return onlyDecision(key, cost, outcome);
      }
    }
    const outcome = ledger.refuse({ keyId, limits, trial, bans }, cost, storeNowMs);
    if (outcome === undefined) return undefined;
    const decision = onlyDecision(key, cost, outcome);
    // A refusal by a window of the trial counts towards the next ban of the trial, so it is not repeated.
    if (decision.kind === 'banned' && (decision.trial ?? 'banned') === 'banned') {
      const { state, trial: ofTrial } = outcome;
      const untilMs = Math.min(state.bannedUntilMs, ofTrial?.state.bannedUntilMs ?? Number.POSITIVE_INFINITY);
      toldBans.set(keyId, { decision, units, trial, untilMs });
    }
    return decision;
  }

  /** Returns the decision on a single request. */
  function onlyDecision({ limits, trial }: Key, cost: Cost, outcome: QuotaOutcome): Decision {
    const [run] = decidedRuns({ requests: 1, ...cost }, outcome, { source, limits, trial, windowsMs });
    return decisionAt(0, run as DecidedTogether);
  }

  /**
   * Repeats the previous decision on a banned key for a short time. The decision can be repeated because requests during a ban are not
   * counted. If the plan has a trial, the trial has banned the key too.
   */
  function repeatBan(
    keyId: string,
    { units, trial }: { readonly units: number; readonly trial: Key['trial'] },
    storeNowMs: number,
  ): Decision | undefined {
    if (Math.abs(storeNowMs - toldFromMs) >= bounds.banRepeatedMs) {
      toldBans = new Map();
      toldFromMs = storeNowMs;
    }
    const told = toldBans.get(keyId);
    const isSame = told?.units === units && told.trial === trial;
    return isSame && storeNowMs < told.untilMs ? told.decision : undefined;
  }

  function endTurn(): void {
    const batches = turn;
    turn = [];
    // A new Map replaces the old Map, because a cleared Map can keep memory in use; see `renewed-map.ts`.
    openBatches = new Map();
    if (health.reach() === 'all') decideTurn(batches);
    else void health.started.then(() => decideTurn(batches));
  }

  /** Sends the batches of each part of the store separately, so that a server that hangs does not delay keys of other servers. */
  function decideTurn(batches: readonly Batch[]): void {
    try {
      for (const { part, calls } of health.divide(batches)) {
        decidePart(part, calls).catch((error: unknown) => fail(calls, error));
      }
    } catch (error) {
      fail(batches, error);
    }
  }

  function fail(batches: readonly Batch[], error: unknown): void {
    for (const batch of batches) {
      served(batch, 0, false);
      batch.answer.reject(error);
    }
  }

  async function decidePart(part: StorePart, batches: readonly Batch[]): Promise<void> {
    if (!part.available()) {
      for (const batch of batches) answerAlone(batch, false);
      return;
    }
    const sentMs = nowMs();
    const calls = batches.map(callOf);
    const replies = await send(part, calls, sentMs);
    for (const [index, batch] of batches.entries()) {
      const reply = replies[index];
      if (reply?.kind === 'decided') {
        const { admitted, crowded = 0 } = reply.outcome;
        if (admitted === 0 && crowded > 0) beginPause(batch);
        else served(batch, admitted, true);
        resolve(batch, reply.outcome, source);
      } else if (reply?.kind === 'stale') {
        served(batch, 0, false);
        batch.answer.resolve(reply);
      } else answerAlone(batch, reply?.mayHaveRun ?? true);
    }
  }

  function callOf(batch: Batch): QuotaCall {
    const call = ledger.openCall(batch, batch, batch);
    const { keyId, concurrent } = batch;
    return concurrent === undefined ? call : { ...call, concurrency: active.begin(keyId, concurrent) };
  }

  /** Delays the next call of a key whose requests the store has just refused. Further requests wait in a batch. */
  function beginPause(batch: Batch): void {
    const { keyId } = batch;
    // If several batches wait, no further request can join the first batch. A delay of its call would have no benefit.
    if ((waiting.get(keyId)?.length ?? 0) > 1) served(batch, 0, true);
    else paused.set(keyId, { batch, timer: setTimeout(() => endPause(keyId), bounds.crowdedPauseMs) });
  }

  function endPause(keyId: string): void {
    const pause = paused.get(keyId);
    if (pause === undefined) return;
    clearTimeout(pause.timer);
    paused.delete(keyId);
    served(pause.batch, 0, true);
  }

  /** Ends the call of a batch, and sends the next call of the same key. Does nothing for a key without a concurrency limit. */
  function served(batch: Batch, admitted: number, stored: boolean): void {
    if (batch.concurrent === undefined) return;
    const { keyId } = batch;
    const mustTell = active.end(keyId, admitted, stored);
    const next = waiting.get(keyId)?.shift();
    if (waiting.get(keyId)?.length === 0) waiting.delete(keyId);
    if (next !== undefined) sendAtTurnEnd(next);
    else if (mustTell) tellStore(keyId);
    if (!active.has(keyId)) lastTerms.delete(keyId);
    if (onSettled !== undefined && active.isSettled()) onSettled.resolve();
  }

  /**
   * Reports to the store how many requests of a key this process serves. Does nothing if an open batch or call of the key already reports
   * the number.
   */
  function tellStore(keyId: string): void {
    const terms = lastTerms.get(keyId);
    if (terms === undefined || active.isAsking(keyId)) return;
    // No request waits for the reply to this report, so a failure needs no handling here.
    openBatch(terms.key, terms.rules, { units: 1 }).answer.promise.catch(() => {});
  }

  async function send(part: StorePart, calls: readonly QuotaCall[], sentMs: number) {
    const replies = await store.decide(calls);
    let failure: string | undefined;
    for (const [index, call] of calls.entries()) {
      const reply = replies[index];
      if (reply?.kind === 'decided') {
        decided += 1;
        clock.observe(sentMs, reply.outcome.nowMs);
        ledger.settle(call, reply.outcome);
        deps.bans.observe(call.keyId, reply.outcome.state, reply.outcome.nowMs);
        deps.thresholds.observe(call.keyId, reply.outcome, source);
      } else if (reply?.kind === 'stale') {
        decided += 1;
        ledger.giveUp(call, false);
      } else {
        failed += 1;
        if (reply?.keyOnly) deps.onUnusable(call.keyId);
        else failure = reply?.reason ?? 'no reply';
        ledger.giveUp(call, reply?.mayHaveRun ?? true);
      }
    }
    if (failure === undefined) part.succeeded();
    else part.failed(failure);
    return replies;
  }

  function answerAlone(batch: Batch, mayBeCharged: boolean): void {
    const storeNowMs = clock.nowMs();
    if (onFailure === 'refuse') {
      served(batch, 0, false);
      batch.answer.resolve(unavailable(batch, storeNowMs));
      return;
    }
    const slots = batch.concurrent && batch.concurrent - active.of(batch.keyId);
    const outcome = ledger.decideAlone(batch, batch, storeNowMs, mayBeCharged, slots);
    served(batch, outcome.admitted, false);
    deps.bans.observe(batch.keyId, outcome.state, storeNowMs);
    deps.thresholds.observe(batch.keyId, outcome, 'local');
    deps.onDecidedAlone(batch.size);
    resolve(batch, outcome, 'local');
  }

  function resolve(batch: Batch, outcome: QuotaOutcome, source: DecisionSource): void {
    const terms = { source, limits: batch.limits, trial: batch.trial, windowsMs };
    batch.answer.resolve({ kind: 'decided', runs: decidedRuns(batch, outcome, terms) });
  }

  function unavailable(terms: Pick<Batch, 'keyId' | 'limits'>, storeNowMs: number): Unavailable {
    const { limits } = terms;
    const counts = ledger.lastSeen(terms, storeNowMs);
    const rateLimit = rateLimitState(counts, { limits, windowsMs, nowMs: storeNowMs });
    const retryAtMs = storeNowMs + Math.ceil(bounds.storeProbeIntervalMs / 1000) * 1000;
    return { kind: 'unavailable', units: 0, rateLimit, source: 'local', retryAtMs };
  }

  /**
   * Sends the unsent local decisions to the store. The loop stops when the store fails.
   *
   * @returns whether the store has replied to every call
   */
  async function report(): Promise<boolean> {
    reports += 1;
    const isSent = await sendReports().finally(() => {
      reports -= 1;
    });
    return isSent && reports === 0;
  }

  async function sendReports(): Promise<boolean> {
    for (let reach = health.reach(); reach !== 'none'; reach = health.reach()) {
      const isThere = reach === 'all' ? undefined : (keyId: string) => health.partOf(keyId).available();
      const calls = ledger.openReports(bounds.keysPerReportMax, isThere);
      if (calls.length === 0) return reach === 'all';
      const sent = health.divide(calls).map((each) => send(each.part, each.calls, nowMs()));
      const replies = await Promise.all(sent);
      if (replies.some((ofPart) => ofPart.some((reply) => reply.kind === 'failed'))) return false;
    }
    return false;
  }
}

/** Returns the last run of a batch, or starts a new run if the last run has another cost. */
function openRun(batch: Batch, { units, trialUnits }: Cost): OpenRun {
  const { later } = batch;
  const last = later?.at(-1) ?? batch;
  if (last.units === units && last.trialUnits === trialUnits) return last;
  const run = { units, trialUnits, requests: 0 };
  if (later === undefined) batch.later = [run];
  else later.push(run);
  return run;
}

/** The cost of one request in the plan and in the trial. */
type Cost = Omit<Run, 'requests'>;

interface OpenRun extends Run {
  requests: number;
}

/** Requests of one key with the same limits, in one turn of the event loop. The object itself is the first run of the batch. */
interface Batch extends OpenRun, KnownChanges {
  readonly keyId: string;
  readonly limits: Key['limits'];
  readonly trial: Key['trial'];
  readonly bans: BanPolicy;
  readonly thresholds: readonly number[] | undefined;
  readonly concurrent: number | undefined;
  later: OpenRun[] | undefined;
  /** The number of requests in all runs. */
  size: number;
  readonly answer: PromiseWithResolvers<Answer>;
}

type Answer =
  | { readonly kind: 'decided'; readonly runs: readonly DecidedTogether[] }
  | Unavailable
  | StaleKey;
