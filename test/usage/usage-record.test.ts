import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { monthUsage } from '../../gateway/admin/keys/over-time/month-usage.ts';
import { calendarStartMs } from '../../gateway/shared/calendar-windows.ts';
import { type Decision, planWindows, type WindowName } from '../../gateway/shared/model.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { offeredUnitsAt } from '../../gateway/usage/read/key-minutes.ts';
import { byPeriod, createUsageReader } from '../../gateway/usage/read/usage-reader.ts';
import { createUsageRecorder } from '../../gateway/usage/record/recorder.ts';
import { createMemoryUsageStore } from '../../gateway/usage/store/memory-usage-store.ts';
import type { UsageStore } from '../../gateway/usage/store/usage-store.ts';
import {
  emptyTally,
  laterNumber,
  type Outcome,
  offeredOf,
  outcomes,
  talliesIn,
  tallyNumber,
  unitsOf,
} from '../../gateway/usage/tally.ts';
import { createUsage, type Usage } from '../../gateway/usage/usage.ts';
import { usageCalendar } from '../../gateway/usage/usage-calendar.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { monitorRedis } from '../support/monitor-redis.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { settingsOf } from '../support/settings-of.ts';
import { startRedis } from '../support/start-redis.ts';
import { startTcpRelay } from '../support/tcp-relay.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const today = Math.floor(Date.now() / dayMs) * dayMs;

interface Event {
  readonly keyId: string;
  readonly atMs: number;
  readonly outcome: Outcome;
  /** Absent: 1. */
  readonly units?: number;
  /** Whether the group `reports` has the operation. */
  readonly isReport?: boolean;
  readonly address: string;
  /** The secret of the request, which is the first of `secrets` by default. */
  readonly secret?: string;
  readonly operationId: string;
  readonly status: number;
}

/** The first characters of the digests of two secrets. */
const secrets = ['01234567', '89abcdef'] as const;

const events = fc.array(
  fc.record({
    keyId: fc.constantFrom('acme', 'umbrella'),
    // Times around two midnights, so that days, hours and minutes change often.
    atMs: fc.integer({ min: today - 2 * hourMs, max: today + dayMs + 2 * hourMs }),
    outcome: fc.constantFrom(...outcomes),
    units: fc.constantFrom(1, 1, 1, 5, 10_000, 0),
    isReport: fc.boolean(),
    address: fc.constantFrom('192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::2'),
    secret: fc.constantFrom(...secrets),
    operationId: fc.constantFrom('listPets', 'addPet', ''),
    status: fc.constantFrom(200, 201, 404, 429, 499, 502),
  }),
  { maxLength: 60 },
);

const period = { fromMs: today - dayMs, toMs: today + 2 * dayMs - 1 };

function decisionOf(event: Pick<Event, 'outcome' | 'units' | 'atMs' | 'isReport'>): Decision {
  const { outcome, units = 1, atMs, isReport = false } = event;
  const isOfWindow = (planWindows as readonly string[]).includes(outcome);
  const name = isOfWindow ? (outcome as WindowName) : 'minute';
  const group = outcome === 'group' ? 'reports' : undefined;
  const inForce = { name, group, limit: 1, remaining: 0, resetMs: 0, windowSeconds: 1 };
  const ofReports = isReport && group === undefined ? [{ ...inForce, group: 'reports' }] : [];
  const rateLimit = { nowMs: atMs, windows: [inForce, ...ofReports], inForce };
  if (outcome === 'admitted') return { kind: 'admitted', units, rateLimit, source: 'shared' };
  if (outcome === 'banned') return { kind: 'banned', units, rateLimit, source: 'shared', retryAtMs: 0 };
  if (outcome === 'undecided')
    return { kind: 'unavailable', units, rateLimit, source: 'local', retryAtMs: 0 };
  const kind = outcome === 'concurrent' ? 'crowded' : 'refused';
  return { kind, units, rateLimit, source: 'shared', retryAtMs: 0 };
}

function count({ recorder }: Usage, event: Event): void {
  const { keyId, atMs, operationId, status, address, secret = secrets[0] } = event;
  recorder.decided(keyId, decisionOf(event), address, secret);
  recorder.ended({ keyId, atMs, operationId, status, ending: 'served', ownMs: 1, upstreamMs: undefined });
}

