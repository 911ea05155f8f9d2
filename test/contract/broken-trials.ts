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
const alone =
  'decisions that a process made alone are added to the counts of the trial, and count twice nowhere';
const concurrent = 'the concurrency limit refuses the same requests in the trial';
const largest = 'a trial counts exactly up to the largest limit';

/** Limiters that each make a mistake with trials. */
export const brokenTrials: readonly { mistake: string; caughtBy: string; make: MakeStore }[] = [
  {
    mistake: 'the trial is charged for what the plan admits',
    caughtBy: second,
    make: withField(() => undefined),
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
    make: withField((field) => Buffer.concat([Buffer.alloc(22), field.subarray(22)])),
  },
  {
    mistake: 'the trial begins with empty counts',
    caughtBy: begins,
    make: altered(beginEmpty),
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
    make: withCalls(({ limits, trial, ...call }) => {
      const isLimited = (_: unknown, at: number) => limits[at]?.max !== Number.POSITIVE_INFINITY;
      return { ...call, limits: limits.filter(isLimited), trial: trial?.filter(isLimited) };
    }),
  },
  {
    mistake: 'a grant limits a window that only the trial limits',
    caughtBy: further,
    make: withCalls((call) => ({
      ...call,
      limits: call.limits.map(({ window, max }) => ({ window, max: Math.min(max, 999_999_999_999_999) })),
    })),
  },
  { mistake: 'a lifted ban stays in the trial', caughtBy: lifted, make: keepField('liftBan') },
  { mistake: 'a reset keeps the counts of the trial', caughtBy: reset, make: keepField('reset') },
  {
    mistake: 'decisions that were made alone count in the trial as in the plan',
    caughtBy: alone,
    make: withCalls(({ unsent, ...call }) => ({
      ...call,
      unsent: unsent && { ...unsent, trial: undefined },
    })),
  },
  {
    mistake: 'decisions that were made alone do not count in the trial',
    caughtBy: alone,
    make: withCalls(({ unsent, ...call }) => ({
      ...call,
      unsent: unsent && { ...unsent, trial: { ...unsent, dayUsed: 0, strikes: 0 } },
    })),
  },
  {
    mistake: 'the concurrency limit has no effect in the trial',
    caughtBy: concurrent,
    make: withOutcomes(({ trial, ...outcome }) => ({
      ...outcome,
      ...(trial && { trial: { ...trial, admitted: trial.admitted + (outcome.crowded ?? 0) } }),
    })),
  },
  {
    mistake: 'a difference has at most 32 bits',
    caughtBy: largest,
    // The field has the strikes and the ban (22 octets), the windows (1 octet), the number of the day (5 octets) and the difference.
    make: withField((field) => {
      const changed = Buffer.from(field);
      changed.writeDoubleLE(field.readDoubleLE(28) | 0, 28);
      return changed;
    }),
  },
];

type Deps = Parameters<MakeStore>[0];

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

/** The real limiter, which stores another field `trial` after each call. */
function withField(change: (field: Buffer) => Buffer | undefined): MakeStore {
  return altered((store, deps) => ({
    ...store,
    async decide(calls) {
      const replies = await store.decide(calls);
      for (const { keyId } of calls) {
        const before = await readField(deps, keyId);
        if (before !== undefined) await writeField(deps, keyId, change(before));
      }
      return replies;
    },
  }));
}

function keepField(verb: 'liftBan' | 'reset'): MakeStore {
  return altered((store, deps) => ({
    ...store,
    async [verb](keyId: string, policy: QuotaCall['bans']) {
      const before = await readField(deps, keyId);
      const changed = await store[verb](keyId, policy);
      await writeField(deps, keyId, before);
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
        const [day, dayUsed] = await deps.redis.commands.hmget(nameOf(deps, keyId), 'day', 'dayUsed');
        if (trial === undefined || day == null || (await readField(deps, keyId)) !== undefined) continue;
        const field = Buffer.alloc(36);
        field.writeUInt8(8, 22);
        field.writeUIntLE(Number(day), 23, 5);
        field.writeDoubleLE(-Number(dayUsed), 28);
        await writeField(deps, keyId, field);
      }
      return store.decide(calls);
    },
  };
}

function nameOf({ redis }: Deps, keyId: string): string {
  return redisKeys.quota.name(redis.prefix, keyId);
}

async function readField(deps: Deps, keyId: string): Promise<Buffer | undefined> {
  return (await deps.redis.commands.hgetBuffer(nameOf(deps, keyId), 'trial')) ?? undefined;
}

async function writeField(deps: Deps, keyId: string, field: Buffer | undefined): Promise<void> {
  const { commands } = deps.redis;
  if (field === undefined) await commands.hdel(nameOf(deps, keyId), 'trial');
  else await commands.hset(nameOf(deps, keyId), 'trial', field);
}
