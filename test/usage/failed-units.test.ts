import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FailedHour } from '../../gateway/usage/read/failed-units.ts';
import { createUsage, type Usage } from '../../gateway/usage/usage.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const today = Math.floor(Date.now() / dayMs) * dayMs;
const period = { fromMs: today - dayMs, toMs: today + 2 * dayMs - 1 };
const known = ['pets', 'payments'];
const bounds = tunedBounds({ ...patientStore, usageFlushIntervalMs: 5, usageSlicesPerFlush: 1 });

async function openOnRedis(): Promise<Usage> {
  const redis = await connectRedis({ prefix: freshPrefix(), place: { url: redisUrl() }, bounds });
  const usage = createUsage({ redis, keepDays: 8, minuteMs, nowMs: Date.now, bounds });
  onTestFinished(async () => {
    await usage.close();
    redis.close();
  });
  return usage;
}

async function openInMemory(): Promise<Usage> {
  const usage = createUsage({ keepDays: 8, minuteMs, nowMs: () => today + dayMs, bounds });
  onTestFinished(() => usage.close());
  return usage;
}

interface Failure {
  readonly keyId: string;
  readonly atMs: number;
  readonly upstream: string | undefined;
  readonly units: number;
}

const failures = fc.array(
  fc.record({
    keyId: fc.constantFrom('acme', 'umbrella'),
    // Times around midnight, so that days, hours and minutes change often.
    atMs: fc.integer({ min: today - 2 * hourMs, max: today + 2 * hourMs }),
    upstream: fc.constantFrom('pets', 'payments', 'removed', undefined),
    units: fc.constantFrom(1, 2, 5, 10_000),
  }),
  { maxLength: 40 },
);

function count({ recorder }: Usage, { keyId, atMs, upstream, units }: Failure): void {
  const ended = { status: 502, ending: 'failedByUpstream', ownMs: 1, upstreamMs: 1 } as const;
  recorder.ended({ ...ended, operationId: 'getPet', keyId, atMs, failed: { units, upstream } });
}

/** The sum of the failed units of each minute and upstream. */
function sumsOf(all: readonly (readonly [minute: number, upstream: string, units: number])[]) {
  const sums: Record<string, number> = {};
  for (const [minute, upstream, units] of all) {
    sums[`${minute} ${upstream}`] = (sums[`${minute} ${upstream}`] ?? 0) + units;
  }
  return sums;
}

function readSums(hours: readonly FailedHour[] | undefined) {
  return sumsOf(
    (hours ?? []).flatMap(({ hour, upstream, minutes }) =>
      minutes.map(({ minute, units }) => [hour * 60 + minute, upstream, units] as const),
    ),
  );
}

describe.each([
  { name: 'in memory', open: openInMemory },
  { name: 'in Redis', open: openOnRedis },
])('the failed units of the record $name', ({ open }) => {
  it('are exact by minute and upstream, also of an upstream that the configuration no longer has', async () => {
    await fc.assert(
      fc.asyncProperty(failures, fc.integer({ min: -130, max: 130 }), async (all, fromMinutes) => {
        const usage = await open();
        for (const failure of all) count(usage, failure);
        const keyIds = ['acme', 'umbrella', 'nobody'];
        const asked = { fromMs: today + fromMinutes * minuteMs, toMs: period.toMs };
        const found = await usage.reader.failedUnits(keyIds, asked, { known });
        const expected = keyIds.map((keyId) =>
          sumsOf(
            all
              .filter((one) => one.keyId === keyId && one.atMs >= asked.fromMs)
              .map(({ atMs, upstream = '*', units }) => [Math.floor(atMs / minuteMs), upstream, units]),
          ),
        );
        expect(found?.map(readSums)).toEqual(expected);
        const ofPets = await usage.reader.failedUnits(['acme'], period, { known, only: 'pets' });
        expect(ofPets?.map(readSums)).toEqual([
          sumsOf(
            all
              .filter(({ keyId, upstream }) => keyId === 'acme' && upstream === 'pets')
              .map(({ atMs, units }) => [Math.floor(atMs / minuteMs), 'pets', units]),
          ),
        ]);
      }),
      { numRuns: 15 },
    );
  });

  it('have at most eight upstreams by name on a day, and all further upstreams together', async () => {
    const usage = await open();
    const names = Array.from({ length: 11 }, (_, index) => `upstream-${index}`);
    for (const upstream of [...names, ...names])
      count(usage, { keyId: 'acme', atMs: today, upstream, units: 2 });
    const [found] = (await usage.reader.failedUnits(['acme'], period, { known })) ?? [];
    const minute = today / minuteMs;
    const named = names.slice(0, 8).map((upstream) => [minute, upstream, 4] as const);
    expect(readSums(found)).toEqual(sumsOf([...named, [minute, '*', 12]]));
  });
});
