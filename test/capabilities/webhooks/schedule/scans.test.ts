import { describe, expect, it, onTestFinished, test } from 'vitest';
import { webhooksKeys } from '../../../../gateway/capabilities/webhooks/redis-keys.ts';
import { expiringKeys } from '../../../../gateway/capabilities/webhooks/schedule/expiring-keys.ts';
import { nearestMark } from '../../../../gateway/capabilities/webhooks/schedule/marks.ts';
import { changedPlans } from '../../../../gateway/capabilities/webhooks/schedule/plan-dates.ts';
import { createScanState } from '../../../../gateway/capabilities/webhooks/schedule/scan-state.ts';
import { createScans, type Scan } from '../../../../gateway/capabilities/webhooks/schedule/scans.ts';
import { sunsetOperations } from '../../../../gateway/capabilities/webhooks/schedule/sunset-operations.ts';
import type { Notice } from '../../../../gateway/fleet/kinds/kinds.ts';
import type { Leak } from '../../../../gateway/shared/model.ts';
import { digestSecret } from '../../../../gateway/shared/secrets.ts';
import type { WebhookEventType } from '../../../../gateway/shared/words/event-names.js';
import { dayMs } from '../../../../gateway/shared/words/figures.js';
import { apiDocument } from '../../../support/config-folder.ts';
import { connectRedis } from '../../../support/connect-redis.ts';
import { type DirectoryOfTest, directoryOf } from '../../../support/directory-of.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { settingsOf } from '../../../support/settings-of.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientStore } from '../../../support/tuning.ts';
import { until } from '../../../support/until.ts';

const upstream = { url: 'http://127.0.0.1:1' };
const bounds = tunedBounds({
  ...patientStore,
  noticeScanIntervalMs: 10,
  noticeScanPauseFactor: 0,
  noticeScanPauseMs: 0,
  noticeScanKeysAtOnce: 2,
  noticeScanLeadMs: 20_000,
});

describe('the mark that a period has reached', () => {
  const endMs = 100 * dayMs;
  it.each<[string, from: number, to: number, mark: number | undefined]>([
    ['is none before the first mark', 0, endMs - 14 * dayMs - 1, undefined],
    ['is reached at its millisecond', 0, endMs - 14 * dayMs, 14],
    ['is not reached twice', endMs - 14 * dayMs, endMs - dayMs - 1, undefined],
    ['is the last mark a day before the end', endMs - 2 * dayMs, endMs - dayMs, 1],
    ['is only the nearest mark after a long outage', 0, endMs - 1, 1],
    ['is late after a short outage', endMs - 20 * dayMs, endMs - 5 * dayMs, 14],
    ['is none at the end', 0, endMs, undefined],
    ['is none after the end', 0, endMs + dayMs, undefined],
  ])('%s', (_what, fromMs, toMs, mark) => {
    expect(nearestMark([14, 1], endMs, { fromMs, toMs })).toBe(mark);
  });
});

/** A directory and scans of several processes, with a clock that the test sets. */
async function fleet(keys: readonly object[] = [], leaked: Readonly<Record<string, Leak>> = {}) {
  const place = { url: redisUrl(), prefix: freshPrefix() };
  const settings = await settingsOf({ upstream, keys, plans: { free: { perMinute: 60 } } });
  const directory = await directoryOf(place);
  onTestFinished(() => directory.close());
  const clock = { nowMs: 1_000 * dayMs };
  const recorded: Notice[] = [];
  const leakOf = (digest: string) => leaked[digest];
  const scan: Scan = {
    type: 'key.expiring',
    isFirstLate: true,
    notices: (period) => expiringKeys({ settings, directory, leakOf, bounds }, period),
  };
  return {
    directory,
    clock,
    /** The key, the mark and the first digits of the secret, of each notice. */
    marks: () => recorded.flatMap((one) => (one.kind === 'key_expiring' ? [`${one.keyId} ${one.days}`] : [])),
    recorded,
    async loseScans() {
      const redis = await connectRedis({ prefix: place.prefix, place, bounds });
      expect(await redis.commands.del(webhooksKeys.noticeScans.name(place.prefix))).toBe(1);
      redis.close();
    },
    /** Starts the scans of a further process. */
    async process(id: string, more: Partial<Parameters<typeof createScans>[0]> = {}) {
      const redis = await connectRedis({ prefix: place.prefix, place, bounds });
      const state = createScanState({ redis, processId: id, bounds });
      let completed = 0;
      const scans = createScans({
        scans: [scan],
        isWanted: () => true,
        state: {
          ...state,
          async noteScanned(kind, untilMs) {
            await state.noteScanned(kind, untilMs);
            completed = untilMs;
          },
        },
        async record(notice) {
          recorded.push(notice);
          return 'queued';
        },
        waiting: async () => 0,
        nowMs: () => clock.nowMs,
        log: { warn: () => {} },
        bounds,
        ...more,
      });
      scans.start();
      return {
        /** Resolves when a scan of this process has covered the present time. */
        scanned: () => until('a scan is complete', () => completed >= clock.nowMs),
        async end() {
          await scans.close();
          redis.close();
        },
      };
    },
  };
}

