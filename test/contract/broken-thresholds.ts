import type { QuotaCall, QuotaOutcome } from '../../gateway/quota/decide-key.ts';
import type { QuotaState } from '../../gateway/quota/hash.ts';
import { type ToldMark, untoldThresholds } from '../../gateway/quota/thresholds.ts';
import type { QuotaReply, QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import type { MakeStore } from './redis-subject.ts';

const once =
  'a threshold is returned with each decision from the request that reaches it, and no more once it is confirmed';
const short = 'seconds and minutes have no thresholds, and without thresholds none is returned';
const several = 'a request that crosses several thresholds returns all of them, in ascending order';
const costs = 'a threshold is reached by the units that were charged, and not by requests';
const grants = 'a running grant is the limit of which a threshold is a percentage';
const edits =
  'a lowered limit reaches its thresholds with the next request, also with a refused or free request';
const reset =
  'after a reset each threshold is returned again, and a confirmation of an earlier report has no effect';
const marks = 'a confirmation concerns one window with one number, and never lowers the percentage';
const alone = 'units that a process counted alone reach a threshold with the report that sends them';

type Reached = QuotaOutcome['reached'];

/** Limiters that each make a mistake with thresholds. */
export const brokenThresholds: readonly { mistake: string; caughtBy: string; make: MakeStore }[] = [
  {
    mistake: 'a threshold fires again after its confirmation',
    caughtBy: once,
    make: withMarks(() => undefined),
  },
  {
    mistake: 'a threshold is forgotten although no report was confirmed',
    caughtBy: once,
    make: altered(forgetReturned),
  },
  {
    mistake: 'a confirmation of 80 % confirms 100 % too',
    caughtBy: once,
    make: withMarks((mark) => ({ ...mark, percent: 100 })),
  },
  {
    mistake: 'a threshold needs one unit more',
    caughtBy: once,
    make: withReached((_, { reached }) => reached?.filter(({ used, limit }) => used * 10 > limit * 8)),
  },
  {
    mistake: 'a jump over several thresholds returns only the last of them',
    caughtBy: several,
    make: withReached((_, { reached }) =>
      reached?.map((each) => ({ ...each, percents: each.percents.slice(-1) })),
    ),
  },
  {
    mistake: 'only the longest window has thresholds',
    caughtBy: several,
    make: withReached((_, { reached }) => reached?.slice(-1)),
  },
  {
    mistake: 'thresholds come in descending order',
    caughtBy: several,
    make: withReached((_, { reached }) =>
      reached?.map((each) => ({ ...each, percents: each.percents.toReversed() })),
    ),
  },
  {
    mistake: 'minutes have thresholds',
    caughtBy: short,
    make: withReached((call, { reached, state }) =>
      state.minuteUsed > 0 && call.thresholds
        ? [{ window: 'hour', index: state.minute, percents: [80], used: 2, limit: 2 }]
        : reached,
    ),
  },
  {
    mistake: 'a threshold counts requests and not their costs',
    caughtBy: costs,
    make: altered(countRequests),
  },
  {
    mistake: 'a grant does not change the limit of a threshold',
    caughtBy: grants,
    make: withReached(({ limits, thresholds = [] }, { state }) =>
      untoldThresholds(state, limits, thresholds),
    ),
  },
  {
    mistake: 'a grant changes the limit of a threshold before it begins',
    caughtBy: grants,
    make: withReached(({ limits, thresholds = [] }, { state, reached }) =>
      state.grant ? untoldThresholds(state, state.grant.limits, thresholds) : limits && reached,
    ),
  },
  {
    mistake: 'a refused request returns no threshold',
    caughtBy: edits,
    make: withReached((_, { reached, refused }) => (refused > 0 ? undefined : reached)),
  },
  {
    mistake: 'only a charged unit reaches a threshold, and not an edit',
    caughtBy: edits,
    make: withReached((call, { reached, admitted }) =>
      reached?.filter(
        ({ used, limit }) => (used - admitted * (call.runs[0]?.units ?? 0)) * 100 < limit * 100,
      ),
    ),
  },
  { mistake: 'a reset keeps the confirmations', caughtBy: reset, make: altered(keepMarks) },
  {
    mistake: 'a confirmation does not name the generation of the counts',
    caughtBy: reset,
    make: withConfirm(confirmAnyGeneration),
  },
  {
    mistake: 'a confirmation concerns any number of the window',
    caughtBy: marks,
    make: withConfirm(confirmAnyWindow),
  },
  {
    mistake: 'a confirmation concerns all windows',
    caughtBy: marks,
    make: withConfirm(confirmAllWindows),
  },
  {
    mistake: 'a report of local decisions has no thresholds',
    caughtBy: alone,
    make: withReached(({ unsent }, { reached }) => (unsent ? undefined : reached)),
  },
];

function altered(alter: (store: QuotaStore) => QuotaStore): MakeStore {
  return (deps) => alter(createRedisQuotaStore(deps));
}

/** The real limiter with other thresholds in its decisions. */
function withReached(change: (call: QuotaCall, outcome: QuotaOutcome) => Reached): MakeStore {
  return altered((store) => ({
    ...store,
    async decide(calls) {
      const replies = await store.decide(calls);
      return replies.map((reply, at) => withThresholds(reply, calls[at], change));
    },
  }));
}

function withThresholds(
  reply: QuotaReply,
  call: QuotaCall | undefined,
  change: (call: QuotaCall, outcome: QuotaOutcome) => Reached,
): QuotaReply {
  if (reply.kind !== 'decided' || call === undefined) return reply;
  const { reached: _, ...outcome } = reply.outcome;
  const reached = change(call, reply.outcome);
  return { ...reply, outcome: { ...outcome, ...(reached && reached.length > 0 && { reached }) } };
}

function withConfirm(
  confirm: (
    store: QuotaStore,
    ...args: Parameters<QuotaStore['confirmTold']>
  ) => ReturnType<QuotaStore['confirmTold']>,
): MakeStore {
  return altered((store) => ({ ...store, confirmTold: (keyId, mark) => confirm(store, keyId, mark) }));
}

/** The real limiter with other confirmations. */
function withMarks(change: (mark: ToldMark) => ToldMark | undefined): MakeStore {
  return altered((store) => ({
    ...store,
    async confirmTold(keyId, mark) {
      const changed = change(mark);
      return changed ? await store.confirmTold(keyId, changed) : { kind: 'confirmed', isStored: true };
    },
  }));
}

/** Marks each threshold as reported when it is returned. */
function forgetReturned(store: QuotaStore): QuotaStore {
  return {
    ...store,
    async decide(calls) {
      const replies = await store.decide(calls);
      for (const [at, reply] of replies.entries()) {
        const keyId = calls[at]?.keyId;
        if (reply.kind !== 'decided' || keyId === undefined) continue;
        const { reached = [], state } = reply.outcome;
        for (const { window, index, percents } of reached) {
          const percent = percents.at(-1) ?? 0;
          await store.confirmTold(keyId, { window, index, percent, resetMs: state.resetMs });
        }
      }
      return replies;
    },
  };
}

function countRequests(store: QuotaStore): QuotaStore {
  const requests = new Map<string, number>();
  return {
    ...store,
    async decide(calls) {
      const replies = await store.decide(calls);
      return replies.map((reply, at) =>
        withThresholds(reply, calls[at], ({ keyId, limits, thresholds = [] }, { admitted, state }) => {
          const dayUsed = (requests.get(keyId) ?? 0) + admitted;
          requests.set(keyId, dayUsed);
          return untoldThresholds({ ...state, dayUsed }, limits, thresholds);
        }),
      );
    },
  };
}

/** Never returns a confirmed threshold again. */
function keepMarks(store: QuotaStore): QuotaStore {
  const confirmed = new Map<string, number>();
  return {
    ...store,
    async confirmTold(keyId, mark) {
      const reply = await store.confirmTold(keyId, mark);
      if (reply.kind === 'confirmed' && reply.isStored) confirmed.set(keyId, mark.percent);
      return reply;
    },
    async decide(calls) {
      const replies = await store.decide(calls);
      return replies.map((reply, at) =>
        withThresholds(reply, calls[at], ({ keyId }, { reached }) =>
          reached?.map((each) => ({
            ...each,
            percents: each.percents.filter((percent) => percent > (confirmed.get(keyId) ?? 0)),
          })),
        ),
      );
    },
  };
}

async function confirmAnyGeneration(store: QuotaStore, keyId: string, mark: ToldMark) {
  const { resetMs } = await stateOf(store, keyId);
  return await store.confirmTold(keyId, { ...mark, resetMs });
}

async function confirmAnyWindow(store: QuotaStore, keyId: string, mark: ToldMark) {
  const state = await stateOf(store, keyId);
  return await store.confirmTold(keyId, { ...mark, index: state[mark.window] });
}

async function confirmAllWindows(store: QuotaStore, keyId: string, mark: ToldMark) {
  const state = await stateOf(store, keyId);
  for (const window of ['hour', 'month'] as const) {
    await store.confirmTold(keyId, { ...mark, window, index: state[window] });
  }
  return await store.confirmTold(keyId, mark);
}

async function stateOf(store: QuotaStore, keyId: string): Promise<Readonly<QuotaState>> {
  const read = await store.read([keyId]);
  const state = read.kind === 'read' ? read.states[0] : undefined;
  if (state === undefined) throw new Error(`no counts: ${JSON.stringify(read)}`);
  return state;
}
