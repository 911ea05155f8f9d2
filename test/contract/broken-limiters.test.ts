import { describe, expect, it } from 'vitest';
import { toLimitFields, toLimits } from '../../gateway/keys/limits/limit-fields.ts';
import type { QuotaCall } from '../../gateway/quota/decide-key.ts';
import { emptyQuotaState, type QuotaState } from '../../gateway/quota/hash.ts';
import type { Run } from '../../gateway/quota/runs.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import type { QuotaReply, QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import type { Grant, Limits } from '../../gateway/shared/model.ts';
import { allRedisForms, startForm, tagsOf } from '../support/start-form.ts';
import { brokenGroups } from './broken-groups.ts';
import { brokenThresholds } from './broken-thresholds.ts';
import { brokenTrials } from './broken-trials.ts';
import { groupGuarantees } from './group-guarantees.ts';
import { decide, guarantees, sharedGuarantees } from './quota-store-guarantees.ts';
import { type MakeStore, redisSubject } from './redis-subject.ts';
import { thresholdGuarantees } from './threshold-guarantees.ts';
import { trialGuarantees } from './trial-guarantees.ts';

/**
 * Checks that the contract detects mistakes. Each limiter in the list makes one classic mistake, and the guarantee in the same row must
 * fail.
 */
const all = {
  ...{ ...guarantees, ...thresholdGuarantees, ...trialGuarantees },
  ...{ ...groupGuarantees, ...sharedGuarantees },
};
const burst = 'many simultaneous requests of several clients are admitted up to exactly the limit';
const minuteRefusal = 'a request refused by the minute is charged in neither window';
const list = 'any list of windows is charged as one: in all of them or in none';
const cost = 'a request is charged what it costs, in all windows or in none';
const less = 'units that do not suffice for one request are room for a cheaper request';
const free = 'a free request is refused only by a ban, and by no window';
const strikeEach = 'a refusal is one strike, whatever the request costs';
const month = 'a month is a month of the UTC calendar';
const lifted = 'a lifted ban is not restored by a ban or strikes that a process counted alone before';
const grantsEnd = 'a grant ends at its instant, to the millisecond';
const grantsBegin = 'a grant begins at its instant, and not one millisecond earlier';
const grantCharges =
  'requests under a grant are charged to the windows as before, and stay counted after the grant';
const grantsWindows = 'a grant limits no window that the limits do not name';
const places =
  'requests of a key in progress on all processes are at most the concurrency limit, and a place is free when they end';
const leasesExpire =
  'the requests of a process that does not renew its lease stop counting when the lease expires';
const staleCalls =
  'a call with another generation than the key’s is stale: it decides nothing, charges nothing and keeps no counts';
const clock = 'all processes count in the same window, whatever their own clocks say';

