import { expect, it, onTestFinished } from 'vitest';
import type { ListedKey } from '../../../gateway/admin/keys/find-keys.ts';
import type { KeySources } from '../../../gateway/admin/keys/key-sources.ts';
import { limitBeginnings, uncountedText } from '../../../gateway/admin/keys/over-time/limit-beginnings.ts';
import type { RecordedChange } from '../../../gateway/fleet/changes.ts';
import { toLimits } from '../../../gateway/keys/limits/limit-fields.ts';
import { compilePlans } from '../../../gateway/keys/plans/plans.ts';
import type { KeyStatus } from '../../../gateway/shared/model.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, testConfig } from '../../support/gateway-process.ts';
import { startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientGateway } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { at, ofKey, reload } from './limits-over-time-fixture.ts';

it('a limit a month that is set in the middle of a month says that it does not count earlier requests', async () => {
  const { token, entry } = makeToken('read');
  const backend = await startRecordingBackend();
  onTestFinished(() => backend.close());
  const keys = ['acme', 'umbrella'].map((id) => makeKey({ id, plan: 'free' }));
  const config = testConfig({
    upstream: { url: backend.url },
    redis: { url: redisUrl(), prefix: freshPrefix() },
    plans: { free: { perMinute: 1_000 } },
    keys: keys.map((key) => key.entry),
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
  });
  const bounds = { ...patientGateway, usageFlushIntervalMs: 100 };
  const gateway = await startGatewayHere(config, { tuning: { bounds } });
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  const call = async (place: number) => {
    const headers = { authorization: `Bearer ${keys[place]?.secret}` };
    expect((await fetch(`${gateway.baseUrl}/pets`, { headers })).status).toBe(200);
  };
  const sentences = async (id: string) => {
    const ask = (path: string) => askAdmin(Number(new URL(gateway.adminUrl).port), path, { token });
    const [key, forecast] = await Promise.all([
      ask(`/api/v1/keys/${id}`),
      ask(`/api/v1/keys/${id}/forecast`),
    ]);
    return [key.body.why.sentence, forecast.body.sentence] as const;
  };

  await call(0);
  await call(0);
  await until('the requests are on record', async () => (await sentences('acme'))[0].includes('2 requests'));
  await gateway.editConfig({ ...config, plans: { free: { perMinute: 1_000, perMonth: 300 } } });
  await until('the limit is in force', async () =>
    (await sentences('acme'))[0].includes('of 300 of this month'),
  );
  await call(0);
  await call(1);

  await expect
    .poll(() => sentences('acme'))
    .toEqual([
      expect.stringMatching(
        /1 of 300 of this month\. Its limit a month was set at \d\d:\d\d, and does not count the earlier requests of this month\./,
      ),
      expect.stringMatching(
        /The limit a month was set on \d+ \w+ at \d\d:\d\d UTC, and does not count the earlier requests of this month\.$/,
      ),
    ]);
  const [ofOther] = await sentences('umbrella');
  expect(ofOther).toContain('1 of 300 of this month');
  expect(ofOther).not.toContain('was set');
});

it('a key whose counts are lower than its record, but that had no limits before, has no such sentence', async () => {
  const nowMs = Date.parse('2026-11-24T15:00:00Z');
  const plans = compilePlans({ free: { custom: false, perDay: 900 } });
  const listed = { key: { id: 'acme', plan: 'free', limits: toLimits({ perDay: 900 }) } } as ListedKey;
  const windows = [{ name: 'day' as const, limit: 900, remaining: 895 }];
  const status = { rateLimit: { nowMs, windows }, used: [5] } as unknown as KeyStatus;
  const beginnings = async (changes: readonly RecordedChange[], units = 8) => {
    const sources = { settings: () => ({ plans }), bounds: tunedBounds({}) } as unknown as KeySources;
    const record = { read: async () => ({ isComplete: true, changes }) };
    return [
      ...(await limitBeginnings(sources, record, { listed, status }, [{ window: 'day', units }])).keys(),
    ];
  };
  expect(await beginnings([ofKey('09:00', 'create')])).toEqual([]);
  const withoutDay = { plans: { free: { perMinute: 50 } } };
  expect(await beginnings([reload('11:00', withoutDay), ofKey('09:00', 'create')])).toEqual(['day']);
  expect(await beginnings([reload('11:00', withoutDay)])).toEqual(['day']);
  expect(await beginnings([reload('11:00', withoutDay)], 5)).toEqual([]);
});

it('a limit a day that the key had before and has again does not count only the requests in between', async () => {
  const nowMs = Date.parse(at('15:00'));
  const plans = compilePlans({ free: { custom: false, perDay: 900 }, pro: { custom: false, perMinute: 50 } });
  const listed = { key: { id: 'acme', plan: 'free', limits: toLimits({ perDay: 900 }) } } as ListedKey;
  const status = {
    rateLimit: { nowMs, windows: [{ name: 'day' as const, limit: 900, remaining: 895 }] },
    used: [5],
  } as unknown as KeyStatus;
  const periods = async (changes: readonly RecordedChange[]) => {
    const sources = { settings: () => ({ plans }), bounds: tunedBounds({}) } as unknown as KeySources;
    const record = { read: async () => ({ isComplete: true, changes: changes.toReversed() }) };
    const found = await limitBeginnings(sources, record, { listed, status }, [{ window: 'day', units: 8 }]);
    return found.get('day');
  };
  const windowStartMs = Date.parse(at('00:00'));
  const edit = (time: string, before: string, after: string) =>
    ofKey(time, 'update', { before: { plan: before }, after: { plan: after } });
  const between = { fromMs: Date.parse(at('11:00')), toMs: Date.parse(at('11:03')) };
  const there = [edit('11:00', 'free', 'pro'), edit('11:03', 'pro', 'free')];
  expect(await periods(there)).toEqual({ windowStartMs, periods: [between] });
  const first = { fromMs: windowStartMs, toMs: Date.parse(at('09:00')) };
  const all = await periods([edit('09:00', 'pro', 'free'), ...there]);
  expect(all).toEqual({ windowStartMs, periods: [first, between] });
  const text = uncountedText(
    'Its limit a day',
    { window: 'day', windowStartMs, periods: all?.periods ?? [] },
    (atMs) => `at ${new Date(atMs).toISOString().slice(11, 16)}`,
    nowMs,
  );
  expect(text).toBe(
    'Its limit a day was set at 09:00, and does not count the earlier requests of this day. Its limit a day did not apply from 11:00:00 UTC until 11:03:00 UTC, and does not count the requests of that time.',
  );
});
