import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { adjust, type Change, type ChargedUnits } from '../../gateway/quota/adjust.ts';
import { noBan, packHandBan } from '../../gateway/quota/bans.ts';
import { packGrant } from '../../gateway/quota/grants.ts';
import { parseHash, type QuotaState } from '../../gateway/quota/hash.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { createMemoryQuotaStore } from '../../gateway/request/limit/store/memory-quota-store.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import { calendarWindowsMs } from '../../gateway/shared/calendar-windows.ts';
import { type RedisSubject, redisSubject } from '../contract/redis-subject.ts';
import { limitsOf } from '../support/limits-of.ts';
import { freshPrefix } from '../support/redis.ts';
import * as arbitrary from './arbitraries.ts';

let subject: RedisSubject;
beforeAll(async () => {
  subject = await redisSubject(createRedisQuotaStore);
});
afterAll(() => subject.close());

type Hash = Readonly<Record<string, string>>;

const windowFields = ['minute', 'day', 'month', 'reports:minute', 'reports:day', 'big-2:month'];
const ofTrial = (field: string) => `trial:${field}`;
const banFields = Object.keys(noBan);
const count = fc.integer({ min: 0, max: 3 }).map(String);

/** Some of the counts of a side. The trial has begun if the hash has the fields of its ban. */
const sideFields = (place: (field: string) => string, requiredKeys: readonly string[]) =>
  fc.record(
    Object.fromEntries(
      [...banFields, ...windowFields.flatMap((field) => [field, `${field}Used`])].map((field) => [
        place(field),
        count,
      ]),
    ),
    { requiredKeys: requiredKeys.map(place) },
  );

/** Times are relative to the clock of Redis. */
const relativeMs = fc.constantFrom(-600_000, -1, 5_000, 600_000);
const grant = fc.record({ limits: arbitrary.grantedLimits, untilMs: relativeMs });

const handBan = fc.record({
  untilMs: relativeMs,
  reason: fc.constantFrom(undefined, 'asked by mail', '7 – ä'),
});

const stored = fc.record({
  plan: sideFields((field) => field, []),
  trial: fc.oneof(fc.constant({}), sideFields(ofTrial, banFields)),
  liftedMs: fc.option(relativeMs),
  resetMs: fc.option(relativeMs),
  grant: fc.option(grant),
  handBan: fc.option(handBan),
  leakedMs: fc.option(relativeMs),
  others: fc.record(
    {
      changedMs: fc.constant('1795.5'),
      leases: fc.constant('p1 3 1795'),
      told: fc.constant('day 1 80 reports:month 2 100'),
    },
    { requiredKeys: [] },
  ),
  expiresInMs: fc.constantFrom(60_000, 3_000_000),
});

const units: fc.Arbitrary<ChargedUnits> = fc.tuple(
  fc.constantFrom(...windowFields, ...windowFields.map(ofTrial)),
  fc.integer({ min: 0, max: 3 }),
  fc.integer({ min: 0, max: 4 }),
);
const changed = fc.record({
  verb: fc.constantFrom('ban', 'lift', 'reset', 'neither' as const),
  handBan,
  units: fc.array(units, { maxLength: 8 }),
  grant: fc.option(fc.oneof(grant, fc.constant('none' as const))),
  bansMaxMs: fc.constantFrom(1_000, 1_000_000),
});

it('Redis and TypeScript change the same fields of a hash, and the hash never expires earlier than before or than the change needs', async () => {
  const store = await subject.open(calendarWindowsMs);
  await fc.assert(
    fc.asyncProperty(stored, changed, async (begin, { verb, bansMaxMs, handBan, ...rest }) => {
      const keyId = freshPrefix();
      const name = redisKeys.quota.name(subject.prefix, keyId);
      const startMs = await subject.nowMs();
      const before = hashFrom(begin, startMs);
      const expiresMs = Object.keys(before).length === 0 ? undefined : startMs + begin.expiresInMs;
      if (expiresMs !== undefined) {
        await subject.client.hset(name, before);
        await subject.client.pexpireat(name, expiresMs);
      }
      const bans = { after: 1, withinMs: 1, forMs: 1, maxMs: bansMaxMs };
      const change: Change = {
        units: rest.units,
        ...(rest.grant && {
          grant: rest.grant === 'none' ? 'none' : { ...rest.grant, untilMs: startMs + rest.grant.untilMs },
        }),
        ...{
          ban: { ban: { ...handBan, untilMs: startMs + handBan.untilMs }, bans },
          lift: { lift: true, bans } as const,
          reset: { reset: true, bans } as const,
          neither: {},
        }[verb],
      };
      const reply = await store.adjust(keyId, change);
      if (reply.kind !== 'changed') throw new Error(reply.reason);
      const { state, neededUntilMs } = adjust(stateOf(before), change, reply.nowMs);
      const expected = hashOf(state, before, change);
      const after = await subject.client.hgetall(name);
      expect(after).toEqual(expected);
      expect(reply.state).toEqual(stateOf(after));
      const isStored = Object.keys(expected).length > 0;
      const expectedMs = Math.max(expiresMs ?? 0, neededUntilMs + 1_000);
      expect(await subject.client.pexpiretime(name)).toBe(isStored ? expectedMs : -2);
    }),
    { numRuns: 1_000, interruptAfterTimeLimit: 8_000 },
  );
});