const broken: readonly { mistake: string; caughtBy: string; make: MakeStore }[] = [
  { mistake: 'GET, then SET', caughtBy: burst, make: limiter(getThenSet) },
  { mistake: 'INCR, then check', caughtBy: minuteRefusal, make: limiter(incrementThenCheck) },
  { mistake: 'one call per window', caughtBy: minuteRefusal, make: limiter(oneCallPerWindow) },
  { mistake: 'a refused request is charged', caughtBy: minuteRefusal, make: limiter(chargeOnRefusal) },
  {
    mistake: 'the gateway’s clock decides',
    caughtBy: clock,
    make: limiter((deps, call, keys) => atomically(deps, call, keys, false), 'own clock'),
  },
  {
    mistake: 'the last window of a list is forgotten',
    caughtBy: list,
    make: altered((store) => ({
      ...store,
      decide: (calls) => store.decide(calls.map((call) => ({ ...call, limits: call.limits.slice(0, -1) }))),
    })),
  },
  {
    mistake: 'a request is charged 1 unit whatever it costs',
    caughtBy: cost,
    make: withRuns((run) => ({ ...run, units: 1 })),
  },
  {
    mistake: 'a request is charged the units that find room, and not the rest',
    caughtBy: cost,
    make: withRuns(({ requests, units }) => ({ requests: requests * units, units: 1 })),
  },
  {
    mistake: 'the cheapest requests of a call are decided first',
    caughtBy: less,
    make: withCalls((call) => ({
      ...call,
      runs: call.runs.toSorted((one, other) => one.units - other.units),
    })),
  },
  {
    mistake: 'all requests of a call cost as much as its first request',
    caughtBy: less,
    make: withRuns((run, first) => ({ ...run, units: first.units })),
  },
  {
    mistake: 'a request without cost costs 1',
    caughtBy: free,
    make: withRuns((run) => ({ ...run, units: Math.max(1, run.units) })),
  },
  {
    mistake: 'a refusal counts as many strikes as the request costs',
    caughtBy: strikeEach,
    make: altered(strikeByUnits),
  },
  {
    mistake: 'a month has 30 days',
    caughtBy: month,
    make: (deps) =>
      createRedisQuotaStore({ ...deps, windowsMs: { ...deps.windowsMs, month: 2_592_000_000 } }),
  },
  { mistake: 'a lifted ban has no generation', caughtBy: lifted, make: liftWithoutGeneration },
  { mistake: 'a grant holds a millisecond longer', caughtBy: grantsEnd, make: withGrants(later(1)) },
  { mistake: 'a grant ends a millisecond early', caughtBy: grantsEnd, make: withGrants(later(-1)) },
  { mistake: 'a grant survives its end', caughtBy: grantsEnd, make: withGrants(later(86_400_000)) },
  {
    mistake: 'a grant holds before its beginning',
    caughtBy: grantsBegin,
    make: withGrants((grant) => ({ ...grant, fromMs: undefined })),
  },
  { mistake: 'a grant begins a millisecond early', caughtBy: grantsBegin, make: withGrants(begun(-1)) },
  { mistake: 'a grant begins a millisecond late', caughtBy: grantsBegin, make: withGrants(begun(1)) },
  { mistake: 'a grant charges nothing', caughtBy: grantCharges, make: altered(chargeNothingUnderGrants) },
  { mistake: 'a grant has no effect', caughtBy: grantCharges, make: withGrants(() => undefined) },
  {
    mistake: 'a grant limits every window that it names',
    caughtBy: grantsWindows,
    make: altered(limitWhateverIsGranted),
  },
  {
    mistake: 'a process never ends its lease',
    caughtBy: places,
    make: withCalls(({ concurrency, ...call }) => ({
      ...call,
      concurrency: concurrency && { ...concurrency, active: Math.max(3, concurrency.active) },
    })),
  },
  {
    mistake: 'each process has all places',
    caughtBy: places,
    make: withCalls(({ concurrency, ...call }) => ({
      ...call,
      concurrency: concurrency && { ...concurrency, process: 'all' },
    })),
  },
  {
    mistake: 'a lease never expires',
    caughtBy: leasesExpire,
    make: withCalls(({ concurrency, ...call }) => ({
      ...call,
      concurrency: concurrency && { ...concurrency, leaseMs: 86_400_000 },
    })),
  },
  { mistake: 'a stale call charges', caughtBy: staleCalls, make: altered(chargeStaleCalls) },
  {
    mistake: 'no call is stale',
    caughtBy: staleCalls,
    make: altered((store) => ({
      ...store,
      decide: (calls) => store.decide(calls.map(withoutGeneration)),
    })),
  },
  {
    mistake: 'only a call of an older generation is stale',
    caughtBy: staleCalls,
    make: (deps) => altered((store) => decideNewer(store, deps))(deps),
  },
  ...brokenThresholds,
  ...brokenTrials,
  ...brokenGroups,
];

for (const form of allRedisForms) {
  // `npm test` checks the guarantees themselves on every form of Redis.
  describe(`on Redis as ${form.name} the contract catches a limiter in which`, { tags: tagsOf(form) }, () => {
    const place = startForm(form);
    it.concurrent.each(broken)('$mistake', async ({ caughtBy, make }) => {
      const subject = await redisSubject(make, place());
      const check = all[caughtBy];
      await expect(check?.(subject)).rejects.toThrow(/expected/);
      await subject.close();
    });
  });
}

it('the same guarantees hold for the real limiter', async () => {
  const subject = await redisSubject(createRedisQuotaStore);
  for (const name of new Set(broken.map(({ caughtBy }) => caughtBy))) await all[name]?.(subject);
  await subject.close();
});

type Deps = Parameters<MakeStore>[0];
type Keys = { readonly minute: string; readonly day: string };
type Use = { readonly isAdmitted: boolean; readonly minuteUsed: number; readonly dayUsed: number };
type Charge = (deps: Deps, call: QuotaCall, keys: Keys) => Promise<Use>;