/** A secret that expires at this time. */
function ending(name: string, expiresMs?: number) {
  return { digest: digestSecret(name), createdMs: 0, expiresMs };
}

async function issue(
  directory: DirectoryOfTest,
  id: string,
  ...secrets: readonly ReturnType<typeof ending>[]
) {
  await directory.issue(id, [], { secrets });
}

describe('a secret that expires', () => {
  it('is reported at 14 days and at one day, once by all processes, and not again after a restart', async () => {
    const startMs = 1_000 * dayMs;
    const iso = (ms: number) => new Date(ms).toISOString();
    const of = await fleet([
      {
        id: 'stated',
        plan: 'free',
        secrets: [{ sha256: digestSecret('s'), expires: iso(startMs + 16 * dayMs) }],
      },
      {
        id: 'off',
        plan: 'free',
        disabled: true,
        secrets: [{ sha256: digestSecret('o'), expires: iso(startMs + 16 * dayMs) }],
      },
    ]);
    for (const id of ['a', 'b', 'c', 'd', 'e'])
      await issue(of.directory, id, ending(id, startMs + 16 * dayMs));
    await issue(of.directory, 'rotated', ending('old', startMs + 15 * dayMs), ending('new'));
    await issue(of.directory, 'endless', ending('endless'));
    // The key of the configuration takes precedence.
    await issue(of.directory, 'stated', ending('x', startMs + 16 * dayMs));
    const both = await Promise.all([of.process('one'), of.process('two')]);
    await Promise.race(both.map(({ scanned }) => scanned()));
    expect(of.marks()).toEqual([]);

    of.clock.nowMs = startMs + 3 * dayMs;
    await Promise.race(both.map(({ scanned }) => scanned()));
    const ids = ['a', 'b', 'c', 'd', 'e', 'rotated', 'stated'];
    expect(of.marks().toSorted()).toEqual(ids.map((id) => `${id} 14`));
    expect(of.recorded.find((one) => one.kind === 'key_expiring' && one.keyId === 'rotated')).toMatchObject({
      digestStart: digestSecret('old').slice(0, 8),
      hasOther: true,
      expiresMs: startMs + 15 * dayMs,
    });
    for (const process of both) await process.end();

    of.recorded.length = 0;
    const later = await of.process('three');
    of.clock.nowMs = startMs + 14.5 * dayMs;
    await later.scanned();
    expect(of.marks()).toEqual(['rotated 1']);
    of.clock.nowMs = startMs + 15.5 * dayMs;
    await later.scanned();
    expect(of.marks().toSorted()).toEqual(['a 1', 'b 1', 'c 1', 'd 1', 'e 1', 'rotated 1', 'stated 1']);
    of.clock.nowMs = startMs + 20 * dayMs;
    await later.scanned();
    expect(of.recorded).toHaveLength(7);
    await later.end();
  });

  it('is not reported after a leak has ended it, and is then no other secret of its key', async () => {
    const ended = { by: 'github', atMs: 0, ended: true };
    const startMs = 1_000 * dayMs;
    const expires = new Date(startMs + 10 * dayMs).toISOString();
    const secrets = ['leaked', 'left'].map((name) => ({ sha256: digestSecret(name), expires }));
    const of = await fleet([{ id: 'stated', plan: 'free', secrets }], { [digestSecret('leaked')]: ended });
    const leakedToo = { ...ending('leaked too'), leak: ended };
    await issue(of.directory, 'issued', leakedToo, ending('left too', startMs + 10 * dayMs));
    const scanning = await of.process('one');
    await scanning.scanned();
    const found = of.recorded.map((one) => (one.kind === 'key_expiring' ? one : undefined));
    expect(found.map((one) => [one?.keyId, one?.digestStart, one?.hasOther]).toSorted()).toEqual([
      ['issued', digestSecret('left too').slice(0, 8), false],
      ['stated', digestSecret('left').slice(0, 8), false],
    ]);
    await scanning.end();
  });

  it('is reported late and once after days without a gateway, with the mark that is nearest to the end', async () => {
    const of = await fleet();
    const startMs = of.clock.nowMs;
    await issue(of.directory, 'a', ending('a', startMs + 16 * dayMs));
    const before = await of.process('one');
    await before.scanned();
    await before.end();
    of.clock.nowMs = startMs + 15.5 * dayMs;
    const after = await of.process('two');
    await after.scanned();
    expect(of.marks()).toEqual(['a 1']);
    await after.end();
  });

  it('is reported once if the process dies before its scan is complete', async () => {
    const of = await fleet();
    await issue(of.directory, 'a', ending('a', of.clock.nowMs + 10 * dayMs));
    // The process loses the connection to Redis when it has reported the key, so it cannot note the end of the scan.
    const failing = await of.process('one', {
      async record() {
        return 'dropped';
      },
    });
    await failing.end();
    const other = await of.process('two');
    await other.scanned();
    expect(of.marks()).toEqual(['a 14']);
    await other.end();
  });

  it('is not reported again when Redis has lost its data, whichever process scans then', async () => {
    const of = await fleet();
    await issue(of.directory, 'a', ending('a', of.clock.nowMs + 10 * dayMs));
    const noted: string[] = [];
    const note = (id: string) => ({
      isWanted() {
        noted.push(id);
        return true;
      },
    });
    const one = await of.process('one', note('one'));
    await one.scanned();
    const other = await of.process('two', note('two'));
    await until('the other process has looked twice', () => noted.filter((id) => id === 'two').length > 2);
    await one.end();
    await of.loseScans();
    of.clock.nowMs += 1;
    await other.scanned();
    expect(of.marks()).toEqual(['a 14']);
    await other.end();
  });

  it('waits while the queue of deliveries is half full', async () => {
    const of = await fleet();
    for (const id of ['a', 'b', 'c']) await issue(of.directory, id, ending(id, of.clock.nowMs + 10 * dayMs));
    let waiting = 1_000_000;
    const asked = { times: 0 };
    const scanning = await of.process('one', {
      bounds: { ...bounds, noticeScanFullPauseMs: 10, noticeScanEventsAtOnce: 1 },
      async waiting() {
        asked.times += 1;
        return waiting;
      },
    });
    await until('the scan waits', () => asked.times > 3);
    expect(of.marks()).toHaveLength(1);
    waiting = 0;
    await scanning.scanned();
    expect(of.marks().toSorted()).toEqual(['a 14', 'b 14', 'c 14']);
    await scanning.end();
  });

  it('is not looked for while no receiver wants the event', async () => {
    const of = await fleet();
    await issue(of.directory, 'a', ending('a', of.clock.nowMs + 10 * dayMs));
    let wanted: readonly WebhookEventType[] = [];
    const asked = { times: 0 };
    const scanning = await of.process('one', {
      isWanted(type) {
        asked.times += 1;
        return wanted.includes(type);
      },
    });
    await until('the process has asked', () => asked.times > 3);
    expect(of.recorded).toEqual([]);
    wanted = ['key.expiring'];
    await scanning.scanned();
    expect(of.marks()).toEqual(['a 14']);
    await scanning.end();
  });
});

