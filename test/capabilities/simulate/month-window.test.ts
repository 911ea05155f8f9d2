import { expect, it } from 'vitest';
import { createSimulations } from '../../../gateway/capabilities/simulate/operators/simulations.ts';
import type { RecordedChange } from '../../../gateway/fleet/changes.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { KeyMinutesBuilder } from '../../../gateway/usage/read/key-minutes.ts';
import { emptyTally, outcomes } from '../../../gateway/usage/tally.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { settingsOf } from '../../support/settings-of.ts';

const [dayMs, minuteMs] = [86_400_000, 60_000];
const nowMs = Date.UTC(2026, 10, 28, 12);
const today = Math.floor(nowMs / dayMs);
const firstMinute = (day: number) => (day * dayMs) / minuteMs;

/** Simulates today for the key `acme`, of which 100 requests a day are on record since 1 November, and whose minutes are kept for a week. */
async function simulated(limitsNow: object, changes: readonly object[], refusedToday: number) {
  const key = makeKey({ id: 'acme', plan: 'own', limits: limitsNow });
  const settings = await settingsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    plans: { own: 'custom', free: { perDay: 1_000 } },
    keys: [key.entry],
  });
  const minutesSince = (fromMs: number) => {
    const builder = new KeyMinutesBuilder();
    for (let day = fromMs / dayMs; day < today; day++)
      builder.add(firstMinute(day), outcomes.indexOf('admitted'), 100);
    builder.add(firstMinute(today), outcomes.indexOf('admitted'), 100 - refusedToday);
    builder.add(firstMinute(today), outcomes.indexOf('month'), refusedToday);
    return builder.finish();
  };
  const totals = Array.from(
    { length: 27 },
    (_, ago) => [today - 1 - ago, { ...emptyTally, admitted: 100 }] as const,
  );
  const simulate = createSimulations(
    {
      settings: () => settings,
      nowMs: () => nowMs,
      bounds: defaultBounds,
      usage: {
        state: () => ({ keptDays: 8 }),
        totals: async () => [new Map(totals)],
        reader: {
          active: async () => [{ keyId: 'acme', lastSeenMs: nowMs }],
          minutesOf: async (_: unknown, { fromMs }: { readonly fromMs: number }) => [minutesSince(fromMs)],
          minutes: async () => [],
        },
      },
    } as unknown as Parameters<typeof createSimulations>[0],
    {
      read: async () => ({
        isComplete: true,
        changes: changes.map((one) => ({ id: '1', process: 'p', by: 'ada', ...one })) as RecordedChange[],
      }),
    },
    [],
  );
  const asked = { period: { fromMs: today * dayMs, toMs: nowMs }, keysListed: 10 };
  const found = await simulate({ ...asked, edits: { plans: new Map(), keys: new Map() } });
  return found?.verdict.reproduced;
}

const on = (day: number) => new Date(Date.UTC(2026, 10, day)).toISOString();
const reload = (day: number, acme: object) => ({
  action: 'reload',
  at: on(day),
  limitsBefore: { keys: { acme } },
});
const month = (perMonth: number) => ({ plan: 'own', limits: { perMonth } });
const unlimited = { plan: 'own', limits: { perDay: 1_000 } };

// Before today, 2,700 units are on record since the 1st, and 2,500 since the 3rd.
it.each<[string, number, object[], number]>([
  ['that had its limit in the whole month', 2_750, [], 50],
  ['that was issued in this month', 2_550, [{ action: 'create', key: 'acme', at: on(3) }], 50],
  ['that got its limit in this month', 2_550, [reload(3, unlimited)], 50],
  ['whose limit changed in this month', 2_750, [reload(3, month(9_000))], 50],
  ['that had no limit for two days', 2_550, [reload(5, unlimited), reload(3, month(9_000))], 50],
])(
  'a month window counts the days of which only totals are on record, for a key %s',
  async (_, perMonth, changes, refused) => {
    const differs = {
      recordedRefusals: refused,
      replayedRefusals: refused,
      minutesThatDiffer: 0,
      differences: [],
    };
    expect(await simulated({ perMonth }, changes, refused)).toEqual(differs);
  },
);