/** A QuotaStore without bans. The store calls `charge` for each request. A call of 0 requests reads the counts. */
function limiter(charge: Charge, time: 'store clock' | 'own clock' = 'store clock'): MakeStore {
  const unneeded = () => Promise.reject(new Error('no guarantee of these limiters asks for this'));
  return (deps) => ({
    decide: (calls) => Promise.all(calls.map((call) => decideOne(deps, call))),
    read: unneeded,
    adjust: unneeded,
    confirmTold: unneeded,
  });

  async function decideOne(deps: Deps, call: QuotaCall): Promise<QuotaReply> {
    const nowMs =
      time === 'own clock'
        ? deps.nowMs()
        : await deps.redis.clockOf(redisKeys.quota.name(deps.redis.prefix, call.keyId));
    const minute = Math.floor(nowMs / deps.windowsMs.minute);
    const day = Math.floor(nowMs / deps.windowsMs.day);
    // Both keys are in one slot of a Cluster.
    const key = redisKeys.quota.name(deps.redis.prefix, call.keyId);
    const keys = { minute: `${key}:m${minute}`, day: `${key}:d${day}` };
    const [run] = call.runs;
    const use = run === undefined ? await read(deps, keys) : await charge(deps, call, keys);
    const state: QuotaState = {
      ...emptyQuotaState,
      ...{ minute, minuteUsed: use.minuteUsed, day, dayUsed: use.dayUsed },
    };
    const admitted = use.isAdmitted ? 1 : 0;
    const refused = (run?.requests ?? 0) - admitted;
    const outcome = { nowMs, admitted, refused, banned: 0, crowded: 0, admittedOf: [admitted], state };
    return { kind: 'decided', outcome };
  }
}

/** The real limiter with one change. */
function altered(alter: (store: QuotaStore) => QuotaStore): MakeStore {
  return (deps) => alter(createRedisQuotaStore(deps));
}

/** The real limiter with modified calls. */
function withCalls(change: (call: QuotaCall) => QuotaCall): MakeStore {
  return altered((store) => ({ ...store, decide: (calls) => store.decide(calls.map(change)) }));
}

/** The real limiter with modified runs. */
function withRuns(change: (run: Run, first: Run) => Run): MakeStore {
  return withCalls((call) => ({ ...call, runs: call.runs.map((run) => change(run, call.runs[0] ?? run)) }));
}

function strikeByUnits(store: QuotaStore): QuotaStore {
  return {
    ...store,
    decide: (calls) =>
      Promise.all(
        calls.map(async (call) => {
          const reply = await decideFirst(store, call);
          if (reply.kind !== 'decided') return reply;
          const { outcome } = reply;
          const strikes = outcome.state.strikes + outcome.refused * ((call.runs[0]?.units ?? 1) - 1);
          return { ...reply, outcome: { ...outcome, state: { ...outcome.state, strikes } } };
        }),
      ),
  };
}

function liftWithoutGeneration(deps: Deps): QuotaStore {
  const store = createRedisQuotaStore(deps);
  return {
    ...store,
    async adjust(keyId, change) {
      if (!change.lift) return store.adjust(keyId, change);
      await deps.redis.commands.hset(redisKeys.quota.name(deps.redis.prefix, keyId), {
        bannedUntilMs: 0,
        banLevel: 0,
        strikes: 0,
      });
      const changed = await store.read([keyId]);
      const [state] = changed.kind === 'read' ? changed.states : [];
      if (changed.kind !== 'read' || state === undefined) return store.adjust(keyId, change);
      return { kind: 'changed', nowMs: changed.nowMs, state };
    },
  };
}

/** The real limiter with modified grants. */
function withGrants(change: (grant: Grant) => Grant | undefined): MakeStore {
  return altered((store) => ({
    ...store,
    adjust: (keyId, { grant, ...others }) =>
      store.adjust(keyId, {
        ...others,
        ...(grant && { grant: (grant !== 'none' && change(grant)) || 'none' }),
      }),
  }));
}

function later(ms: number) {
  return ({ limits, untilMs }: Grant): Grant => ({ limits, untilMs: untilMs + ms });
}

function begun(laterMs: number) {
  return (grant: Grant): Grant => ({ ...grant, fromMs: (grant.fromMs ?? 0) + laterMs });
}

function chargeNothingUnderGrants(store: QuotaStore): QuotaStore {
  return {
    ...store,
    decide: (calls) =>
      Promise.all(
        calls.map(async (call) => {
          const looked = await decide(store, { ...call, runs: [] });
          if (looked.state.grant === undefined) return await decideFirst(store, call);
          const admitted = call.runs.reduce((sum, { requests }) => sum + requests, 0);
          return { kind: 'decided', outcome: { ...looked, admitted } };
        }),
      ),
  };
}

function limitWhateverIsGranted(store: QuotaStore): QuotaStore {
  const granted = new Map<string, Limits>();
  return {
    ...store,
    async adjust(keyId, change) {
      const { grant } = change;
      if (grant) granted.set(keyId, grant === 'none' ? [] : grant.limits);
      return await store.adjust(keyId, change);
    },
    decide: (calls) =>
      store.decide(
        calls.map((call) => {
          const windows = { ...toLimitFields(granted.get(call.keyId) ?? []), ...toLimitFields(call.limits) };
          return { ...call, limits: toLimits(windows) };
        }),
      ),
  };
}

