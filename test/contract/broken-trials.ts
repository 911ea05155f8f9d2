import type { QuotaCall, QuotaOutcome } from '../../gateway/quota/decide-key.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import type { QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import type { MakeStore } from './redis-subject.ts';

const second = 'a trial refuses what a plan with its limits refuses, and is charged only for what it admits';
const plan = 'a trial changes no decision of its plan';
const bans = 'the refusals of a trial lead to a ban of the trial, which refuses nothing else';
const begins = 'a trial begins with the counts of the plan';
const larger = 'a trial that is larger than its plan charges what only the trial admits';
const further =
  'a trial may limit a window that its plan does not limit, and a grant does not limit this window in the plan';
const lifted = 'a lifted ban is lifted in the trial too';
const reset = 'a reset resets the trial too';
const alone = 'decisions that a process made alone count in the trial as in the plan';
const concurrent = 'the concurrency limit refuses the same requests in the trial';
const largest = 'a trial counts exactly up to the largest limit';

/** Limiters that each make a mistake with trials. */
export const brokenTrials: readonly { mistake: string; caughtBy: string; make: MakeStore }[] = [
  {
    mistake: 'the trial is charged for what the plan admits',
    caughtBy: second,
    make: withFields(({ minuteUsed, dayUsed }) => ({
      'trial:minuteUsed': minuteUsed ?? '0',
      'trial:dayUsed': dayUsed ?? '0',
    })),
  },
  {
    mistake: 'the trial refuses for real',
    caughtBy: plan,
    make: withCalls((call) => ({ ...call, limits: call.trial ?? call.limits })),
  },
  {
    mistake: 'a refusal of the trial is a strike of the plan',
    caughtBy: plan,
    make: withOutcomes((outcome) => {
      const strikes = outcome.state.strikes + (outcome.trial?.refused ?? 0);
      return { ...outcome, state: { ...outcome.state, strikes } };
    }),
  },
  {
    mistake: 'a refusal of the trial is no strike',
    caughtBy: bans,
    make: withFields(() => ({ 'trial:strikes': '0' })),
  },
  {
    mistake: 'a trial shares the ban of the plan',
    caughtBy: bans,
    make: withFields(({ bannedUntilMs = '0' }) => ({ 'trial:bannedUntilMs': bannedUntilMs })),
  },
  {
    mistake: 'the trial begins with empty counts',
    caughtBy: begins,
    make: altered(beginEmpty),
  },
  {
    mistake: 'the trial begins again with each call',
    caughtBy: larger,
    make: altered((store, deps) => ({
      ...store,
      async decide(calls) {
        for (const { keyId } of calls) await removeTrial(deps, keyId);
        return store.decide(calls);
      },
    })),
  },
  {
    mistake: 'a trial admits only what the plan admits',
    caughtBy: larger,
    make: withOutcomes(({ trial, ...outcome }) => {
      if (trial === undefined) return outcome;
      const admitted = Math.min(trial.admitted, outcome.admitted);
      return { ...outcome, trial: { ...trial, admitted } };
    }),
  },
  {
    mistake: 'the trial has only the windows of the plan',
    caughtBy: further,
    make: withCalls(({ trial, ...call }) => ({
      ...call,
      trial: trial?.filter(({ window }) => call.limits.some((limit) => limit.window === window)),
    })),
  },
  {
    mistake: 'a grant limits a window that only the trial limits',
    caughtBy: further,
    make: withCalls(({ limits, trial = [], ...call }) => ({
      ...call,
      trial,
      limits: trial.map(
        ({ window }) =>
          limits.find((limit) => limit.window === window) ?? { window, max: 999_999_999_999_999 },
      ),
    })),
  },
  { mistake: 'a lifted ban stays in the trial', caughtBy: lifted, make: keepTrial('lift') },
  { mistake: 'a reset keeps the counts of the trial', caughtBy: reset, make: keepTrial('reset') },
  {
    mistake: 'decisions that were made alone do not count in the trial',
    caughtBy: alone,
    make: altered((store) => ({
      ...store,
      async decide(calls) {
        const replies = await store.decide(calls);
        return replies.map((reply, at) => {
          const used = calls[at]?.unsent?.dayUsed ?? 0;
          if (reply.kind !== 'decided' || reply.outcome.trial === undefined) return reply;
          const { trial } = reply.outcome;
          const state = { ...trial.state, dayUsed: trial.state.dayUsed - used };
          return { ...reply, outcome: { ...reply.outcome, trial: { ...trial, state } } };
        });
      },
    })),
  },
  {
    mistake: 'the concurrency limit has no effect in the trial',
    caughtBy: concurrent,
    make: withOutcomes(({ trial, ...outcome }) => ({
      ...outcome,
      ...(trial && { trial: { ...trial, admitted: trial.admitted + outcome.crowded } }),
    })),
  },
  {
    mistake: 'a count has at most 32 bits',
    caughtBy: largest,
    make: withFields((fields) => ({ 'trial:dayUsed': String(Number(fields['trial:dayUsed']) | 0) })),
  },
];