/** The expected record of a key. */
function expected(all: readonly Event[], keyId: string) {
  const own = all.filter((event) => event.keyId === keyId);
  const minutes = Map.groupBy(own, ({ atMs }) => Math.floor(atMs / minuteMs) * minuteMs);
  const hours = Map.groupBy(
    own,
    ({ atMs, operationId }) => `${Math.floor(atMs / hourMs) * hourMs} ${operationId}`,
  );
  return {
    minutes: [...minutes]
      .sort(([a], [b]) => a - b)
      .map(([atMs, within]) => {
        const tally = { ...emptyTally };
        for (const { outcome, units = 1 } of within) {
          tally[outcome] += 1;
          if (outcome !== 'admitted') continue;
          tally.extraUnits += Math.max(0, units - 1);
          if (units === 0) tally.free += 1;
        }
        const inReports = within.filter(isInReports);
        if (inReports.length === 0) return { atMs, tally };
        const refused = inReports.filter(({ outcome }) => outcome === 'group').length;
        const reports = {
          offered: inReports.length,
          admitted: inReports.filter(isAdmitted).length,
          units: unitsOfEvents(inReports.filter(isAdmitted)),
          refused: refused > 0 ? { minute: refused } : {},
        };
        return { atMs, tally: { ...tally, groups: new Map([['reports', reports]]) } };
      }),
    // Simulations do not read the requests that the concurrency limit or a group refused.
    units: [...minutes]
      .sort(([a], [b]) => a - b)
      .map(([, within]) => within.filter(({ outcome }) => outcome !== 'concurrent' && outcome !== 'group'))
      .flatMap((within) => (within.length > 0 ? [unitsOfEvents(within)] : [])),
    sum: {
      offered: own.length,
      admitted: own.filter(isAdmitted).length,
      units: unitsOfEvents(own.filter(isAdmitted)),
    },
    operations: Object.fromEntries(
      [...hours].map(([hour, within]) => [
        hour,
        [
          within.length,
          within.filter(({ status }) => status >= 400 && status < 500).length,
          within.filter(({ status }) => status >= 500).length,
        ],
      ]),
    ),
    lastSeenMs: lastOf(own),
    secrets: Object.fromEntries(
      [...Map.groupBy(own, ({ secret = secrets[0] }) => secret)].map(([secret, within]) => [
        secret,
        lastOf(within),
      ]),
    ),
  };
}

const isInReports = ({ outcome, isReport = false }: Event) => outcome === 'group' || isReport;

const isAdmitted = ({ outcome }: Event) => outcome === 'admitted';

function unitsOfEvents(all: readonly Event[]): number {
  return all.reduce((sum, { units = 1 }) => sum + units, 0);
}

function lastOf(all: readonly Event[]): number {
  return Math.max(0, ...all.map(({ atMs }) => atMs));
}

async function found({ reader }: Usage, keyId: string): Promise<ReturnType<typeof expected>> {
  const days = { fromDay: Math.floor(period.fromMs / dayMs), endDay: Math.ceil(period.toMs / dayMs) };
  const [minutes, columns, sums, operations, active, used] = await Promise.all([
    reader.minutes(keyId, period, ['reports']),
    reader.minutesOf([keyId], period),
    reader.requestsOf([keyId], days),
    reader.operationsOf(keyId, period),
    reader.active(),
    reader.secretsUsed(keyId, secrets, period),
  ]);
  return {
    minutes: [...(minutes ?? [])],
    units: (columns ?? []).flatMap((of) => [...of.minute.keys()].map((place) => offeredUnitsAt(of, place))),
    sum: sums?.[0] ?? { offered: 0, admitted: 0, units: 0 },
    operations: Object.fromEntries(
      (operations ?? []).map(({ atMs, operationId, requests, clientErrors, serverErrors }) => [
        `${atMs} ${operationId}`,
        [requests, clientErrors, serverErrors],
      ]),
    ),
    lastSeenMs: active?.find((key) => key.keyId === keyId)?.lastSeenMs ?? 0,
    secrets: Object.fromEntries(
      [...(used ?? [])]
        .filter(([, { lastMs }]) => lastMs > 0)
        .map(([secret, { lastMs }]) => [secret, lastMs]),
    ),
  };
}

/** Deadlines so long that a slow machine never makes Redis count as unavailable, not even at the end of the process. */
const patient = {
  ...patientStore,
  usageCloseTimeoutMs: 20_000,
};

interface Opening {
  readonly bounds?: Partial<Bounds>;
  readonly url?: string;
  readonly prefix?: string;
}

async function openOnRedis({
  bounds = {},
  url = redisUrl(),
  prefix = freshPrefix(),
}: Opening = {}): Promise<Usage> {
  const all = tunedBounds({ ...patient, ...bounds });
  const redis = await connectRedis({ prefix, place: { url }, bounds: all });
  const usage = createUsage({
    redis,
    keepDays: 8,
    minuteMs,
    nowMs: Date.now,
    bounds: all,
  });
  return {
    ...usage,
    async close() {
      await usage.close();
      redis.close();
    },
  };
}

