import type { QuotaOutcome } from '../../../quota/decide-key.ts';
import type { Key, QuotaRules } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { createActiveRequests } from './active-requests.ts';
import { type OpenCall, openCall } from './open-call.ts';

export type CallQueue = ReturnType<typeof createCallQueue>;

/**
 * Lets a key with a concurrency limit have one call at a time, and reports its requests in progress to the store. Further calls of the key
 * wait. A key without a concurrency limit passes through.
 */
export function createCallQueue({
  send,
  leaksReadMs,
  nowMs,
  bounds,
}: {
  readonly send: (call: OpenCall) => void;
  readonly leaksReadMs: () => number;
  readonly nowMs: () => number;
  readonly bounds: Pick<Bounds, 'crowdedPauseMs' | 'leaseMs' | 'leaseRenewalMs'>;
}) {
  const active = createActiveRequests({ nowMs, bounds });
  /** Calls that wait for the reply to an earlier call of the same key, in order of arrival. */
  const waiting = new Map<string, OpenCall[]>();
  /** Keys whose next call is delayed by `bounds.crowdedPauseMs`. */
  const paused = new Map<string, NodeJS.Timeout>();
  /** The last used definition and rules of each key with a concurrency limit, for calls that report the end of requests. */
  const lastTerms = new Map<string, { readonly key: Key; readonly rules: QuotaRules }>();
  let onSettled: PromiseWithResolvers<void> | undefined;

  return {
    /** Sends a call at the end of the turn, or when the store has replied to the earlier calls of its key. */
    enter(call: OpenCall): void {
      const { key, rules, keyId } = call;
      if (key.concurrent === undefined) {
        send(call);
        return;
      }
      lastTerms.set(keyId, { key, rules });
      const before = waiting.get(keyId);
      if (!active.isAsking(keyId)) sendNext(call);
      else if (before === undefined) waiting.set(keyId, [call]);
      else {
        before.push(call);
        endPause(keyId);
      }
    },
    lastWaiting({ id, concurrent }: Key): OpenCall | undefined {
      return concurrent === undefined ? undefined : waiting.get(id)?.at(-1);
    },
    /** The number of requests of a key that this process may begin now, if the other processes serve none. */
    freeSlots({ id, concurrent = Number.POSITIVE_INFINITY }: Key): number {
      return concurrent - active.of(id);
    },
    /** Adds the requests in progress to a call that is sent now. */
    begin(call: OpenCall): void {
      const { concurrent } = call.key;
      if (concurrent !== undefined) call.concurrency = active.begin(call.keyId, concurrent);
    },
    /**
     * Ends a call that the store has decided. If the concurrency limit refused all requests, the next call is delayed, and further requests
     * wait in it.
     */
    endStored({ key, keyId }: OpenCall, { admitted, crowded }: QuotaOutcome): void {
      if (key.concurrent === undefined) return;
      // If several calls wait, no further request can join the first call. A delay of this call would have no benefit.
      const mayPause = admitted === 0 && crowded > 0 && (waiting.get(keyId)?.length ?? 0) <= 1;
      if (mayPause) paused.set(keyId, setTimeout(endPause, bounds.crowdedPauseMs, keyId));
      else end(keyId, admitted, true);
    },
    /** Ends a call that the store has not decided. @param admitted the number of requests that this process has admitted */
    endUnstored({ key, keyId }: OpenCall, admitted = 0): void {
      if (key.concurrent !== undefined) end(keyId, admitted, false);
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
  };

  function sendNext(call: OpenCall): void {
    active.markAsking(call.keyId);
    send(call);
  }

  function endPause(keyId: string): void {
    const timer = paused.get(keyId);
    if (timer === undefined) return;
    clearTimeout(timer);
    paused.delete(keyId);
    end(keyId, 0, true);
  }

  /** Ends the call of a key, and sends the next call. */
  function end(keyId: string, admitted: number, stored: boolean): void {
    const mustTell = active.end(keyId, admitted, stored);
    const next = waiting.get(keyId)?.shift();
    if (waiting.get(keyId)?.length === 0) waiting.delete(keyId);
    if (next !== undefined) sendNext(next);
    else if (mustTell) tellStore(keyId);
    if (!active.has(keyId)) lastTerms.delete(keyId);
    if (onSettled !== undefined && active.isSettled()) onSettled.resolve();
  }

  /**
   * Reports to the store how many requests of a key this process serves. Does nothing if an open call of the key already reports the
   * number.
   */
  function tellStore(keyId: string): void {
    const terms = lastTerms.get(keyId);
    if (terms === undefined || active.isAsking(keyId)) return;
    const call = openCall(terms.key, terms.rules, leaksReadMs);
    sendNext(call);
    // No request waits for the reply to this report, so a failure needs no handling here.
    call.answer.promise.catch(() => {});
  }
}
