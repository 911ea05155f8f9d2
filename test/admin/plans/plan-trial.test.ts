import { expect, it, onTestFinished } from 'vitest';
import type { KeySources } from '../../../gateway/admin/keys/key-sources.ts';
import { showKey } from '../../../gateway/admin/keys/show-key.ts';
import { trialSentence } from '../../../gateway/admin/plans/trial-figures.ts';
import { trialRoute } from '../../../gateway/admin/plans/trial-route.ts';
import { plansInForce } from '../../../gateway/keys/key-table.ts';
import type { Decision, KeyStatus, TrialOutcome } from '../../../gateway/shared/model.ts';
import { createUsage } from '../../../gateway/usage/usage.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const noChanges = { read: async () => ({ isComplete: true, changes: [] }) };

const minuteMs = 60_000;
const dayMs = 86_400_000;
const upstream = { url: 'http://127.0.0.1:1' };
/** Noon, so that all of the last hours are on one day. */
const nowMs = Math.floor(Date.now() / dayMs) * dayMs + dayMs / 2;
const instant = (atMs: number) => `${new Date(atMs).toISOString().slice(0, 19)}Z`;
const plans = {
  free: { perMinute: 60, perDay: 1_000, trial: { perMinute: 40, perDay: 1_000 } },
  pro: { perMinute: 600 },
};
const keys = ['acme', 'calm', 'greedy', 'paying'].map((id) =>
  makeKey({ id, name: `${id} Ltd`, plan: id === 'paying' ? 'pro' : 'free' }),
);

interface Request {
  readonly key: string;
  readonly agoMs: number;
  readonly kind: 'admitted' | 'refused';
  readonly trial: TrialOutcome;
  readonly times: number;
}

async function open(overrides: Record<string, unknown> = {}, own: Parameters<typeof tunedBounds>[0] = {}) {
  const settings = await settingsOf({ upstream, plans, keys: keys.map(({ entry }) => entry), ...overrides });
  const bounds = tunedBounds({ planDistributionTimeoutMs: 60_000, ...own });
  const usage = createUsage({ keepDays: 8, minuteMs, nowMs: () => nowMs, bounds });
  onTestFinished(() => usage.close());
  const readStatus: KeySources['readStatus'] = (all) => Promise.resolve(all.map(() => noStatus));
  const readMembers = async (ids: readonly string[]) => ids.map(() => ({}));
  const sources = { settings: () => settings, usage, readStatus, readMembers, nowMs: () => nowMs, bounds };
  const count = ({ key, agoMs, kind, trial, times }: Request) => {
    const inForce = { name: 'minute', limit: 60, remaining: 0, resetMs: 0, windowSeconds: 60 } as const;
    const rateLimit = { nowMs: nowMs - agoMs, windows: [inForce], inForce };
    const decision = { kind, units: 1, rateLimit, source: 'shared', trial } as Decision;
    const limits = plansInForce(settings).get('free')?.trial;
    for (let time = 0; time < times; time++)
      usage.recorder.decided(key, decision, '192.0.2.1', '01234567', limits && { limits, cost: 1 });
  };
  return { sources, settings, count };
}

const noStatus: KeyStatus = {
  rateLimit: {
    nowMs,
    windows: [],
    inForce: { name: 'day', limit: 0, remaining: 0, resetMs: 0, windowSeconds: 0 },
  },
  retryAtMs: 0,
  used: [],
  strikes: 0,
  strikesFromMs: 0,
  banLevel: 0,
};

async function ask(sources: KeySources, name: string, query: Record<string, unknown> = {}) {
  const asked = { params: { name }, query: { limit: 50, ...query } };
  const { status, body } = await trialRoute(sources).respond(
    asked as unknown as Parameters<ReturnType<typeof trialRoute>['respond']>[0],
  );
  return { status, body: JSON.parse(String(body)) };
}