function openInMemory(bounds: Partial<Bounds> = {}): Promise<Usage> {
  const nowMs = () => today + dayMs;
  return Promise.resolve(createUsage({ keepDays: 8, minuteMs, nowMs, bounds: tunedBounds(bounds) }));
}

describe.each([
  { name: 'in memory', open: openInMemory },
  { name: 'in Redis', open: (bounds?: Partial<Bounds>) => openOnRedis({ bounds: bounds ?? {} }) },
])('the record of one process $name', ({ open }) => {
  it('shows the outcome of every request at once, sent to the store or not', async () => {
    await fc.assert(
      fc.asyncProperty(events, fc.nat({ max: 60 }), async (all, sentAfter) => {
        // The recorder sends in every turn of the event loop, so some batches are being sent during the read.
        const usage = await open({ usageFlushIntervalMs: 2, usageSlicesPerFlush: 2 });
        for (const [index, event] of all.entries()) {
          count(usage, event);
          if (index === sentAfter) await sleep(5);
        }
        for (const keyId of ['acme', 'umbrella'])
          expect(await found(usage, keyId)).toEqual(expected(all, keyId));
        await usage.close();
      }),
      { numRuns: 15 },
    );
  });

  it('has exactly the last 24 hours, including the present minute', async () => {
    const usage = await open();
    onTestFinished(() => usage.close());
    const nowMs = today + 10 * hourMs + 30 * minuteMs + 30_000;
    const firstMs = nowMs - 30_000 - dayMs + minuteMs;
    const at = (atMs: number, outcome: Outcome): Event => {
      return { keyId: 'acme', atMs, outcome, address: 'a', operationId: 'listPets', status: 200 };
    };
    for (const event of [
      ...[
        at(firstMs - 1, 'admitted'),
        at(firstMs - hourMs, 'minute'),
        at(firstMs, 'admitted'),
        at(firstMs, 'day'),
      ],
      ...[at(today - 1, 'minute'), at(today, 'banned'), at(nowMs, 'admitted'), at(nowMs, 'undecided')],
    ]) {
      count(usage, { ...event, units: 3 });
    }
    const recent = await usage.reader.recent(['acme', 'nobody'], nowMs);
    expect([...(recent ?? [])]).toEqual([['acme', { offered: 6, admitted: 2, units: 6, lastSeenMs: nowMs }]]);
  });

  it('estimates how many addresses a key used, with one address of a network', async () => {
    const usage = await open();
    onTestFinished(() => usage.close());
    const event = { keyId: 'acme', outcome: 'admitted', operationId: '', status: 200 } as const;
    for (let host = 0; host < 300; host++) {
      count(usage, { ...event, atMs: today + host, address: `192.0.${host >> 8}.${host & 255}` });
      count(usage, { ...event, atMs: today + host, address: `2001:db8::${host.toString(16)}` });
    }
    const [{ about = 0 } = {}] = (await usage.reader.addresses('acme', period)) ?? [];
    expect(about).toBeGreaterThan(301 * 0.9);
    expect(about).toBeLessThan(301 * 1.1);
  });

  it('shows who called an operation, how often and when last, and the refusals that are counted by name', async () => {
    const usage = await open();
    onTestFinished(() => usage.close());
    const event = { outcome: 'admitted', address: 'a', status: 200 } as const;
    for (const [keyId, operationId, atMs] of [
      ...([
        ['acme', 'getPet', today - 5],
        ['acme', 'getPet', today + hourMs],
      ] as const),
      ...([
        ['umbrella', 'getPet', today + 7],
        ['umbrella', 'listPets', today + 9],
      ] as const),
    ] as const) {
      count(usage, { ...event, keyId, operationId, atMs });
    }
    for (const [atMs, countedAs] of [
      [today - 5, 'rehearsal'],
      [today + 8, 'rehearsal'],
      [today + 8, 'other'],
    ] as const) {
      const refused = { operationId: 'getPet', atMs, status: 410, countedAs };
      usage.recorder.ended({
        keyId: 'umbrella',
        ...refused,
        ending: 'served',
        ownMs: 1,
        upstreamMs: undefined,
      });
    }
    const none = { clientErrors: 0, serverErrors: 0 };
    const refusals = new Map([['rehearsal', { requests: 2, lastMs: today + 8 }]]);
    const callers = await usage.reader.callers(['getPet', 'listPets', 'unused'], period, [
      'rehearsal',
      'unknown',
    ]);
    expect([...(callers ?? [])]).toEqual([
      [
        'getPet',
        [
          { keyId: 'umbrella', requests: 4, clientErrors: 3, serverErrors: 0, lastMs: today + 8, refusals },
          { keyId: 'acme', requests: 2, ...none, lastMs: today + hourMs, refusals: new Map() },
        ],
      ],
      ['listPets', [{ keyId: 'umbrella', requests: 1, ...none, lastMs: today + 9, refusals: new Map() }]],
      ['unused', []],
    ]);
  });

  it('adds up all operations: responses by status, and how long they took', async () => {
    const usage = await open();
    onTestFinished(() => usage.close());
    const ended = {
      keyId: undefined,
      atMs: today,
      operationId: 'getPet',
      status: 200,
      ending: 'served' as const,
      ownMs: 0.3,
      upstreamMs: 4,
    };
    for (let request = 0; request < 98; request++) usage.recorder.ended(ended);
    for (const status of [404, 502])
      usage.recorder.ended({ ...ended, status, ownMs: 40, upstreamMs: undefined });
    const [operation, ...others] = (await usage.reader.operations(period)) ?? [];
    expect(others).toEqual([]);
    expect(operation).toMatchObject({ operationId: 'getPet', requests: 100, lastMs: today });
    expect(Object.fromEntries(operation?.byStatus ?? [])).toEqual({ 200: 98, 404: 1, 502: 1 });
    // The bucket from 0.25 to 0.5 ms has 98 of the 100 times, so p95 is 0.25 ms times 2 to the power of 95/98.
    expect(operation?.own).toMatchObject({ p50Ms: 0.356, p95Ms: 0.49, p99Ms: 35.355 });
    expect(operation?.upstream).toMatchObject({ p50Ms: 3.536, p95Ms: 4.83, p99Ms: 4.965, meanMs: 4 });
  });

  it('adds up times below a millisecond, with any number of readings and flushes between them', async () => {
    const usage = await open();
    onTestFinished(() => usage.close());
    const operationOf = async () => (await usage.reader.operations(period))?.[0];
    for (let request = 0; request < 20; request++) {
      usage.recorder.ended({
        keyId: undefined,
        atMs: today,
        operationId: 'getPet',
        status: 200,
        ending: 'served',
        ownMs: 0.25,
        upstreamMs: 0.75,
      });
      await operationOf();
    }
    expect(await operationOf()).toMatchObject({
      requests: 20,
      own: { meanMs: 0.25, p50Ms: 0.125 },
      upstream: { meanMs: 0.75, p50Ms: expect.closeTo(0.5 * Math.SQRT2, 3) },
    });
  });

  it('records a limited number of operations of a key by name, and the others together', async () => {
    const usage = await open({ usageOperationsPerKeyMax: 3 });
    onTestFinished(() => usage.close());
    const event = { keyId: 'acme', outcome: 'admitted', address: 'a', status: 200, atMs: today } as const;
    for (let operation = 0; operation < 10; operation++) {
      for (let time = 0; time < 2; time++) count(usage, { ...event, operationId: `operation${operation}` });
    }
    const found = (await usage.reader.operationsOf('acme', period)) ?? [];
    expect(Object.fromEntries(found.map(({ operationId, requests }) => [operationId, requests]))).toEqual({
      ...{ operation0: 2, operation1: 2, operation2: 2, '*': 14 },
    });
  });

  it('counts the requests for which it has no room', async () => {
    const usage = await open({ usageUnsentCountsMax: 20, usageFlushIntervalMs: 600_000 });
    onTestFinished(() => usage.close());
    const event = { keyId: 'acme', outcome: 'admitted', address: 'a', operationId: '', status: 200 } as const;
    for (let minute = 0; minute < 100; minute++) count(usage, { ...event, atMs: today + minute * minuteMs });
    const minutes = await usage.reader.minutes('acme', period);
    const kept = (minutes ?? []).reduce((sum, { tally }) => sum + offeredOf(tally), 0);
    expect(usage.state().lostRequests).toBeGreaterThan(50);
    expect(kept + usage.state().lostRequests).toBe(100);
  });
});

