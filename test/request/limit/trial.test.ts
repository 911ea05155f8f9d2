import fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { redisKeys } from '../../../gateway/redis/redis-keys.ts';
import { createLimiter, type Limiter } from '../../../gateway/request/limit/limiter.ts';
import type { BanPolicy, Decision, Key, Limits } from '../../../gateway/shared/model.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import * as arbitrary from '../../quota/arbitraries.ts';
import { connectRedis, type RedisPlace } from '../../support/connect-redis.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { allRedisForms, startForm, tagsOf } from '../../support/start-form.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { decideCosts, keyWith, outcomeIn } from './limiter-fixture.ts';

const step = fc.record({
  process: fc.nat({ max: 2 }),
  /** The requests of one turn of the event loop, with their costs. */
  costs: fc.array(arbitrary.units, { minLength: 1, maxLength: 8 }),
  verb: fc.constantFrom(
    ...Array<undefined>(20).fill(undefined),
    'lift' as const,
    'reset' as const,
    'grant' as const,
  ),
  grant: arbitrary.limits,
});

const bans = fc.integer({ min: 1, max: 12 }).map((after) => ({ ...farAway, after }));

for (const form of allRedisForms) {
  describe(`a trial on ${form.name}`, { tags: tagsOf(form, ['a Cluster']) }, () => {
    const place = startForm(form);

    it.each([
      ['one process, which may also hold refusals back', 1, { strikesHeldShareMax: 0.5 }],
      ['three processes', 3, {}],
    ])(
      'refuses the requests that a second fleet refuses whose plan is the trial: %s',
      async (_, count, bounds) => {
        const fleets = await openFleets(count, place(), bounds);
        await fc.assert(
          fc.asyncProperty(
            arbitrary.limits,
            arbitrary.limits,
            bans,
            fc.array(step, { maxLength: 25 }),
            async (limits, trial, bans, steps) => {
              const tried = keyWith(limits, trial);
              const second = keyWith(trial);
              for (const { process, costs, verb, grant } of steps) {
                const [one, other] = [fleets.tried(process), fleets.second(process)];
                // Another process may refuse requests of a banned key for a while after the ban was lifted.
                if (verb !== undefined && count === 1)
                  await changeBoth(verb, grant, bans, [
                    [one, tried],
                    [other, second],
                  ]);
                // The gateway decides a request twice that costs more than a limit, which would change the order of a turn.
                const isDear = costs.some((cost) => [...limits, ...trial].some(({ max }) => max < cost));
                for (const turn of isDear ? costs.map((cost) => [cost]) : [costs]) {
                  const ofTrial = await decideCosts(one, tried, turn, bans);
                  const ofSecond = await decideCosts(other, second, turn, bans);
                  const expected = ofSecond.map((decision, at) => outcomeIn(decision, turn[at] ?? 1));
                  expect(ofTrial.map((decision) => decision.trial)).toEqual(expected);
                }
              }
            },
          ),
          { numRuns: 40, interruptAfterTimeLimit: 6_000 },
        );
        await fleets.close();
      },
      30_000,
    );
  });
}

it('a process decides the trial too if it has never reached Redis', async () => {
  const [{ limiter }] = await openLimiters(1, { url: 'redis://127.0.0.1:1' }, { storeStartTimeoutMs: 1 });
  const key = keyWith(limitsOf({ perHour: 5 }), limitsOf({ perHour: 3 }));
  const decisions = await decideCosts(limiter, key, Array(6).fill(1), farAway);
  expect(decisions.map(({ kind, source, trial }) => [kind, source, trial])).toEqual([
    ...Array(3).fill(['admitted', 'local', 'admitted']),
    ...Array(2).fill(['admitted', 'local', 'hour']),
    ['refused', 'local', 'hour'],
  ]);
  await limiter.close();
});

