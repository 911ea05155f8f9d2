import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Decision, Limits, TrialOutcome } from '../../gateway/shared/model.ts';
import type { TrialUsage } from '../../gateway/usage/read/trial-reader.ts';
import { trialName } from '../../gateway/usage/trial.ts';
import { createUsage, type Usage } from '../../gateway/usage/usage.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { limitsOf } from '../support/limits-of.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const today = Math.floor(Date.now() / dayMs) * dayMs;

/** Two trials with the same windows. A plan has one trial at a time, and an edit replaces it. */
const small: Limits = [{ window: 'minute', max: 40 }];
const edited: Limits = [
  { window: 'minute', max: 30 },
  { window: 'day', max: 1_000 },
];

interface Event {
  readonly keyId: string;
  readonly atMs: number;
  /** `403`: the request costs more than a limit of the plan. */
  readonly now: 'admitted' | 'refused' | '403';
  /** Absent for a request of a plan without a trial. */
  readonly tried?: { readonly trial: 'small' | 'edited'; readonly outcome: TrialOutcome } | undefined;
}

const trialOutcomes = [
  'admitted',
  'minute',
  'day',
  'second',
  'hour',
  'month',
  'banned',
  'concurrent',
] as const;

// Times around two midnights, so that days and hours change often.
const times = fc.integer({ min: today - 2 * hourMs, max: today + dayMs + 2 * hourMs });

const events = fc.array(
  fc.record({
    keyId: fc.constantFrom('acme', 'umbrella'),
    atMs: times,
    now: fc.constantFrom('admitted', 'refused', '403'),
    tried: fc.option(
      fc.record({
        trial: fc.constantFrom('small', 'edited'),
        outcome: fc.constantFrom('admitted', ...trialOutcomes),
      }),
      { nil: undefined, freq: 5 },
    ),
  }),
  { maxLength: 40 },
);

function count({ recorder }: Usage, { keyId, atMs, now, tried }: Event): void {
  const inForce = { name: 'minute', limit: 60, remaining: 0, resetMs: 0, windowSeconds: 60 } as const;
  const cost = 5;
  const figures = {
    units: now === '403' ? 0 : cost,
    rateLimit: { nowMs: atMs, windows: [inForce], inForce },
    source: 'shared',
    ...(tried && { trial: tried.outcome }),
  } as const;
  const decision: Decision =
    now === 'refused' ? { ...figures, kind: 'refused', retryAtMs: 0 } : { ...figures, kind: 'admitted' };
  const ofTrial = tried && { limits: { small, edited }[tried.trial], cost };
  recorder.decided(keyId, decision, '192.0.2.1', '01234567', ofTrial);
}

/** What the trial `small` decided on the requests of a key in a period of whole minutes. */
function expected(all: readonly Event[], keyId: string, fromMs: number, toMs: number): TrialUsage {
  const firstMs = Math.floor(fromMs / minuteMs) * minuteMs;
  const own = all.filter(
    ({ atMs, ...event }) =>
      event.keyId === keyId &&
      event.tried?.trial === 'small' &&
      atMs >= firstMs &&
      atMs < Math.floor(toMs / minuteMs) * minuteMs + minuteMs,
  );
  const refused = own.filter(({ tried }) => tried?.outcome !== 'admitted');
  const byOutcome = Map.groupBy(refused, ({ tried }) => tried?.outcome ?? 'admitted');
  const minutes = (those: readonly Event[]) =>
    those.map(({ atMs }) => Math.floor(atMs / minuteMs) * minuteMs).sort((a, b) => a - b);
  return {
    requests: own.length,
    refused: refused.length,
    refusedBy: Object.fromEntries([...byOutcome].map(([outcome, those]) => [outcome, those.length])),
    refusedNow: own.filter(({ now }) => now !== 'admitted').length,
    firstMs: minutes(own)[0],
    firstRefusedMs: minutes(refused)[0],
    lastRefusedMs: minutes(refused).at(-1),
  };
}