it('each period has a number for every outcome, and the first eight outcomes keep the numbers of earlier versions', () => {
  const [first, later] = [new Set<number>(), new Set<number>()];
  for (let place = 0; place < 60; place++) {
    for (let outcome = 0; outcome < 8; outcome++) {
      expect(tallyNumber(place, outcome)).toBe(1 + 8 * place + outcome);
      first.add(tallyNumber(place, outcome));
    }
    for (let outcome = 8; outcome < 20; outcome++) later.add(laterNumber(place, outcome));
  }
  expect([first.size, later.size]).toEqual([60 * 8, 60 * 12]);
  expect(later).not.toContain(0);
});

it('two versions share a record: outcomes that the earlier version does not know change none of its figures', () => {
  const tally = { ...emptyTally, admitted: 5, minute: 2, concurrent: 3 };
  const known = new Map([
    [tallyNumber(59, 0), 5],
    [tallyNumber(59, 1), 2],
  ]);
  const later = new Map([[laterNumber(59, outcomes.indexOf('concurrent')), 3]]);
  expect(talliesIn({ counts: known, later })).toEqual(new Map([[59, tally]]));
  // A record of an earlier version has no field for the outcomes that were added later.
  expect(talliesIn({ counts: known })).toEqual(new Map([[59, { ...tally, concurrent: 0 }]]));
  // A newer version counts an outcome that this version does not know.
  later.set(laterNumber(59, outcomes.length), 7).set(laterNumber(3, outcomes.length), 7);
  expect(talliesIn({ counts: known, later })).toEqual(new Map([[59, tally]]));
});

