import type { BanPolicy, Decision, DecisionSource, Key, StaleKey } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { BanLog } from './ban-log.ts';
import { type DecidedTogether, decisionAt } from './decision-at.ts';
import type { KeyLedger } from './key-ledger.ts';
import { rateLimitState } from './rate-limit-state.ts';
import type { QuotaCall, QuotaState } from './store/decide-quota.ts';
import type { QuotaStore } from './store/quota-store.ts';
import type { StoreClock } from './store/store-clock.ts';

/** Whether the store can be asked. `StoreWatch` is one; memory is always there. */
export interface StoreHealth {
  /** Settles once the store was reached, or was not for too long. */
  readonly started: Promise<void>;
  /** How much of it is there: in a Redis Cluster each server can be away on its own. */
  reach(): 'all' | 'some' | 'none';
  /** The part that counts a key. */
  partOf(keyId: string): StorePart;
  /** Divides calls by the part that counts their keys, each in the order of the calls. */
  divide<Call extends { readonly keyId: string }>(
    calls: readonly Call[],
  ): readonly { readonly part: StorePart; readonly calls: readonly Call[] }[];
}

/** Whether a part of the store can be asked, and a place to say how it went. */
export interface StorePart {
  available(): boolean;
  succeeded(): void;
  failed(reason: string): void;
}

export interface KeyLimiter {
  decide(key: Key, bans: BanPolicy, units: number): Promise<Decision | StaleKey>;
  /** What this process knows of a key while the store is away, or `unavailable` if it then decides nothing. */
  readAlone(key: Key): KnownAlone | Unavailable;
  /** Somebody lifted the key's ban, reset it, or changed its grant: nothing that was told before holds. */
  forget(keyId: string, state: Readonly<QuotaState>): void;
  /** Calls to the store so far. */
  calls(): { readonly decided: number; readonly failed: number };
  /** Sends what was decided alone and not sent yet; stops when the store fails. */
  report(): Promise<void>;
}

export interface KnownAlone {
  readonly kind: 'known';
  readonly state: Readonly<QuotaState>;
  /** On the store's clock. */
  readonly nowMs: number;
}

type Unavailable = Extract<Decision, { kind: 'unavailable' }>;

/** What it bounds, as in `timeouts-and-sizes.ts`. */
export type KeyLimiterBounds = Pick<
  Bounds,
  'banRepeatedMs' | 'storeProbeIntervalMs' | 'keysPerReportMax' | 'requestsPerCallMax' | 'windowsMs'
>;

/**
 * Decides the requests of valid keys. Those of one key in one turn of the event loop are decided together, as long as each
 * costs what the one before did: so they are decided in the order in which they arrived, whatever they cost. All that
 * a turn asks the store leaves in one write. A key that the store has just refused is refused without asking it again.
 *
 * When the store does not reply, `onFailure: local` decides on the counts last seen. A call that timed out may have been
 * charged, so it is not sent again, and its requests are not reported later. At worst the store misses the requests of
 * the calls that were open when it went away; it counts none twice.
 */
