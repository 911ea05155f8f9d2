import type { QuotaOutcome } from '../../quota/decide-key.ts';
import type { QuotaState } from '../../quota/hash.ts';
import { isInGroup } from '../../shared/limits.ts';
import type { Charge, Decision, DecisionSource, Key, QuotaRules, StaleKey } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { decidedRuns } from './decision-at.ts';
import type { KeyLedger } from './key-ledger.ts';
import { createCallQueue } from './stages/call-queue.ts';
import { createLocalDecider, type LocalDeciderDeps } from './stages/decide-alone.ts';
import { createGatherer } from './stages/gather-requests.ts';
import type { OpenCall } from './stages/open-call.ts';
import { createRefuser } from './stages/refuse-from-memory.ts';
import { createReporter } from './stages/report-unsent.ts';
import { createSender, type SenderDeps } from './stages/send-calls.ts';
import type { StoreHealth, StorePart } from './store/store-health.ts';

/**
 * Decides the requests of valid keys. Each stage of a decision is a file in `stages/`:
 *
 * 1. If the store has just refused a request of the key, the request is refused from memory.
 * 2. Requests of one key in one turn of the event loop are gathered in a call.
 * 3. A call of a key with a concurrency limit waits for the reply to the key's earlier call.
 * 4. At the end of the turn, all calls are sent in one write. Each reply updates the local counts.
 * 5. Each request of a call is answered. If the store does not reply and `onFailure` is `local`, the process decides alone, and sends its
 *    decisions later.
 *
 * The requests of a call that timed out may have been charged. A call that timed out is therefore not sent again, and its requests are not
 * reported later. The store never counts a request twice. If the store becomes unavailable during a call, the requests of the call may
 * remain uncounted.
 */
export function createKeyLimiter(
  deps: SenderDeps &
    LocalDeciderDeps & {
      readonly health: StoreHealth;
      readonly ledger: KeyLedger;
      /** The time of the last leaked secret of the configuration that this process knows, epoch ms; 0 while there is none. */
      readonly leaksReadMs: () => number;
      readonly bounds: Bounds;
    },
) {
  const { source, health, ledger, clock, nowMs, leaksReadMs, bounds } = deps;
  const { windowsMs, requestsPerCallMax, keysPerReportMax } = bounds;
  const queue = createCallQueue({ send: (call) => gatherer.sendAtTurnEnd(call), leaksReadMs, nowMs, bounds });
  const gatherer = createGatherer({ queue, leaksReadMs, requestsPerCallMax, onTurnEnd });
  const refuser = createRefuser({ source, ledger, clock, freeSlots: queue.freeSlots, bounds });
  const sender = createSender(deps);
  const alone = createLocalDecider(deps);
  const { release, renewLeases, reportActive, activeReported } = queue;

  return {
    /** @param unitsInTrial the cost in the trial of the key's plan */
    decide(
      key: Key,
      rules: QuotaRules,
      charge: Charge,
      unitsInTrial = charge.units,
    ): Promise<Decision | StaleKey> {
      const { limits, trial } = key;
      const { units, operation } = charge;
      const request = {
        requests: 1,
        units,
        trialUnits: trial === undefined || unitsInTrial === units ? undefined : unitsInTrial,
        operation:
          isInGroup(limits, operation) || (trial && isInGroup(trial, operation)) ? operation : undefined,
      };
      // If the key has an open call, the request is not refused from memory, because earlier requests wait in the call.
      const refused = gatherer.isOpen(key) ? undefined : refuser.refuse(key, rules.bans, request);
      return refused === undefined ? gatherer.add(key, rules, request) : Promise.resolve(refused);
    },
    release,
    renewLeases,
    reportActive,
    activeReported,
    /** Returns the local counts of a key. If `onFailure` is `refuse`, returns `unavailable`. Called while the store is unavailable. */
    readAlone: alone.read,
    /** Replaces the local counts of a key after an operator's change: a lifted ban, a reset, or a grant. */
    forget(keyId: string, state: Readonly<QuotaState>) {
      refuser.forget(keyId);
      ledger.replace(keyId, state);
      deps.bans.observe(keyId, state, clock.nowMs());
    },
    /** The numbers of successful and failed calls to the store. */
    calls: sender.counts,
    report: createReporter({ health, ledger, send: sender.send, keysPerReportMax }),
  };

  function onTurnEnd(calls: readonly OpenCall[]): void {
    if (health.reach() === 'all') decideAll(calls);
    else void health.started.then(() => decideAll(calls));
  }

  /** Sends the calls of each part of the store separately, so that a server that hangs does not delay keys of other servers. */
  function decideAll(calls: readonly OpenCall[]): void {
    try {
      for (const each of health.divide(calls)) {
        decidePart(each.part, each.calls).catch((error: unknown) => fail(each.calls, error));
      }
    } catch (error) {
      fail(calls, error);
    }
  }

  async function decidePart(part: StorePart, calls: readonly OpenCall[]): Promise<void> {
    if (!part.available()) {
      for (const call of calls) answerAlone(call, false);
      return;
    }
    for (const call of calls) {
      call.unsent = ledger.takeUnsent(call);
      queue.begin(call);
    }
    const replies = await sender.send(part, calls);
    for (const [index, call] of calls.entries()) {
      const reply = replies[index];
      if (reply?.kind === 'decided') {
        queue.endStored(call, reply.outcome);
        answer(call, reply.outcome, source);
      } else if (reply?.kind === 'stale') {
        queue.endUnstored(call);
        call.answer.resolve(reply);
      } else answerAlone(call, reply?.mayHaveRun ?? true);
    }
  }

  function answerAlone(call: OpenCall, mayBeCharged: boolean): void {
    const decided = alone.decide(call, mayBeCharged, queue.freeSlots(call.key));
    if (decided.kind === 'decided') {
      queue.endUnstored(call, decided.outcome.admitted);
      answer(call, decided.outcome, 'local');
    } else {
      queue.endUnstored(call);
      call.answer.resolve(decided);
    }
  }

  function answer(call: OpenCall, outcome: QuotaOutcome, by: DecisionSource): void {
    call.answer.resolve({ kind: 'decided', runs: decidedRuns(call, outcome, { source: by, windowsMs }) });
  }

  function fail(calls: readonly OpenCall[], error: unknown): void {
    for (const call of calls) {
      queue.endUnstored(call);
      call.answer.reject(error);
    }
  }
}