it('rows of hours and days are the sums of their minutes', () => {
  const tally = { ...emptyTally, admitted: 1, day: 2 };
  const minutes = [0, 59, 60, 1_439, 1_440].map((minute) => ({ atMs: today + minute * minuteMs, tally }));
  expect(
    byPeriod(minutes, (atMs) => calendarStartMs('hour', atMs)).map(({ atMs, tally: sum }) => [
      atMs - today,
      sum.admitted,
      sum.day,
    ]),
  ).toEqual([
    [0, 2, 4],
    [hourMs, 1, 2],
    [23 * hourMs, 1, 2],
    [dayMs, 1, 2],
  ]);
  expect(
    byPeriod(minutes, (atMs) => calendarStartMs('day', atMs)).map(({ tally: sum }) => sum.admitted),
  ).toEqual([4, 1]);
});

describe('the record of several processes', () => {
  it('is the same for each process, and for a process that starts after all others have ended', async () => {
    await fc.assert(
      fc.asyncProperty(events, async (all) => {
        const prefix = freshPrefix();
        const processes = await Promise.all([1, 2, 3].map(() => openOnRedis({ prefix })));
        for (const [index, event] of all.entries()) count(processes[index % 3] as Usage, event);
        for (const process of processes) await process.close();
        const late = await openOnRedis({ prefix });
        for (const keyId of ['acme', 'umbrella'])
          expect(await found(late, keyId)).toEqual(expected(all, keyId));
        await late.close();
      }),
      { numRuns: 20 },
    );
  });

  it('takes at most 16 KiB of Redis for a key with requests and refusals in every minute of a day', async () => {
    const prefix = freshPrefix();
    const usage = await openOnRedis({ prefix, bounds: { usageFlushIntervalMs: 600_000 } });
    for (let minute = 0; minute < 1_440; minute++) {
      for (let request = 0; request < 340; request++) {
        const isRefused = request >= 300;
        count(usage, {
          ...{ keyId: 'acme', atMs: today + minute * minuteMs, outcome: isRefused ? 'minute' : 'admitted' },
          ...{ address: `192.0.2.${request % 20}`, operationId: `operation${request % 5}` },
          status: isRefused ? 429 : request % 10 === 0 ? 404 : 200,
        });
      }
    }
    await usage.close();
    const redis = await connectRedis({ prefix, place: { url: redisUrl() } });
    onTestFinished(redis.close);
    const bytes = await redis.commands.memory(
      'USAGE',
      `${prefix}:{acme}:usage:${today / dayMs}`,
      'SAMPLES',
      0,
    );
    expect(bytes).toBeGreaterThan(8_192);
    expect(bytes).toBeLessThan(16_384);
  });

  it('counts each batch once when its reply is lost', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const relay = await startTcpRelay(server.port);
    onTestFinished(() => relay.stop());
    const prefix = freshPrefix();
    const bounds = { usageFlushIntervalMs: 20, usageSlicesPerFlush: 2, usageCallTimeoutMs: 200 };
    const url = `redis://127.0.0.1:${relay.port}`;
    const usage = await openOnRedis({ url, prefix, bounds: { ...bounds, storeSilenceMaxMs: 300 } });
    const all: Event[] = [];
    for (let cut = 0; cut < 12; cut++) {
      // The relay delays replies but not requests. A cut of the connection therefore loses replies to batches that Redis
      // has already counted.
      relay.delay({ toServerMs: 0, toClientMs: cut % 3 === 2 ? 400 : 15 });
      for (let request = 0; request < 20; request++) {
        const event: Event = {
          ...{ keyId: 'acme', atMs: today + all.length, outcome: 'admitted', address: 'a' },
          ...{ operationId: 'listPets', status: 200 },
        };
        all.push(event);
        count(usage, event);
        await sleep(2);
      }
      relay.cut();
      await sleep(60);
    }
    relay.delay({ toServerMs: 0, toClientMs: 0 });
    const reader = await openOnRedis({ url: server.url, prefix });
    onTestFinished(() => reader.close());
    await until('everything has been sent', async () => {
      const [minute] = (await reader.reader.minutes('acme', period)) ?? [];
      return minute !== undefined && minute.tally.admitted >= all.length;
    });
    await sleep(300);
    expect(await found(reader, 'acme')).toMatchObject({ minutes: expected(all, 'acme').minutes });
    await usage.close();
    expect(await found(reader, 'acme')).toMatchObject({ minutes: expected(all, 'acme').minutes });
  });

  it('has the counts from before and during an outage of the store as soon as the store is back', async () => {
    const nowMs = () => today + dayMs;
    const inMemory = createMemoryUsageStore({ nowMs, keysMax: 10 });
    let isAway = true;
    const refused = new Set<string>();
    const store: UsageStore = {
      ...inMemory,
      async add(batch) {
        if (!isAway) return await inMemory.add(batch);
        refused.add(batch.record.kind === 'day' ? batch.record.keyId : batch.record.kind);
        return 'failed';
      },
    };
    const calendar = usageCalendar(minuteMs);
    // The recorder sends the counts of a key only after many minutes, unless a batch of the key has failed.
    const bounds = tunedBounds({ usageFlushIntervalMs: 900_000, usageSlicesPerFlush: 90_000 });
    const recorder = createUsageRecorder({ store, calendar, keptMs: dayMs, allKeptMs: dayMs, bounds });
    onTestFinished(() => recorder.close());
    const event = { outcome: 'admitted', address: 'a', operationId: 'getPet', status: 200 } as const;
    const countAll = (atMs: number) => {
      for (const keyId of ['acme', 'umbrella']) count({ recorder } as Usage, { ...event, keyId, atMs });
    };
    countAll(today);
    expect(await recorder.send()).toBe(false);
    expect(refused.size).toBe(3);
    countAll(today + minuteMs);
    isAway = false;
    // A second process, which has counted no request.
    const other = createUsageRecorder({ store, calendar, keptMs: dayMs, allKeptMs: dayMs, bounds });
    const reader = createUsageReader({ store, recorder: other, calendar, bounds });
    await until('all is in the store', async () => {
      const minutes = await Promise.all(['acme', 'umbrella'].map((key) => reader.minutes(key, period)));
      const [operation] = (await reader.operations(period)) ?? [];
      return minutes.every((of) => of?.length === 2) && operation?.requests === 4;
    });
  });

  it('has the counts from a freeze of Redis once Redis continues', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const prefix = freshPrefix();
    const bounds = { usageFlushIntervalMs: 50, usageCallTimeoutMs: 100 };
    const usage = await openOnRedis({ url: server.url, prefix, bounds });
    onTestFinished(() => usage.close());
    server.freeze();
    const event = { keyId: 'acme', outcome: 'minute', address: 'a', operationId: '', status: 429 } as const;
    for (let minute = 0; minute < 30; minute++) {
      count(usage, { ...event, atMs: today + minute * minuteMs });
      await sleep(20);
    }
    server.thaw();
    const reader = await openOnRedis({ url: server.url, prefix });
    onTestFinished(() => reader.close());
    const refused = async () =>
      ((await reader.reader.minutes('acme', period)) ?? []).reduce((sum, { tally }) => sum + tally.minute, 0);
    await until('it is there', async () => (await refused()) === 30);
    await sleep(300);
    expect(await refused()).toBe(30);
  });
});