it('a trial that is larger than the plan admits what the plan refuses, also during a ban of the plan', async () => {
  const [{ limiter }] = await openLimiters(1, { url: redisUrl() });
  const key = keyWith(limitsOf({ perHour: 2 }), limitsOf({ perHour: 6 }));
  const bans = { ...farAway, after: 3 };
  const decisions: Decision[] = [];
  for (let at = 0; at < 10; at++) decisions.push(...(await decideCosts(limiter, key, [1], bans)));
  expect(decisions.map(({ kind, trial }) => `${kind} ${trial}`)).toEqual([
    ...Array(2).fill('admitted admitted'),
    ...Array(2).fill('refused admitted'),
    ...Array(2).fill('banned admitted'),
    ...['banned hour', 'banned hour', 'banned banned', 'banned banned'],
  ]);
  await limiter.close();
});

it('a trial that begins in the middle of a window begins with the used units, strikes and bans', async () => {
  const [{ limiter }] = await openLimiters(1, { url: redisUrl() });
  const before = keyWith(limitsOf({ perHour: 5 }));
  await decideCosts(limiter, before, [1, 1, 1], farAway);
  const tried = { ...before, trial: limitsOf({ perHour: 4 }) };
  const trialsOf = async (key: Key, requests: number) =>
    (await decideCosts(limiter, key, Array(requests).fill(1), farAway)).map(({ trial }) => trial);
  expect(await trialsOf(tried, 2)).toEqual(['admitted', 'hour']);
  // The trial has another limit now, and the same counts.
  expect(await trialsOf({ ...before, trial: limitsOf({ perHour: 5 }) }, 2)).toEqual(['admitted', 'hour']);
  await limiter.close();
});

it('a request is decided with the trial that its own configuration states, also beside others in one turn', async () => {
  const [{ limiter }] = await openLimiters(1, { url: redisUrl() });
  const before = keyWith(limitsOf({ perHour: 9 }));
  const tried = { ...before, trial: limitsOf({ perHour: 2 }) };
  const turn = [before, tried, tried, before];
  const decisions = await Promise.all(turn.map((key) => decideCosts(limiter, key, [1], farAway)));
  expect(decisions.flat().map(({ trial }) => trial)).toEqual([undefined, 'admitted', 'hour', undefined]);
  await limiter.close();
});

it('a trial charges requests of one turn that the plan decides with the cost 0, each with its own cost', async () => {
  const [{ limiter }] = await openLimiters(1, { url: redisUrl() });
  const key = keyWith(limitsOf({ perHour: 3 }), limitsOf({ perHour: 10 }));
  const told = async (...costs: number[]) =>
    (await decideCosts(limiter, key, costs, farAway)).map(({ units, trial }) => `${units} ${trial}`);
  expect(await told(0, 5, 0, 5)).toEqual(Array(4).fill('0 admitted'));
  expect(await told(5, 0, 1)).toEqual(['0 hour', '0 admitted', '1 hour']);
  await limiter.close();
});

it('a trial charges a request once whose cost only a grant admits', async () => {
  const [{ limiter }] = await openLimiters(1, { url: redisUrl() });
  const key = keyWith(limitsOf({ perHour: 3 }), limitsOf({ perDay: 12 }));
  await limiter.adjust(key.id, {
    grant: { limits: limitsOf({ perHour: 20 }), untilMs: Date.now() + 600_000 },
  });
  const told: string[] = [];
  for (const cost of [5, 5, 5, 2])
    for (const { units, trial } of await decideCosts(limiter, key, [cost], farAway))
      told.push(`${units} ${trial}`);
  expect(told).toEqual(['5 admitted', '5 admitted', '5 day', '2 admitted']);
  await limiter.close();
});

it('a process that has reached the concurrency limit of a key knows whether the trial has banned the key', async () => {
  const [{ limiter }] = await openLimiters(1, { url: redisUrl() });
  const key = { ...keyWith(limitsOf({ perHour: 9 }), limitsOf({ perHour: 1 })), concurrent: 2 };
  const bans = { ...farAway, after: 1 };
  const told = async () =>
    (await decideCosts(limiter, key, [1], bans)).map(({ kind, trial }) => `${kind} ${trial}`);
  expect([await told(), await told(), await told()].flat()).toEqual([
    ...['admitted admitted', 'admitted banned', 'crowded banned'],
  ]);
  await limiter.close();
});

