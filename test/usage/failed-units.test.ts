import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FailedHour } from '../../gateway/usage/read/failed-units.ts';
import type { Bucket } from '../../gateway/usage/record-fields.ts';
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
  /** Whether the trial has charged the request. */
  readonly isInTrial?: boolean;
  /** The groups of the plan and of the trial that have charged the request. */
  readonly group?: string | undefined;
  readonly groupInTrial?: string | undefined;
}

const failures = fc.array(
  fc.record({
    keyId: fc.constantFrom('acme', 'umbrella'),
    // Times around midnight, so that days, hours and minutes change often.
    atMs: fc.integer({ min: today - 2 * hourMs, max: today + 2 * hourMs }),
    upstream: fc.constantFrom('pets', 'payments', 'removed', undefined),
    units: fc.constantFrom(1, 2, 5, 10_000),
    isInTrial: fc.boolean(),
    group: fc.constantFrom(undefined, undefined, 'reports', '05', 'trials'),
    groupInTrial: fc.constantFrom(undefined, undefined, 'reports', 'big'),
  }),
  { maxLength: 40 },
);

function count({ recorder }: Usage, failure: Failure): void {
  const { keyId, atMs, upstream, units } = failure;
  const ended = { status: 502, ending: 'failedByUpstream', ownMs: 1, upstreamMs: 1 } as const;
  const charged = bucketsOf(failure).map((bucket) => ({ bucket, units }));
  recorder.ended({ ...ended, operationId: 'getPet', keyId, atMs, failed: { charged, upstream } });
}

function bucketsOf({ isInTrial, group, groupInTrial }: Failure): readonly Bucket[] {
  const ofGroup = group === undefined ? [] : [group];
  const ofTrial = groupInTrial === undefined ? [] : [`trial.${groupInTrial}`];
  return ['plan', ...ofGroup, ...(isInTrial ? ['trial', ...ofTrial] : [])];
}

/** The sum of the failed units of each minute, and of each name of a bucket and an upstream. */
function sumsOf(all: readonly (readonly [minute: number, name: string, units: number])[]) {
  const sums: Record<string, number> = {};
  for (const [minute, name, units] of all) {
    sums[`${minute} ${name}`] = (sums[`${minute} ${name}`] ?? 0) + units;
  }
  return sums;
}

function readSums(hours: readonly FailedHour[] | undefined) {
  return sumsOf(
    (hours ?? []).flatMap(({ hour, bucket, upstream, minutes }) =>
      minutes.map(({ minute, units }) => [hour * 60 + minute, `${bucket} ${upstream}`, units] as const),
    ),
  );
}

/** What the reader must find about the failures. */
function expectedSums(failures: readonly Failure[]) {
  return sumsOf(
    failures.flatMap((failure) => {
      const { atMs, upstream = '*', units } = failure;
      return bucketsOf(failure).map(
        (bucket) => [Math.floor(atMs / minuteMs), `${bucket} ${upstream}`, units] as const,
      );
    }),
  );
}

describe.each([
  { name: 'in memory', open: openInMemory },
  { name: 'in Redis', open: openOnRedis },
])('the failed units of the record $name', ({ open }) => {
  it('are exact by minute, bucket and upstream, also of an upstream that the configuration no longer has', async () => {
    await fc.assert(
      fc.asyncProperty(failures, fc.integer({ min: -130, max: 130 }), async (all, fromMinutes) => {
        const usage = await open();
        for (const failure of all) count(usage, failure);
        const keyIds = ['acme', 'umbrella', 'nobody'];
        const asked = { fromMs: today + fromMinutes * minuteMs, toMs: period.toMs };
        const found = await usage.reader.failedUnits(keyIds, asked, { known });
        const expected = keyIds.map((keyId) =>
          expectedSums(all.filter((one) => one.keyId === keyId && one.atMs >= asked.fromMs)),
        );
        expect(found?.map(readSums)).toEqual(expected);
        const ofPets = await usage.reader.failedUnits(['acme'], period, { known, only: 'pets' });
        expect(ofPets?.map(readSums)).toEqual([
          expectedSums(all.filter(({ keyId, upstream }) => keyId === 'acme' && upstream === 'pets')),
        ]);
      }),
      { numRuns: 15 },
    );
  });

  it.each(['trials', 'trial.big'])('of the bucket %s are found without any other group', async (bucket) => {
    const usage = await open();
    const ended = { status: 502, ending: 'failedByUpstream', ownMs: 1, upstreamMs: 1 } as const;
    const charged = ['plan', 'trial', bucket].map((of) => ({ bucket: of, units: 3 }));
    const failed = { charged, upstream: 'pets' };
    usage.recorder.ended({ ...ended, operationId: 'getPet', keyId: 'acme', atMs: today, failed });
    const [found] = (await usage.reader.failedUnits(['acme'], period, { known })) ?? [];
    expect(found?.map((hour) => hour.bucket).sort()).toEqual(['plan', 'trial', bucket].sort());
  });

  it('have at most eight upstreams by name on a day, and all further upstreams together', async () => {
    const usage = await open();
    const names = Array.from({ length: 11 }, (_, index) => `upstream-${index}`);
    for (const upstream of [...names, ...names]) {
      count(usage, { keyId: 'acme', atMs: today, upstream, units: 2, isInTrial: true });
    }
    const [found] = (await usage.reader.failedUnits(['acme'], period, { known })) ?? [];
    const minute = today / minuteMs;
    const ofBucket = (bucket: Bucket) => [
      ...names.slice(0, 8).map((upstream) => [minute, `${bucket} ${upstream}`, 4] as const),
      [minute, `${bucket} *`, 12] as const,
    ];
    expect(readSums(found)).toEqual(sumsOf(['plan', 'trial'].flatMap(ofBucket)));
  });
});