it('all requests together are kept for two weeks, so that a week has the week before, and the minutes of a key for the stated days', async () => {
  const prefix = freshPrefix();
  const bounds = tunedBounds(patient);
  const redis = await connectRedis({ prefix, place: { url: redisUrl() }, bounds });
  const open = () => createUsage({ redis, keepDays: 8, minuteMs, nowMs: Date.now, bounds });
  onTestFinished(() => redis.close());
  const [recentMs, oldMs] = [Date.now(), Date.now() - 14 * dayMs];
  const writer = open();
  for (const atMs of [recentMs, oldMs]) {
    count(writer, {
      keyId: 'acme',
      atMs,
      outcome: 'admitted',
      address: 'a',
      operationId: 'listPets',
      status: 200,
    });
  }
  await writer.close();
  const { reader, close } = open();
  onTestFinished(close);
  const requestsAt = async (atMs: number) => {
    const period = { fromMs: atMs, toMs: atMs };
    const [all, ofKey] = [await reader.traffic(period), await reader.minutes('acme', period)];
    return [all?.map(({ ended }) => ended.served), ofKey?.map(({ tally }) => tally.admitted)];
  };
  expect(await requestsAt(recentMs)).toEqual([[1], [1]]);
  expect(await requestsAt(oldMs)).toEqual([[1], []]);
});