it('the counts of a key are kept while the trial counts a refusal of the key', async () => {
  const [{ limiter, prefix }] = await openLimiters(1, { url: redisUrl() });
  const key = keyWith(limitsOf({ perSecond: 9 }), limitsOf({ perSecond: 2 }));
  const bans = { ...farAway, withinMs: 36_000_000 };
  expect((await decideCosts(limiter, key, [1, 1, 1], bans)).map(({ trial }) => trial).at(-1)).toBe('second');
  const redis = await connectRedis({ prefix, place: { url: redisUrl() } });
  const leftMs = await redis.commands.pttl(redisKeys.quota.name(prefix, key.id));
  expect(leftMs).toBeGreaterThan(bans.withinMs - 600_000);
  redis.close();
  await limiter.close();
});

it('a key of the directory with a trial and a concurrency limit is stale when it has changed', async () => {
  const [{ limiter, prefix }] = await openLimiters(1, { url: redisUrl() });
  const redis = await connectRedis({ prefix, place: { url: redisUrl() } });
  const key = { ...keyWith(limitsOf({ perDay: 9 }), limitsOf({ perDay: 2 })), concurrent: 3, generation: 5 };
  const changed = (at: number) => redis.commands.hset(redisKeys.quota.name(prefix, key.id), 'changedMs', at);
  await changed(5);
  const told = async (...costs: number[]) => {
    const decisions = await decideCosts(limiter, key, costs, farAway);
    return decisions.map(({ kind, trial }) => `${kind} ${trial}`);
  };
  const first = ['admitted admitted', 'admitted day', 'admitted admitted', 'crowded concurrent'];
  expect(await told(1, 2, 0, 0)).toEqual(first);
  expect(await told(1)).toEqual(['crowded concurrent']);
  for (let ended = 0; ended < 3; ended++) limiter.release(key.id);
  expect(await told(1)).toEqual(['admitted admitted']);
  await changed(6);
  expect(await told(1)).toEqual([]);
  redis.close();
  await limiter.close();
});

const farAway: BanPolicy = { after: 1_000_000, withinMs: 600_000, forMs: 600_000, maxMs: 6_000_000 };

/** Opens two fleets on one Redis. The keys of the fleets differ, so their counts differ too. */
async function openFleets(count: number, place: RedisPlace, bounds: Partial<Bounds>) {
  const all = await openLimiters(2 * count, place, bounds);
  const limiters = all.map(({ limiter }) => limiter);
  return {
    tried: (process: number) => limiters[process % count] as Limiter,
    second: (process: number) => limiters[count + (process % count)] as Limiter,
    close: () => Promise.all(limiters.map((limiter) => limiter.close())),
  };
}

/** Opens limiters whose windows have just begun. */
async function openLimiters(count: number, place: RedisPlace, bounds: Partial<Bounds> = {}) {
  const windowsMs = freshWindows(Date.now());
  const prefix = freshPrefix();
  const limiters = Array.from({ length: count }, () => {
    const limiter = createLimiter({
      redis: { ...place, prefix, onFailure: 'local' },
      log: pino({ level: 'silent' }),
      nowMs: Date.now,
      planOf: () => 'free',
      bounds: tunedBounds({ ...patientStore, ...bounds, windowsMs }),
    });
    return { limiter, windowsMs, prefix };
  });
  return limiters as [(typeof limiters)[number], ...typeof limiters];
}

async function changeBoth(
  verb: 'lift' | 'reset' | 'grant',
  limits: Limits,
  bans: BanPolicy,
  fleets: readonly (readonly [Limiter, Key])[],
): Promise<void> {
  const untilMs = Date.now() + 600_000;
  for (const [limiter, { id }] of fleets) {
    if (verb === 'lift') await limiter.adjust(id, { lift: true, bans });
    else if (verb === 'reset') await limiter.adjust(id, { reset: true, bans });
    else await limiter.adjust(id, { grant: { limits, untilMs } });
  }
}