it('a field that is no number makes a change fail before it writes anything', async () => {
  const store = await subject.open(calendarWindowsMs);
  const keyId = freshPrefix();
  const name = redisKeys.quota.name(subject.prefix, keyId);
  const before = { day: '7', dayUsed: 'many', month: '7', monthUsed: '9', strikes: '3' };
  await subject.client.hset(name, before);
  const bans = { after: 1, withinMs: 1, forMs: 1, maxMs: 1_000 };
  const change = {
    units: [
      ['month', 7, 2],
      ['day', 7, 2],
    ],
    lift: true,
    bans,
  } as const;
  expect(await store.adjust(keyId, change)).toMatchObject({ kind: 'failed' });
  expect(await subject.client.hgetall(name)).toEqual(before);
});

it('in memory, a change and a later decision never shorten the life of the counts', async () => {
  let nowMs = 1_000_000_000;
  const store = createMemoryQuotaStore({
    nowMs: () => nowMs,
    bounds: { rememberedKeysMax: 9, windowsMs: calendarWindowsMs },
  });
  const bans = { after: 9, withinMs: 1, forMs: 1, maxMs: 600_000 };
  const stateNow = async () => {
    const read = await store.read(['k']);
    return read.kind === 'read' ? read.states[0] : undefined;
  };
  await store.adjust('k', { lift: true, bans });
  const { liftedMs = 0 } = (await stateNow()) ?? {};
  expect(liftedMs).toBe(nowMs);
  await store.adjust('k', { grant: { limits: limitsOf({ perDay: 5 }), untilMs: nowMs + 60_000 } });
  await store.adjust('k', { grant: 'none' });
  await store.decide([{ keyId: 'k', limits: [], bans: { ...bans, maxMs: 1 }, runs: [] }]);
  nowMs = liftedMs + 600_000 + 999;
  expect(await stateNow()).toMatchObject({ liftedMs });
  nowMs += 1;
  expect(await stateNow()).toMatchObject({ liftedMs: 0 });
});

function hashFrom(begin: typeof stored extends fc.Arbitrary<infer T> ? T : never, nowMs: number): Hash {
  const { plan, trial, liftedMs, resetMs, grant, handBan, leakedMs, others } = begin;
  const text = grant && packGrant({ ...grant, untilMs: nowMs + grant.untilMs });
  const mark = leakedMs === null ? '' : ` leaked ${nowMs + leakedMs}`;
  return {
    ...{ ...plan, ...trial, ...others },
    ...(handBan && { handBan: packHandBan({ ...handBan, untilMs: nowMs + handBan.untilMs }) }),
    ...(liftedMs !== null && { liftedMs: String(nowMs + liftedMs) }),
    ...(resetMs !== null && { resetMs: String(nowMs + resetMs) }),
    ...((text || mark !== '') && { grant: `${text ?? '0'}${mark}` }),
  };
}

function stateOf(hash: Hash): QuotaState {
  return parseHash(Object.fromEntries(Object.entries(hash).map(([name, text]) => [name, Buffer.from(text)])));
}

/** Returns the hash after a change. A count of 0 is only in the hash if the hash had the field before. */
function hashOf(state: Readonly<QuotaState>, before: Hash, change: Change): Hash {
  const { grant: _, told: __, handBan, trial = {}, ...plan } = state;
  const inTrial = Object.entries<number>(trial).map(([name, one]): [string, number] => [ofTrial(name), one]);
  const counts = [...Object.entries<number>(plan), ...inTrial].filter(
    ([name, one]) => one !== 0 || (!change.reset && before[name] !== undefined),
  );
  const { changedMs, leases, told } = before;
  const grant = change.grant === undefined ? before.grant : grantOf(state, before);
  const others = {
    ...{ changedMs, leases, told: change.reset ? undefined : told, grant },
    handBan: handBan && packHandBan(handBan),
  };
  const texts = [...counts, ...Object.entries(others)].filter(([, one]) => one !== undefined);
  return Object.fromEntries(texts.map(([name, one]) => [name, String(one)]));
}

function grantOf({ grant }: Readonly<QuotaState>, before: Hash): string | undefined {
  const mark = before.grant?.match(/ leaked \d+/)?.[0] ?? '';
  if (grant === undefined) return mark === '' ? undefined : `0${mark}`;
  return packGrant(grant) + mark;
}