export function createKeyLimiter(deps: {
  store: QuotaStore;
  /** What a decision of the store rests on. */
  source: DecisionSource;
  health: StoreHealth;
  ledger: KeyLedger;
  clock: StoreClock;
  nowMs: () => number;
  onFailure: 'local' | 'refuse';
  onDecidedAlone: (requests: number) => void;
  /** Under the key's name in the store lies what the store cannot use. */
  onUnusable: (keyId: string) => void;
  /** Hears of every state of a key that was decided, by the store or alone. */
  bans: Pick<BanLog, 'observe'>;
  bounds: KeyLimiterBounds;
}): KeyLimiter {
  const { store, source, health, ledger, clock, nowMs, onFailure, bounds } = deps;
  const { windowsMs } = bounds;
  let turn: Batch[] = [];
  let openBatches = new Map<string, Batch>();
  /** What banned keys were told, on the store's clock since `toldFromMs`. */
  let toldBans = new Map<
    string,
    { readonly decision: Decision; readonly units: number; readonly untilMs: number }
  >();
  let toldFromMs = 0;
  let decided = 0;
  let failed = 0;

  return {
    decide(key, bans, units) {
      const open = openBatches.get(key.id);
      if (open !== undefined && canJoin(open, key, bans, units)) return join(open);
      // While a batch of this key on other terms is open, this request must be decided after it, in order of arrival. So
      // a refusal from memory, which would come first, is only possible without one.
      const refused = open === undefined ? refuseFromMemory(key, bans, units) : undefined;
      return refused === undefined ? join(openBatch(key, bans, units)) : Promise.resolve(refused);
    },
    readAlone(key) {
      const storeNowMs = clock.nowMs();
      if (onFailure === 'refuse') return unavailable({ keyId: key.id, limits: key.limits }, storeNowMs);
      const state = ledger.lastSeen({ keyId: key.id, limits: key.limits }, storeNowMs);
      return { kind: 'known', state, nowMs: storeNowMs };
    },
    forget(keyId, state) {
      toldBans.delete(keyId);
      ledger.replace(keyId, state);
      deps.bans.observe(keyId, state, clock.nowMs());
    },
    calls: () => ({ decided, failed }),
    report,
  };

  /** A reload may give two requests of one key and turn different terms: each is decided on its own. */
  function canJoin(batch: Batch, key: Key, bans: BanPolicy, units: number): boolean {
    return (
      batch.units === units &&
      batch.limits === key.limits &&
      batch.generation === key.generation &&
      batch.bans === bans &&
      batch.requests < bounds.requestsPerCallMax
    );
  }

  function join(batch: Batch): Promise<Decision | StaleKey> {
    const index = batch.requests;
    batch.requests += 1;
    return batch.answer.promise.then((answer) =>
      answer.kind === 'decided' ? decisionAt(index, answer.together) : answer,
    );
  }

  function openBatch(key: Key, bans: BanPolicy, units: number): Batch {
    const batch: Batch = {
      keyId: key.id,
      limits: key.limits,
      generation: key.generation,
      bans,
      units,
      requests: 0,
      answer: Promise.withResolvers<Answer>(),
    };
    if (turn.length === 0) setImmediate(endTurn);
    turn.push(batch);
    openBatches.set(key.id, batch);
    return batch;
  }

  function refuseFromMemory(
    { id: keyId, limits }: Key,
    bans: BanPolicy,
    units: number,
  ): Decision | undefined {
    const storeNowMs = clock.nowMs();
    const repeated = repeatBan(keyId, units, storeNowMs);
    if (repeated !== undefined) return repeated;
    const outcome = ledger.refuse({ keyId, limits, bans }, units, storeNowMs);
    if (outcome === undefined) return undefined;
    const decision = decisionAt(0, { outcome, source, units, limits, windowsMs });
    if (decision.kind === 'banned')
      toldBans.set(keyId, { decision, units, untilMs: outcome.state.bannedUntilMs });
    return decision;
  }

  /** A banned key that floods is told the same for a moment; nothing counts its requests. */
  function repeatBan(keyId: string, units: number, storeNowMs: number): Decision | undefined {
    if (Math.abs(storeNowMs - toldFromMs) >= bounds.banRepeatedMs) {
      toldBans = new Map();
      toldFromMs = storeNowMs;
    }
    const told = toldBans.get(keyId);
    return told?.units === units && storeNowMs < told.untilMs ? told.decision : undefined;
  }

  function endTurn(): void {
    const batches = turn;
    turn = [];
    // Not `clear`: `renewed-map.ts` says why.
    openBatches = new Map();
    if (health.reach() === 'all') decideTurn(batches);
    else void health.started.then(() => decideTurn(batches));
  }

  /** Each part decides on its own: keys of a server that is silent do not hold up those of others. */
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
    for (const batch of batches) batch.answer.reject(error);
  }

  async function decidePart(part: StorePart, batches: readonly Batch[]): Promise<void> {
    if (!part.available()) {
      for (const batch of batches) answerAlone(batch, false);
      return;
    }
    const sentMs = nowMs();
    const calls = batches.map((batch) => ledger.openCall(batch, batch, batch.generation));
    const replies = await send(part, calls, sentMs);
    for (const [index, batch] of batches.entries()) {
      const reply = replies[index];
      if (reply?.kind === 'decided') {
        const together: DecidedTogether = {
          outcome: reply.outcome,
          source,
          units: batch.units,
          limits: batch.limits,
          windowsMs,
        };
        batch.answer.resolve({ kind: 'decided', together });
      } else if (reply?.kind === 'stale') {
        batch.answer.resolve(reply);
      } else answerAlone(batch, reply?.mayHaveRun ?? true);
    }
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
    const { limits, requests, units } = batch;
    if (onFailure === 'refuse') {
      batch.answer.resolve(unavailable(batch, storeNowMs));
      return;
    }
    const outcome = ledger.decideAlone(batch, batch, storeNowMs, mayBeCharged);
    deps.bans.observe(batch.keyId, outcome.state, storeNowMs);
    deps.onDecidedAlone(requests);
    batch.answer.resolve({
      kind: 'decided',
      together: { outcome, source: 'local', units, limits, windowsMs },
    });
  }

  function unavailable(terms: Pick<Batch, 'keyId' | 'limits'>, storeNowMs: number): Unavailable {
    const { limits } = terms;
    const counts = ledger.lastSeen(terms, storeNowMs);
    const rateLimit = rateLimitState(counts, { limits, windowsMs, nowMs: storeNowMs });
    const retryAtMs = storeNowMs + Math.ceil(bounds.storeProbeIntervalMs / 1000) * 1000;
    return { kind: 'unavailable', rateLimit, source: 'local', retryAtMs };
  }

  async function report(): Promise<void> {
    for (let reach = health.reach(); reach !== 'none'; reach = health.reach()) {
      const isThere = reach === 'all' ? undefined : (keyId: string) => health.partOf(keyId).available();
      const calls = ledger.openReports(bounds.keysPerReportMax, isThere);
      if (calls.length === 0) return;
      const sent = health.divide(calls).map((each) => send(each.part, each.calls, nowMs()));
      const replies = await Promise.all(sent);
      if (replies.some((ofPart) => ofPart.some((reply) => reply.kind === 'failed'))) return;
    }
  }
}

/** Requests of one key that cost the same, on the same terms, in one turn of the event loop. */
interface Batch {
  readonly keyId: string;
  readonly limits: Key['limits'];
  readonly generation: number | undefined;
  readonly bans: BanPolicy;
  /** What each of them costs. */
  readonly units: number;
  requests: number;
  readonly answer: PromiseWithResolvers<Answer>;
}

type Answer = { readonly kind: 'decided'; readonly together: DecidedTogether } | Unavailable | StaleKey;