it('the trial of a plan states how many requests it would have refused, of which keys, and what the plan refused', async () => {
  const { sources, count } = await open();
  count({ key: 'calm', agoMs: 60 * minuteMs, kind: 'admitted', trial: 'admitted', times: 9 });
  count({ key: 'acme', agoMs: 50 * minuteMs, kind: 'admitted', trial: 'minute', times: 5 });
  count({ key: 'acme', agoMs: 40 * minuteMs, kind: 'admitted', trial: 'banned', times: 1 });
  count({ key: 'acme', agoMs: 30 * minuteMs, kind: 'admitted', trial: 'admitted', times: 14 });
  // The plan and the trial refuse the same requests of this key, except one.
  count({ key: 'greedy', agoMs: 20 * minuteMs, kind: 'refused', trial: 'minute', times: 20 });
  count({ key: 'greedy', agoMs: 20 * minuteMs, kind: 'admitted', trial: 'day', times: 1 });
  const { status, body } = await ask(sources, 'free');
  expect(status).toBe(200);
  const refusedOfAcme = {
    ...{ id: 'acme', name: 'acme Ltd', requests: 20, refused: 6, refusedNow: 0 },
    refusedBy: { minute: 5, banned: 1 },
    firstRefusedAt: instant(nowMs - 50 * minuteMs),
    lastRefusedAt: instant(nowMs - 40 * minuteMs),
  };
  const refusedOfGreedy = {
    ...{ id: 'greedy', name: 'greedy Ltd', requests: 21, refused: 21, refusedNow: 20 },
    refusedBy: { minute: 20, day: 1 },
    firstRefusedAt: instant(nowMs - 20 * minuteMs),
    lastRefusedAt: instant(nowMs - 20 * minuteMs),
  };
  expect(body).toEqual({
    plan: 'free',
    limits: { perMinute: 40, perDay: 1_000 },
    limitsNow: { perMinute: 60, perDay: 1_000 },
    fromAt: new Date(nowMs - dayMs + minuteMs).toISOString(),
    toAt: new Date(nowMs).toISOString(),
    firstAt: instant(nowMs - 60 * minuteMs),
    sentence:
      'Trial 40 a minute, 1,000 a day: 27 of 50 requests (54 %) would have been refused, 25 by the minute limit, 1 by the day limit, 1 by bans. 2 of 3 keys would have had refusals, 1 of them for the first time. The plan itself refused 20.',
    ...{ requests: 50, refused: 27, refusedNow: 20, refusedBy: { minute: 25, banned: 1, day: 1 } },
    firstRefusedAt: instant(nowMs - 50 * minuteMs),
    lastRefusedAt: instant(nowMs - 20 * minuteMs),
    ...{ triedKeys: 3, refusedKeys: 2, newlyRefusedKeys: 1, activeKeys: 3, examinedKeys: 3 },
    // The trial harms acme more than greedy, which the plan refuses too.
    keys: [refusedOfAcme, refusedOfGreedy],
  });
  const first = await ask(sources, 'free', { limit: 1 });
  expect(first.body).toMatchObject({ refusedKeys: 2, keys: [refusedOfAcme], more: 1 });
  const earlier = await ask(sources, 'free', { from: nowMs - 65 * minuteMs, to: nowMs - 45 * minuteMs });
  expect(earlier.body).toMatchObject({ requests: 14, refused: 5, refusedKeys: 1, triedKeys: 2 });
});

it('the trial of a plan has no figures without a trial, without a usage record, and for an unknown plan', async () => {
  const { sources } = await open();
  expect((await ask(sources, 'free')).body).toMatchObject({
    sentence: 'Trial 40 a minute, 1,000 a day: it has not decided a request yet.',
    ...{ requests: 0, refused: 0, refusedBy: {}, keys: [], activeKeys: 0 },
  });
  const message = async (name: string, of: KeySources = sources) => {
    const { status, body } = await ask(of, name);
    return [status, body.message];
  };
  expect(await message('gold')).toEqual([404, 'There is no plan with this name.']);
  expect(await message('pro')).toEqual([404, expect.stringMatching(/^There is no trial in this plan\. /)]);
  const { usage: _, ...unrecorded } = sources;
  expect(await message('free', unrecorded)).toEqual([404, expect.stringContaining('usage.keepDays')]);
  const invalid = await ask(sources, 'free', { from: nowMs, to: nowMs - 1 });
  expect(invalid.status).toBe(400);
});

it('the trial of a plan states how many keys were read if the time is too short', async () => {
  const { sources, count } = await open({}, { planDistributionTimeoutMs: 0 });
  count({ key: 'acme', agoMs: 0, kind: 'admitted', trial: 'minute', times: 1 });
  expect((await ask(sources, 'free')).body).toMatchObject({ activeKeys: 1, examinedKeys: 0, triedKeys: 0 });
});

it('the page of a key has the trial of its plan with the decisions of the last 24 hours', async () => {
  const { sources, count } = await open();
  count({ key: 'acme', agoMs: 25 * 60 * minuteMs, kind: 'admitted', trial: 'minute', times: 3 });
  count({ key: 'acme', agoMs: 50 * minuteMs, kind: 'admitted', trial: 'minute', times: 5 });
  count({ key: 'acme', agoMs: 40 * minuteMs, kind: 'refused', trial: 'admitted', times: 5 });
  const trialOf = async (id: string) => {
    const shown = await showKey(sources, noChanges, id);
    if (shown === undefined || shown === 'no_store') throw new Error('the key is known');
    return shown.detail.trial;
  };
  expect(await trialOf('acme')).toEqual({
    limits: { perMinute: 40, perDay: 1_000 },
    sentence:
      'Trial 40 a minute, 1,000 a day: 5 of 10 requests (50 %) would have been refused, 5 by the minute limit. The plan itself refused 5. First 11:10:00 UTC, last 11:10:00 UTC.',
    ...{ requests: 10, refused: 5, refusedNow: 5, refusedBy: { minute: 5 } },
    firstRefusedAt: instant(nowMs - 50 * minuteMs),
    lastRefusedAt: instant(nowMs - 50 * minuteMs),
  });
  expect(await trialOf('calm')).toMatchObject({ requests: 0, refused: 0 });
  expect(await trialOf('paying')).toBeUndefined();
});

it.each([
  [
    { requests: 4_100, refused: 0, refusedNow: 0 },
    'none of 4,100 requests would have been refused. The plan itself refused none.',
  ],
  [
    { requests: 1, refused: 0, refusedNow: 1 },
    'none of 1 request would have been refused. The plan itself refused 1.',
  ],
  [
    { requests: 20_000, refused: 1, refusedNow: 0, refusedBy: { concurrent: 1 } },
    '1 of 20,000 requests (< 0.1 %) would have been refused, 1 by the concurrency limit. The plan itself refused none.',
  ],
])('the sentence about %o is plain', (usage, sentence) => {
  const limits = [{ window: 'hour', max: 40 }] as const;
  expect(trialSentence(limits, { refusedBy: {}, ...usage })).toBe(`Trial 40 an hour: ${sentence}`);
});
