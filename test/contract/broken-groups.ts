import type { ChargedUnits } from '../../gateway/quota/adjust.ts';
import type { QuotaCall } from '../../gateway/quota/decide-key.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import type { QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import { limitsOn } from '../../gateway/shared/limits.ts';
import type { Grant, Limits } from '../../gateway/shared/model.ts';
import type { MakeStore } from './redis-subject.ts';

const together = 'a request is charged in the windows of the plan and of its groups, or in none';
const other = 'a request of another operation is charged in no group, and no group refuses it';
const both = 'an operation in two groups is charged in both, and the tighter group refuses it';
const strikes = 'a refusal by a group is one strike, and a ban refuses every operation';
const grants = 'a grant raises the limit of the group that it names, and no other';
const trial =
  'a trial may try a limit of a group, with other operations than in the plan, and refuses nothing';
const alone = 'decisions that a process made alone count in their groups';
const reset = 'a reset resets the groups too';
const back = 'units are taken back in each named window while it is open, and never more than its used units';

/** Limiters that each make a mistake with groups of operations. */
export const brokenGroups: readonly { mistake: string; caughtBy: string; make: MakeStore }[] = [
  {
    mistake: 'the plan is charged though a group refuses',
    caughtBy: together,
    make: afterDecisions(async ({ refused }, add) => add('dayUsed', refused)),
  },
  {
    mistake: 'a group is charged though the plan refuses',
    caughtBy: together,
    make: afterDecisions(async ({ refused }, add) => add('reports:dayUsed', refused)),
  },
  {
    mistake: 'a request in a group is not charged in the plan',
    caughtBy: together,
    make: withCalls((call) => ({
      ...call,
      limits: call.runs.some(({ operation }) => operation !== undefined)
        ? call.limits.filter(({ group }) => group !== undefined)
        : call.limits,
    })),
  },
  {
    mistake: 'a group is charged for another operation',
    caughtBy: other,
    make: withCalls((call) => ({
      ...call,
      runs: call.runs.map((run) => ({ ...run, operation: 'export' })),
    })),
  },
  {
    mistake: 'only the first group of an operation is charged',
    caughtBy: both,
    make: withCalls((call) => ({ ...call, limits: withFirstGroup(call) })),
  },
  {
    mistake: 'a refusal by a group is no strike',
    caughtBy: strikes,
    make: afterDecisions(async ({ refused }, add) => add('strikes', -refused)),
  },
  {
    mistake: 'a grant of a group raises the limit of the plan',
    caughtBy: grants,
    make: altered((store) => ({
      ...store,
      adjust: (keyId, { grant, ...change }) =>
        store.adjust(keyId, { ...change, ...(grant && { grant: withoutGroups(grant) }) }),
    })),
  },
  {
    mistake: 'a trial of a group refuses for real',
    caughtBy: trial,
    make: withCalls((call) => ({ ...call, limits: call.trial ?? call.limits })),
  },
  {
    mistake: 'a trial has the operations of the plan’s group',
    caughtBy: trial,
    make: withCalls((call) => ({
      ...call,
      trial: call.trial?.map((limit) => ({
        ...limit,
        operations: call.limits.find(({ group }) => group === limit.group)?.operations,
      })),
    })),
  },
  {
    mistake: 'decisions that were made alone count only in the plan',
    caughtBy: alone,
    make: withCalls(({ unsent, ...call }) => ({
      ...call,
      unsent: unsent && { ...unsent, 'reports:dayUsed': 0 },
    })),
  },
  {
    mistake: 'units of an ended window are taken back in the open window',
    caughtBy: back,
    make: withUnits(([field, , units], day) => [field, day, units]),
  },
  {
    mistake: 'units of a group are taken back in the plan',
    caughtBy: back,
    make: withUnits(([field, number, units]) => [field.replace('reports:', ''), number, units]),
  },
  {
    mistake: 'units of the trial are taken back in the plan',
    caughtBy: back,
    make: withUnits(([field, number, units]) => [field.replace('trial:', ''), number, units]),
  },
  {
    mistake: 'a reset keeps the counts of groups',
    caughtBy: reset,
    make: altered((store, { redis }) => ({
      ...store,
      async adjust(keyId, change) {
        const name = redisKeys.quota.name(redis.prefix, keyId);
        const before = Object.entries(await redis.commands.hgetall(name));
        const changed = await store.adjust(keyId, change);
        if (!change.reset) return changed;
        const ofGroups = before.filter(([field]) => field.startsWith('reports:'));
        await redis.commands.hset(name, Object.fromEntries(ofGroups));
        return changed;
      },
    })),
  },
];

type Deps = Parameters<MakeStore>[0];

function altered(alter: (store: QuotaStore, deps: Deps) => QuotaStore): MakeStore {
  return (deps) => alter(createRedisQuotaStore(deps), deps);
}

function withCalls(change: (call: QuotaCall) => QuotaCall): MakeStore {
  return altered((store) => ({ ...store, decide: (calls) => store.decide(calls.map(change)) }));
}

/** The real limiter, which takes other units back. @param change gets the number of the present day */
function withUnits(change: (units: ChargedUnits, day: number) => ChargedUnits): MakeStore {
  return altered((store) => ({
    ...store,
    async adjust(keyId, given) {
      const read = await store.read([keyId]);
      const day = (read.kind === 'read' && read.states[0]?.day) || 0;
      return store.adjust(keyId, { ...given, units: (given.units ?? []).map((one) => change(one, day)) });
    },
  }));
}

/** The real limiter, which changes counts after each decision, and replies with the changed counts. */
function afterDecisions(
  change: (
    outcome: { readonly refused: number },
    add: (field: string, units: number) => Promise<void>,
  ) => Promise<void>,
): MakeStore {
  return altered((store, { redis }) => ({
    ...store,
    async decide(calls) {
      const replies = await store.decide(calls);
      for (const [at, { keyId }] of calls.entries()) {
        const reply = replies[at];
        if (reply?.kind !== 'decided') continue;
        const { outcome } = reply;
        await change(outcome, async (field, units) => {
          const name = redisKeys.quota.name(redis.prefix, keyId);
          const count = await redis.commands.hincrby(name, field, units);
          Object.assign(outcome.state, { [field]: count });
        });
      }
      return replies;
    },
  }));
}

function withoutGroups(grant: Grant | 'none'): Grant | 'none' {
  if (grant === 'none') return grant;
  return { ...grant, limits: grant.limits.map(({ group: _, ...limit }) => limit) };
}

function withFirstGroup({ limits, runs }: QuotaCall): Limits {
  const [first] = limitsOn(limits, runs[0]?.operation).flatMap(({ group }) => group ?? []);
  return limits.filter(({ group }) => group === undefined || group === first);
}