function chargeStaleCalls(store: QuotaStore): QuotaStore {
  return {
    ...store,
    async decide(calls) {
      const replies = await store.decide(calls);
      const stale = calls.filter((_, index) => replies[index]?.kind === 'stale');
      await store.decide(stale.map(withoutGeneration));
      return replies;
    },
  };
}

function decideNewer(store: QuotaStore, { redis }: Deps): QuotaStore {
  return {
    ...store,
    decide: (calls) =>
      Promise.all(
        calls.map(async (call) => {
          const changed = await redis.commands.hget(
            redisKeys.quota.name(redis.prefix, call.keyId),
            'changedMs',
          );
          const isOlder = (call.changedMs ?? 0) < Number(changed ?? 0);
          return await decideFirst(store, isOlder ? call : withoutGeneration(call));
        }),
      ),
  };
}

function withoutGeneration(call: QuotaCall): QuotaCall {
  return { ...call, changedMs: undefined };
}

async function decideFirst(store: QuotaStore, call: QuotaCall): Promise<QuotaReply> {
  const [reply] = await store.decide([call]);
  if (reply === undefined) throw new Error('no reply');
  return reply;
}

/** The limits of the minute and the day, which are the only windows of these limiters. */
function limitsIn({ limits }: QuotaCall): { perMinute: number; perDay: number } {
  const { perMinute = 0, perDay = 0 } = toLimitFields(limits);
  return { perMinute, perDay };
}

async function read({ redis }: Deps, keys: Keys): Promise<Use> {
  const [minuteUsed, dayUsed] = (await redis.commands.mget(keys.minute, keys.day)).map(Number);
  return { isAdmitted: false, minuteUsed: minuteUsed ?? 0, dayUsed: dayUsed ?? 0 };
}

async function getThenSet(deps: Deps, call: QuotaCall, keys: Keys): Promise<Use> {
  const { minuteUsed, dayUsed } = await read(deps, keys);
  if (minuteUsed >= limitsIn(call).perMinute || dayUsed >= limitsIn(call).perDay) {
    return { isAdmitted: false, minuteUsed, dayUsed };
  }
  await deps.redis.commands.mset(keys.minute, minuteUsed + 1, keys.day, dayUsed + 1);
  return { isAdmitted: true, minuteUsed: minuteUsed + 1, dayUsed: dayUsed + 1 };
}

async function incrementThenCheck({ redis }: Deps, call: QuotaCall, keys: Keys): Promise<Use> {
  const minuteUsed = await redis.commands.incr(keys.minute);
  const dayUsed = await redis.commands.incr(keys.day);
  const isAdmitted = minuteUsed <= limitsIn(call).perMinute && dayUsed <= limitsIn(call).perDay;
  return { isAdmitted, minuteUsed, dayUsed };
}

const chargeOne = `
  local used = tonumber(redis.call('GET', KEYS[1]) or 0)
  if used < tonumber(ARGV[1]) then return {1, redis.call('INCR', KEYS[1])} end
  return {0, used}`;

/** Charges the day window, and only then checks the minute window. */
async function oneCallPerWindow({ redis }: Deps, call: QuotaCall, keys: Keys): Promise<Use> {
  const day = (await redis.commands.eval(chargeOne, 1, keys.day, limitsIn(call).perDay)) as [number, number];
  const minute = (await redis.commands.eval(chargeOne, 1, keys.minute, limitsIn(call).perMinute)) as [
    number,
    number,
  ];
  return { isAdmitted: day[0] === 1 && minute[0] === 1, minuteUsed: minute[1], dayUsed: day[1] };
}

function chargeOnRefusal(deps: Deps, call: QuotaCall, keys: Keys): Promise<Use> {
  return atomically(deps, call, keys, true);
}

const chargeBoth = `
  local minute, day = tonumber(redis.call('GET', KEYS[1]) or 0), tonumber(redis.call('GET', KEYS[2]) or 0)
  local admitted = minute < tonumber(ARGV[1]) and day < tonumber(ARGV[2])
  if admitted or ARGV[3] == '1' then minute, day = redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2]) end
  return {admitted and 1 or 0, minute, day}`;

async function atomically(deps: Deps, call: QuotaCall, keys: Keys, chargesRefused: boolean): Promise<Use> {
  const { perMinute, perDay } = limitsIn(call);
  const args = [perMinute, perDay, chargesRefused ? 1 : 0];
  const reply = await deps.redis.commands.eval(chargeBoth, 2, keys.minute, keys.day, ...args);
  const [isAdmitted, minuteUsed, dayUsed] = reply as [number, number, number];
  return { isAdmitted: isAdmitted === 1, minuteUsed, dayUsed };
}