describe('the totals of past days', () => {
  /** Counts one request on each given day, and adds the days to the totals. A day is given by its distance from today. */
  async function totalled(daysAgo: readonly number[], clock: { nowMs: number }) {
    const prefix = freshPrefix();
    const all = tunedBounds({
      ...patient,
      usageFlushIntervalMs: 20,
      usageSlicesPerFlush: 2,
      usageTotalsPauseMs: 2,
    });
    const redis = await connectRedis({ prefix, place: { url: redisUrl() }, bounds: all });
    const open = () =>
      createUsage({
        redis,
        keepDays: 8,
        minuteMs,
        nowMs: () => clock.nowMs,
        bounds: all,
      });
    const writer = open();
    for (const days of daysAgo) {
      for (const [outcome, units] of [
        ['admitted', 5],
        ['admitted', 0],
        ['day', 5],
        ['banned', 1],
        ['concurrent', 5],
      ] as const) {
        const atMs = clock.nowMs - days * dayMs;
        count(writer, {
          keyId: 'acme',
          atMs,
          outcome,
          units,
          address: 'a',
          operationId: 'listPets',
          status: 200,
        });
      }
    }
    await writer.close();
    const processes = [open(), open(), open()];
    onTestFinished(async () => {
      await Promise.all(processes.map((process) => process.close()));
      redis.close();
    });
    return {
      prefix,
      client: redis.commands,
      processes,
      read: () => (processes[0] as Usage).totals(['acme']).then((totals) => totals?.[0]),
    };
  }

  it('include each day a day after its end, and only once for any number of processes', async () => {
    const clock = { nowMs: Date.now() };
    const { read } = await totalled([0, 1, 2, 3, 7], clock);
    const day = Math.floor(clock.nowMs / dayMs);
    await until('they are there', async () => (await read())?.size === 3);
    await sleep(100);
    const tally = { ...emptyTally, admitted: 2, day: 1, banned: 1, concurrent: 1, extraUnits: 4, free: 1 };
    expect(unitsOf(tally)).toBe(5);
    expect([...((await read()) ?? [])]).toEqual([7, 3, 2].map((ago) => [day - ago, tally]));
    clock.nowMs += dayMs;
    await until('one more is there', async () => (await read())?.has(day - 1) === true);
    expect((await read())?.size).toBe(4);
  });

  it('and the days with kept minutes add up to the month, over two processes', async () => {
    const prefix = freshPrefix();
    const clock = { nowMs: Date.now() };
    const bounds = tunedBounds({
      ...{ ...patient, usageFlushIntervalMs: 20, usageSlicesPerFlush: 2, usageTotalsPauseMs: 2 },
      usageReadsPerTurnMax: 25,
      usageActiveNotedMs: 0,
    });
    const redis = await connectRedis({ prefix, place: { url: redisUrl() }, bounds });
    const open = () => createUsage({ redis, keepDays: 8, minuteMs, nowMs: () => clock.nowMs, bounds });
    const processes = [open(), open()] as const;
    const settings = await settingsOf({ upstream: { url: 'http://127.0.0.1:1' }, keys: [] });
    onTestFinished(async () => {
      await Promise.all(processes.map((process) => process.close()));
      redis.close();
    });
    const keyIds = Array.from({ length: 60 }, (_, index) => `customer-${index}`);
    const sent = new Map<string, { offered: number; admitted: number; units: number | undefined }>();
    /** Counts some requests of each key on the given day, in both processes. */
    const countOn = (day: number) => {
      for (const [index, keyId] of keyIds.entries()) {
        for (let request = 0; request <= (index + day) % 4; request++) {
          const atMs = day * dayMs + ((index * 7_919 + request) % 86_399) * 1_000;
          const outcome = request === 2 ? 'day' : 'admitted';
          const units = index % 3 === 0 ? 5 * request : 1;
          const event = {
            keyId,
            atMs,
            outcome,
            units,
            address: 'a',
            operationId: '',
            status: 200,
          } as const;
          count(processes[(index + request) % 2] as Usage, event);
          const name = `${keyId} ${new Date(atMs).toISOString().slice(0, 7)}`;
          const known = sent.get(name) ?? { offered: 0, admitted: 0, units: 0 };
          const isAdmitted = outcome === 'admitted';
          const admitted = known.admitted + (isAdmitted ? 1 : 0);
          const charged = (known.units ?? known.admitted) + (isAdmitted ? units : 0);
          const differing = charged === admitted ? undefined : charged;
          sent.set(name, { offered: known.offered + 1, admitted, units: differing });
        }
      }
    };
    /** Returns whether each of the two processes reports the requests of both processes. */
    const allOnRecord = async () => {
      const months = new Set([...sent.keys()].map((name) => name.slice(-7)));
      for (const usage of processes) {
        const found = new Map<string, object>();
        // No key is in the configuration, so the reader takes the keys from the index of active keys.
        const sources = { settings: () => settings, usage, nowMs: () => clock.nowMs, bounds };
        for (const month of months) {
          const page = await monthUsage(sources, { month, limit: keyIds.length });
          for (const { id, offered, admitted, units } of typeof page === 'object' ? page.keys : [])
            found.set(`${id} ${month}`, { offered, admitted, units });
        }
        if (!isDeepStrictEqual(found, sent)) return false;
      }
      return true;
    };
    /** Counts on one day after the other. The totals of a day are added one full day later, when both processes have sent its counts. */
    const countInTurn = async (days: readonly number[]) => {
      for (const day of days) {
        clock.nowMs = (day + 1) * dayMs - 1;
        countOn(day);
        await until('all is on record', allOnRecord);
      }
    };
    const day = Math.floor(clock.nowMs / dayMs);
    const early = [7, 6, 4, 1].map((ago) => day - ago);
    await countInTurn(early);
    clock.nowMs = (day + 3) * dayMs;
    await until('the early days of each are in its totals', async () => {
      const totals = await processes[0].totals(keyIds);
      return totals?.every((of) => early.every((one) => of.has(one))) === true;
    });
    await countInTurn([day + 6, day + 7]);
    // Deletes the minutes of the early days.
    await Promise.all(
      keyIds.flatMap((keyId) => early.map((one) => redis.commands.del(`${prefix}:{${keyId}}:usage:${one}`))),
    );
    await countInTurn([day + 11, day + 12]);
  });

  it('lose a month 400 days after its end', async () => {
    const clock = { nowMs: Date.now() };
    const { read, client, prefix } = await totalled([3], clock);
    await until('it is there', async () => (await read())?.size === 1);
    await client.hset(`${prefix}:{acme}:usage-totals`, 'days:2020-01', Buffer.from([0x92, 1, 1]));
    expect((await read())?.size).toBe(2);
    clock.nowMs += dayMs;
    await until('the old month is gone', async () => (await read())?.size === 1);
    expect(await client.pttl(`${prefix}:{acme}:usage-totals`)).toBeGreaterThan(399 * dayMs);
  });
});