test('changes of plans are reported from the first scan on, and no changes before it', async () => {
  const of = await fleet();
  const startMs = of.clock.nowMs;
  const perDay = [-1, 1, 2].map((days) => ({
    from: new Date(startMs + days * dayMs).toISOString(),
    perMinute: 10 + days,
  }));
  const settings = await settingsOf({ upstream, plans: { free: { perMinute: 60, changes: perDay } } });
  const scan: Scan = {
    type: 'plan.changed',
    isFirstLate: false,
    notices: (period) => changedPlans(settings, period),
  };
  const scanning = await of.process('one', { scans: [scan] });
  await scanning.scanned();
  expect(of.recorded).toEqual([]);
  for (const [days, edits] of [
    [1, ['9 → 11 a minute']],
    [2, ['11 → 12 a minute']],
  ] as const) {
    of.clock.nowMs = startMs + days * dayMs;
    await scanning.scanned();
    expect(of.recorded.at(-1)).toMatchObject({ plan: 'free', cause: 'schedule', edits });
  }
  expect(of.recorded).toHaveLength(2);
  await scanning.end();
});

test('only one process scans at a time, and another process takes over when it ends', async () => {
  const [place, forMs] = [{ url: redisUrl(), prefix: freshPrefix() }, 60_000];
  const redis = await connectRedis({ prefix: place.prefix, place, bounds });
  onTestFinished(() => redis.close());
  const [one, other] = ['one', 'other'].map((processId) => createScanState({ redis, processId, bounds }));
  if (one === undefined || other === undefined) throw new Error('no processes');
  expect([await one.lead(forMs), await other.lead(forMs), await one.lead(forMs)]).toEqual([
    true,
    false,
    true,
  ]);
  await other.leave();
  expect(await other.lead(forMs)).toBe(false);
  await one.leave();
  expect(await other.lead(forMs)).toBe(true);
  await other.leave();
  await other.lead(1);
  await until('the lead of a process that has died ends', () => one.lead(forMs));
  expect(await one.scannedMs('key.expiring')).toBe('never');
  await one.noteScanned('key.expiring', 1_234);
  expect(await other.scannedMs('key.expiring')).toBe(1_234);
});