type Deps = Parameters<MakeStore>[0];
type Fields = Readonly<Record<string, string>>;

function altered(alter: (store: QuotaStore, deps: Deps) => QuotaStore): MakeStore {
  return (deps) => alter(createRedisQuotaStore(deps), deps);
}

function withCalls(change: (call: QuotaCall) => QuotaCall): MakeStore {
  return altered((store) => ({ ...store, decide: (calls) => store.decide(calls.map(change)) }));
}

function withOutcomes(change: (outcome: QuotaOutcome) => QuotaOutcome): MakeStore {
  return altered((store) => ({
    ...store,
    async decide(calls) {
      const replies = await store.decide(calls);
      return replies.map((reply) =>
        reply.kind === 'decided' ? { ...reply, outcome: change(reply.outcome) } : reply,
      );
    },
  }));
}

/** The real limiter, which stores other counts of the trial after each call. */
function withFields(change: (stored: Fields) => Fields): MakeStore {
  return altered((store, deps) => ({
    ...store,
    async decide(calls) {
      const replies = await store.decide(calls);
      for (const { keyId } of calls) {
        const stored = await deps.redis.commands.hgetall(nameOf(deps, keyId));
        if (stored['trial:strikes'] !== undefined) {
          await deps.redis.commands.hset(nameOf(deps, keyId), change(stored));
        }
      }
      return replies;
    },
  }));
}

function keepTrial(verb: 'lift' | 'reset'): MakeStore {
  return altered((store, deps) => ({
    ...store,
    async adjust(keyId, change) {
      const before = await deps.redis.commands.hgetall(nameOf(deps, keyId));
      const changed = await store.adjust(keyId, change);
      if (!change[verb]) return changed;
      const ofTrial = Object.entries(before).filter(([field]) => field.startsWith('trial:'));
      await deps.redis.commands.hset(nameOf(deps, keyId), Object.fromEntries(ofTrial));
      return changed;
    },
  }));
}

/** A trial that begins with 0 used units and no strikes, in a day window. */
function beginEmpty(store: QuotaStore, deps: Deps): QuotaStore {
  return {
    ...store,
    async decide(calls) {
      for (const { keyId, trial } of calls) {
        const name = nameOf(deps, keyId);
        const { day, ...stored } = await deps.redis.commands.hgetall(name);
        if (trial === undefined || day === undefined || stored['trial:day'] !== undefined) continue;
        await deps.redis.commands.hset(name, { 'trial:strikes': 0, 'trial:day': day, 'trial:dayUsed': 0 });
      }
      return store.decide(calls);
    },
  };
}

async function removeTrial(deps: Deps, keyId: string): Promise<void> {
  const stored = await deps.redis.commands.hkeys(nameOf(deps, keyId));
  const fields = stored.filter((field) => field.startsWith('trial:'));
  if (fields.length > 0) await deps.redis.commands.hdel(nameOf(deps, keyId), ...fields);
}

function nameOf({ redis }: Deps, keyId: string): string {
  return redisKeys.quota.name(redis.prefix, keyId);
}