it('the requests of a thousand operations are sent in one flush, in calls that Redis handles quickly', async () => {
  const operations = 1_000;
  // This test needs its own server, because `MONITOR` receives the commands of every client.
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const { url } = server;
  const prefix = freshPrefix();
  // If Redis does not have the script yet, it refuses the call, and the call is sent again with the script. The map has one
  // entry for both calls.
  const calls = new Map<string, number>();
  const monitor = await monitorRedis(server.port, ([command = '', _script, ...args]) => {
    if (/^eval/i.test(command) && args[1]?.startsWith(`${prefix}:usage:operations`))
      calls.set(args.join(), args.length);
  });
  onTestFinished(() => monitor.stop());
  const usage = await openOnRedis({
    url,
    prefix,
    bounds: { usageFlushIntervalMs: 1_000, usageSlicesPerFlush: 1 },
  });
  onTestFinished(() => usage.close());
  const witness = await openOnRedis({ url, prefix });
  onTestFinished(() => witness.close());
  const atMs = Date.now();
  for (let operation = 0; operation < operations; operation++) {
    const ended = { keyId: undefined, atMs, status: 200, ending: 'served', ownMs: 1, upstreamMs: 2 } as const;
    usage.recorder.ended({ ...ended, operationId: `operation-${operation}` });
  }
  const seen = async () => (await witness.reader.operations({ fromMs: atMs, toMs: atMs }))?.length;
  await expect.poll(seen).toBe(operations);
  await until('every call was seen', () => calls.size >= 5);
  expect(calls.size).toBeLessThan(8);
  // Each call has seven arguments before the fields.
  expect(Math.max(...calls.values())).toBeLessThanOrEqual(7 + 2 * 250);
});