test('an operation is reported 30, 7 and 1 days before its sunset, with the keys that call it', async () => {
  const settings = await settingsOf({ upstream, api: 'openapi.yaml' }, { 'openapi.yaml': apiDocument });
  const sunsetMs = Date.UTC(2030, 11, 5);
  const callers = [{ keyId: 'acme', requests: 7 }];
  const found = async (days: number) => {
    const period = { fromMs: sunsetMs - (days + 0.5) * dayMs, toMs: sunsetMs - (days - 0.1) * dayMs };
    const notices: Notice[] = [];
    for await (const one of sunsetOperations(settings, async () => ({ days: 7, callers, more: 0 }), period)) {
      notices.push(one);
    }
    return notices;
  };
  for (const days of [30, 7, 1]) {
    expect(await found(days)).toMatchObject([
      { kind: 'operation_sunset', operation: 'getPet', method: 'GET', sunsetMs, days, called: { callers } },
    ]);
  }
  for (const days of [31, 20, 3]) expect(await found(days)).toEqual([]);
});

test('a plan is reported when its limits change at their date, with all changes of the period', async () => {
  const changes = [
    { from: '2027-01-01', perMinute: 40 },
    { from: '2027-02-01', perMinute: 40, perDay: 500 },
  ];
  const settings = await settingsOf({
    upstream,
    plans: { free: { perMinute: 60, changes }, pro: { perMinute: 600 } },
  });
  const [first, second] = [Date.UTC(2027, 0, 1), Date.UTC(2027, 1, 1)];
  const editsIn = (fromMs: number, toMs: number) =>
    [...changedPlans(settings, { fromMs, toMs })].map(({ edits }) => edits);
  expect(editsIn(0, first - 1)).toEqual([]);
  expect(editsIn(first - 1, first)).toEqual([['60 → 40 a minute']]);
  expect(editsIn(first, second - 1)).toEqual([]);
  expect(editsIn(0, second)).toEqual([['60 → 40 a minute', 'no limit → 500 a day']]);
});