const bounds = tunedBounds({ ...patientStore, usageCloseTimeoutMs: 20_000 });

function openInMemory(): Usage {
  return createUsage({ keepDays: 8, minuteMs, nowMs: () => today, bounds });
}

async function openOnRedis(prefix: string): Promise<Usage> {
  const redis = await connectRedis({ prefix, place: { url: redisUrl() }, bounds });
  return createUsage({ redis, keepDays: 8, minuteMs, nowMs: () => today, bounds });
}

describe('the record of a trial', () => {
  it('has each request that the trial decided, by minute and by what would have refused it', async () => {
    await fc.assert(
      fc.asyncProperty(events, times, times, async (all, one, other) => {
        const [fromMs, toMs] = [Math.min(one, other), Math.max(one, other)];
        const usage = openInMemory();
        for (const event of all) count(usage, event);
        const found = await usage.reader.trialOf(['acme', 'umbrella'], small, { fromMs, toMs });
        await usage.close();
        expect(found).toEqual(['acme', 'umbrella'].map((id) => expected(all, id, fromMs, toMs)));
      }),
      { numRuns: 100 },
    );
  });

  it('is the sum of all processes, sent or not', async () => {
    const prefix = freshPrefix();
    const [one, other] = [await openOnRedis(prefix), await openOnRedis(prefix)];
    onTestFinished(() => other.close());
    const all = fc.sample(events, { numRuns: 10, seed: 1 }).flat();
    for (const [index, event] of all.entries()) count(index % 2 === 0 ? one : other, event);
    await one.close();
    const period = { fromMs: today - dayMs, toMs: today + 2 * dayMs - 1 };
    expect(await other.reader.trialOf(['acme'], small, period)).toEqual([
      expected(all, 'acme', period.fromMs, period.toMs),
    ]);
    expect(all.filter(({ tried }) => tried?.trial === 'small').length).toBeGreaterThan(10);
  });

  it('begins at zero when the trial is edited', async () => {
    const usage = openInMemory();
    onTestFinished(() => usage.close());
    const at = { keyId: 'acme', atMs: today, now: 'admitted' } as const;
    count(usage, { ...at, tried: { trial: 'small', outcome: 'minute' } });
    count(usage, { ...at, tried: { trial: 'edited', outcome: 'admitted' } });
    count(usage, { ...at, tried: { trial: 'small', outcome: 'admitted' } });
    const period = { fromMs: today, toMs: today };
    const [ofEdited] = (await usage.reader.trialOf(['acme'], edited, period)) ?? [];
    expect(ofEdited).toMatchObject({ requests: 1, refused: 0, refusedBy: {} });
    const [ofSmall] = (await usage.reader.trialOf(['acme'], small, period)) ?? [];
    expect(ofSmall).toMatchObject({ requests: 2, refused: 1, refusedBy: { minute: 1 } });
  });

  it('begins at zero when the operations of a group in the trial are edited, and not when their order is', () => {
    const nameOf = (operations: readonly string[]) =>
      trialName(limitsOf({ perMinute: 5, groups: { reports: { operations, perMinute: 5 } } }));
    expect(nameOf(['a', 'b'])).toBe(nameOf(['b', 'a']));
    expect(nameOf(['a', 'b'])).not.toBe(nameOf(['a']));
    expect(trialName(limitsOf({ perMinute: 40, perDay: 1_000 }))).toBe('minute40,day1000');
  });

  it('does not exist for a plan without a trial', async () => {
    const usage = openInMemory();
    onTestFinished(() => usage.close());
    count(usage, { keyId: 'acme', atMs: today, now: 'refused' });
    const [record] = usage.recorder.unsent([{ kind: 'day', keyId: 'acme', day: Math.floor(today / dayMs) }]);
    const fields = [...(record?.counted.keys() ?? [])];
    expect(fields.filter((field) => field.startsWith('trial'))).toEqual([]);
    expect(fields.length).toBeGreaterThan(0);
  });
});
