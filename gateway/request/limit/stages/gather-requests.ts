import type { Decision, Key, QuotaRules, StaleKey } from '../../../shared/model.ts';
import type { CallQueue } from './call-queue.ts';
import { canJoin, decisionOnLast, join, type OpenCall, type OpenRun, openCall } from './open-call.ts';

/** Gathers the requests of one key in one turn of the event loop in a call. All calls of a turn are sent in one write. */
export function createGatherer({
  queue,
  leaksReadMs,
  requestsPerCallMax,
  onTurnEnd,
}: {
  readonly queue: Pick<CallQueue, 'enter' | 'lastWaiting'>;
  readonly leaksReadMs: () => number;
  readonly requestsPerCallMax: number;
  readonly onTurnEnd: (calls: readonly OpenCall[]) => void;
}) {
  let turn: OpenCall[] = [];
  let newest = new Map<string, OpenCall>();

  return {
    /** Whether requests of the key are in a call that is not sent yet. */
    isOpen: (key: Key): boolean => openCallOf(key) !== undefined,
    add(key: Key, rules: QuotaRules, request: OpenRun): Promise<Decision | StaleKey> {
      const open = openCallOf(key);
      if (open !== undefined && open.size < requestsPerCallMax && canJoin(open, key, rules, leaksReadMs)) {
        join(open, request);
        return decisionOnLast(open);
      }
      const call = openCall(key, rules, leaksReadMs, request);
      queue.enter(call);
      return decisionOnLast(call);
    },
    sendAtTurnEnd(call: OpenCall): void {
      if (turn.length === 0) setImmediate(endTurn);
      turn.push(call);
      newest.set(call.keyId, call);
    },
  };

  /** Returns the newest call of a key that is not sent yet. */
  function openCallOf(key: Key): OpenCall | undefined {
    return queue.lastWaiting(key) ?? newest.get(key.id);
  }

  function endTurn(): void {
    const calls = turn;
    turn = [];
    // A new Map replaces the old Map, because a cleared Map can keep memory in use; see `renewed-map.ts`.
    newest = new Map();
    onTurnEnd(calls);
  }
}
