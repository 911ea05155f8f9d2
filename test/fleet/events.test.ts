import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createEvents } from '../../gateway/fleet/events.ts';
import { type Happening, kindOf } from '../../gateway/fleet/kinds/kinds.ts';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { inspect } from '../support/inspect.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { startRedis } from '../support/start-redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const bounds = tunedBounds({
  ...patientStore,
  presenceIntervalMs: 20,
  eventsAtOnceMax: 1_000,
});
const policy = { after: 100, withinMs: 60_000, forMs: 120_000, maxMs: 86_400_000 };
const startMs = Date.now();

/** The event list of one process, in Redis or in memory. */
function eventsOf(processId: string, redis?: { url: string; prefix: string }, own = bounds) {
  const records = redis && openRedis(redis, own);
  const events = createEvents({ records, processId, nowMs: Date.now, bounds: own });
  onTestFinished(async () => {
    await events.close();
    records?.close();
  });
  return events;
}

/** Moves the clock of this process forward by `ms`. The clock of Redis is unaffected. */
function pass(ms: number): void {
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + ms);
  onTestFinished(() => clock.mockRestore());
}

function ban(keyId: string, untilMs = startMs + 120_000): Happening {
  return { kind: 'ban', keyId, plan: 'free', level: 1, untilMs, policy };
}

function away(reason = 'connection lost'): Happening {
  return { kind: 'store_away', reason, onFailure: 'local' };
}

async function listed(events: ReturnType<typeof eventsOf>) {
  const page = await events.read({ limit: 100 });
  return (
    page.isComplete && page.events.map(({ kind, key, processes }) => `${kind} ${key ?? ''} ${processes}`)
  );
}

it('a ban is one event whenever the processes see it, and another ban of the key is another event', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const [first, second, third] = ['p1', 'p2', 'p3'].map((id) => eventsOf(id, shared));
  if (!first || !second || !third) throw new Error('three were made');
  const areListed = (expected: readonly string[]) => expect.poll(() => listed(second)).toEqual(expected);

  for (const one of [first, second]) one.record(ban('acme'));
  await areListed(['ban acme 2']);
  first.record(ban('globex'));
  await areListed(['ban globex 1', 'ban acme 2']);
  third.record(ban('acme'));
  await areListed(['ban globex 1', 'ban acme 3']);
  first.record(ban('acme', startMs + 500_000));
  await areListed(['ban acme 1', 'ban globex 1', 'ban acme 3']);
  const [, , oldest] = (await third.read({ limit: 3 })).events;
  expect(oldest).toEqual({
    id: expect.stringMatching(/^\d+-\d+$/),
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    kind: 'ban',
    text: expect.stringContaining('acme (free) is banned for 2 min'),
    key: 'acme',
    plan: 'free',
    untilAt: new Date(startMs + 120_000).toISOString(),
    process: expect.stringMatching(/^p[12]$/),
    processes: 3,
  });
});

it('reports of several processes within the merging time are one event, and a later report is another event', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const own = { ...bounds, eventsMergedWithinMs: 60_000 };
  const [first, second] = [eventsOf('p1', shared, own), eventsOf('p2', shared, own)];
  first.record(away('connection lost'));
  second.record(away('no reply within the deadline'));
  // The processes are not connected to Redis yet. The processes send the recorded events later, when the events are ten
  // minutes old.
  pass(600_000);
  await expect.poll(() => listed(first)).toEqual(['store_away  2']);
  second.record(away());
  await expect.poll(() => listed(first)).toEqual(['store_away  1', 'store_away  2']);
});

it('an event during a Redis outage is listed afterwards, at its time, once for all processes', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const shared = { url: server.url, prefix: freshPrefix() };
  const own = { ...bounds, eventsMergedWithinMs: 60_000 };
  const [first, second] = [eventsOf('p1', shared, own), eventsOf('p2', shared, own)];
  await expect.poll(() => listed(first)).toEqual([]);
  await expect.poll(() => listed(second)).toEqual([]);
  await server.kill();
  await until('it is away', async () => !(await first.read({ limit: 1 })).isComplete);
  const awayMs = Date.now();
  for (const one of [first, second]) one.record(away());
  await sleep(20);
  first.record(ban('acme'));
  const alone = await first.read({ limit: 10 });
  expect([alone.isComplete, ...alone.events.map(({ kind }) => kind)]).toEqual([false, 'ban', 'store_away']);
  const outageMs = 3_600_000;
  pass(outageMs);
  await server.restart();
  const backMs = Date.now();
  for (const one of [first, second]) one.record({ kind: 'store_back', awayMs: outageMs });
  await expect.poll(() => listed(second)).toEqual(['store_back  2', 'ban acme 1', 'store_away  2']);
  const times = (await second.read({ limit: 10 })).events.map(({ at }) => Date.parse(at));
  // The clock of Redis did not move forward with the clock of the process.
  expect(Math.abs((times[2] ?? Number.NaN) - (awayMs - outageMs))).toBeLessThan(30_000);
  expect(Math.abs((times[0] ?? Number.NaN) - backMs)).toBeLessThan(30_000);
});

it('an event while Redis is frozen is listed at its time, although Redis receives it later', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const shared = { url: server.url, prefix: freshPrefix() };
  const events = eventsOf('p1', shared, { ...bounds, storePatientDeadlineMs: 200 });
  await expect.poll(() => listed(events)).toEqual([]);
  server.freeze();
  const awayMs = Date.now();
  // The process sends the event immediately, but the frozen Redis server does not read the event from its socket.
  events.record(away());
  await until('it is away', async () => !(await events.read({ limit: 1 })).isComplete);
  const outageMs = 3_600_000;
  pass(outageMs);
  // When this read finishes, the deadline for sending the event has passed.
  await events.read({ limit: 1 });
  server.thaw();
  await expect.poll(() => listed(events)).toEqual(['store_away  1']);
  const [event] = (await events.read({ limit: 1 })).events;
  // The clock of Redis did not move forward with the clock of the process.
  expect(Math.abs(Date.parse(event?.at ?? '') - (awayMs - outageMs))).toBeLessThan(30_000);
});

it('a flood of bans lists the first bans, counts all others, and keeps earlier events', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const own = { ...bounds, eventsAtOnceMax: defaultBounds.eventsAtOnceMax, eventsSummaryPauseMs: 100 };
  const events = eventsOf('p1', shared, own);
  events.record(away());
  for (let key = 0; key < 1_000; key++) events.record(ban(`key-${key}`));
  events.record({ kind: 'recording_resumed' });
  const counted = async () => {
    const page = await events.read({ limit: 200 });
    const bans = page.events.filter(({ kind }) => kind === 'ban');
    return [page.events.length, bans.reduce((sum, { count = 1 }) => sum + count, 0)];
  };
  await expect.poll(counted).toEqual([2 + own.eventsAtOnceMax + 1, 1_000]);
  const { events: all } = await events.read({ limit: 200 });
  expect(all.map(({ text }) => text)).toContain(`And ${1_000 - own.eventsAtOnceMax} more keys were banned.`);
  expect(all.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['store_away', 'recording_resumed']));
});

it('a process in an endless flood of events writes with growing pauses', async () => {
  const own = tunedBounds({ eventsAtOnceMax: 5, eventsSummaryPauseMs: 20, eventsRefillMs: 1_000 });
  const events = eventsOf('p1', undefined, own);
  let bans = 0;
  for (const endMs = Date.now() + 1_500; Date.now() < endMs; await sleep(1))
    events.record(ban(`key-${bans++}`));
  await events.close();
  const { events: all } = await events.read({ limit: 200 });
  expect(all.reduce((sum, { count = 1 }) => sum + count, 0)).toBe(bans);
  // The list accepts a burst of 5 events and one more event each second, with summaries after 20, 40, 80, … ms.
  expect(all.length).toBeLessThan(20);
});

it.each([
  ['Redis', () => ({ url: redisUrl(), prefix: freshPrefix() })],
  ['memory', () => undefined],
])(
  '%s keeps at most the bound of events, and pages show each event once, the newest first',
  async (_where, where) => {
    const redis = where();
    const events = eventsOf('p', redis, { ...bounds, eventsMax: 25 });
    for (let key = 1; key <= 40; key++) events.record(ban(`key-${key}`));
    await expect
      .poll(async () => (await listed(events)) && (await events.read({ limit: 1 })).events[0]?.key)
      .toBe('key-40');
    const seen: (string | undefined)[] = [];
    let after: string | undefined;
    do {
      const page = await events.read({ limit: 10, ...(after !== undefined && { after }) });
      seen.push(...page.events.map(({ key }) => key));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toHaveLength(25);
    expect(new Set(seen)).toEqual(new Set(Array.from({ length: 25 }, (_, index) => `key-${40 - index}`)));
    if (redis === undefined) return;
    const inspector = inspect(redis.url);
    onTestFinished(() => inspector.disconnect());
    expect(await inspector.hlen(redisKeys.eventsReports.name(redis.prefix))).toBe(2 * 25);
  },
);

it('an expired event is removed with the next event, and both Redis keys expire', async () => {
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const { eventsKeptMs } = bounds;
  const events = eventsOf('p', redis);
  const inspector = inspect(redis.url);
  onTestFinished(() => inspector.disconnect());
  const names = [redisKeys.events.name(redis.prefix), redisKeys.eventsReports.name(redis.prefix)] as const;
  const [stream, hash] = names;
  events.record(ban('old'));
  await expect.poll(() => listed(events)).toEqual(['ban old 1']);
  events.record(ban('middle'));
  await expect.poll(() => listed(events)).toEqual(['ban middle 1', 'ban old 1']);

  // The id of an entry contains the time at which the entry was added. The test rewrites the entries with earlier ids.
  const [entries, reports] = await Promise.all([inspector.xrange(stream, '-', '+'), inspector.hgetall(hash)]);
  let reportsText = JSON.stringify(reports);
  await inspector.del(stream, hash);
  for (const [index, [id, fields]] of entries.entries()) {
    const agoMs = [2 * eventsKeptMs, eventsKeptMs / 2][index] ?? 0;
    const earlier = `${Number.parseInt(id, 10) - agoMs}-1`;
    await inspector.xadd(stream, earlier, ...fields);
    reportsText = reportsText.replaceAll(id, earlier);
  }
  await inspector.hset(hash, JSON.parse(reportsText));
  expect(await listed(events)).toEqual(['ban middle 1', 'ban old 1']);

  events.record(ban('new'));
  await expect.poll(() => listed(events)).toEqual(['ban new 1', 'ban middle 1']);
  expect(await inspector.hlen(hash)).toBe(4);
  for (const name of names) {
    const expiresMs = await inspector.pttl(name);
    expect(expiresMs).toBeGreaterThan(0);
    expect(expiresMs).toBeLessThanOrEqual(eventsKeptMs);
  }
});

it('foreign entries in the stream are not listed', async () => {
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const events = eventsOf('p', redis);
  const inspector = inspect(redis.url);
  onTestFinished(() => inspector.disconnect());
  const stream = redisKeys.events.name(redis.prefix);
  await inspector.xadd(stream, '*', 'what', '[]', 'at', 'yesterday', 'entry', '{}');
  await inspector.xadd(stream, '*', 'what', '[]', 'at', '1', 'entry', '{');
  await inspector.xadd(stream, '*', 'a', 'b');
  events.record(ban('acme'));
  await expect.poll(() => listed(events)).toEqual(['ban acme 1']);
});

it('an event of a kind that only a newer version of the gateway knows is not listed', async () => {
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const events = eventsOf('p', redis);
  const inspector = inspect(redis.url);
  onTestFinished(() => inspector.disconnect());
  const entry = JSON.stringify({ kind: 'plan_renamed', text: 'free was renamed.', process: 'q' });
  const stream = redisKeys.events.name(redis.prefix);
  await inspector.xadd(stream, '*', 'what', '["plan_renamed"]', 'at', startMs, 'entry', entry);
  events.record(ban('acme'));
  await expect.poll(() => listed(events)).toEqual(['ban acme 1']);
  expect((await events.list({ limit: 10 })).events).toMatchObject([{ kind: 'ban', group: 'ban' }]);
});

const nowMs = Date.parse('2026-11-22T10:31:00Z');
const untilMs = nowMs + 120_000;
const acme = { keyId: 'acme', plan: 'free', untilMs } as const;
const target = { upstream: 'store', target: '10.0.0.7:3000' } as const;

it.each<[Happening, string]>([
  [
    { kind: 'ban', ...acme, level: 1, policy },
    'acme (free) is banned for 2 min, until 10:33:00 UTC: 100 of its requests were refused within 1 min.',
  ],
  [
    { kind: 'ban', ...acme, untilMs: nowMs + 86_400_000, level: 12, policy },
    'acme (free) is banned for 1 d, until 10:31:00 UTC on 2026-11-23, for the 12th time in a row: 100 of its requests were refused within 1 min.',
  ],
  [{ kind: 'ban_ended', ...acme, ended: 'expired' }, 'The ban of acme (free) expired.'],
  [{ kind: 'ban_ended', ...acme, plan: undefined, ended: 'lifted' }, 'The ban of acme was lifted.'],
  [away(), 'Redis is away (connection lost): each process counts limits on its own.'],
  [
    { kind: 'store_away', reason: 'connection lost', onFailure: 'refuse' },
    'Redis is away (connection lost): requests are answered 503.',
  ],
  [{ kind: 'store_back', awayMs: 3_912 }, 'Redis is back. It was away for 3.9 s.'],
  [{ kind: 'store_back', awayMs: 3_912_000 }, 'Redis is back. It was away for 1 h 5 min.'],
  [
    { kind: 'target_unhealthy', ...target, health: 'down', reason: 'connect ECONNREFUSED' },
    'Target 10.0.0.7:3000 of upstream store is down and gets no requests: connect ECONNREFUSED.',
  ],
  [
    { kind: 'target_healthy', ...target, unhealthyMs: 12_340 },
    'Target 10.0.0.7:3000 of upstream store is healthy again after 12 s.',
  ],
  [
    { kind: 'reload', before: 'aaa', after: 'bbb', edits: ['free 60 → 50 a minute'] },
    'Configuration bbb is in force: free 60 → 50 a minute.',
  ],
  [
    { kind: 'reload', before: 'aaa', after: 'bbb', edits: [] },
    'Configuration bbb is in force: no setting changed.',
  ],
  [
    { kind: 'reload_failed', before: 'aaa', after: 'bbb', error: 'keys.yaml:3:1: no such plan\n  3 | plan' },
    'Configuration bbb was not loaded, so configuration aaa stays in force: keys.yaml:3:1: no such plan',
  ],
])('an event is one sentence: %#', (happening, text) => {
  expect(kindOf(happening).text(happening, nowMs)).toBe(text);
});

it('an outage is one event with its beginning, reason and number of processes, however long it lasts, and another outage is another event', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  // Reports are at least 60 ms apart, so each report becomes an entry. The time of an entry may differ from the time of its event by 2 ms.
  const own = tunedBounds({ ...bounds, eventsMergedWithinMs: 20 });
  const [first, second] = ['p1', 'p2'].map((id) => eventsOf(id, shared, own));
  if (!first || !second) throw new Error('two were made');
  const isRead = (number: number) =>
    expect
      .poll(async () => {
        const { isComplete, events } = await first.read({ limit: 99 });
        return isComplete && events.length;
      })
      .toBe(number);
  const down = (address: string): Happening => ({
    ...{ kind: 'target_unhealthy', upstream: 'store', target: address, health: 'down', reason: 'refused' },
  });
  const up = (address: string): Happening => ({
    ...{ kind: 'target_healthy', upstream: 'store', target: address, unhealthyMs: 3_000 },
  });
  let written = 0;
  const report = async (events: typeof first, happening: Happening) => {
    events.record(happening);
    written += 1;
    await isRead(written);
    await sleep(60);
  };
  await report(first, down('a:1'));
  await report(second, down('a:1'));
  await report(first, up('a:1'));
  await report(second, up('a:1'));
  await report(first, down('b:1'));
  await report(second, ban('acme'));
  await report(first, down('a:1'));
  const raw = (await first.read({ limit: 99 })).events;
  const { events, next } = await second.list({ limit: 99 });
  expect(events.map(({ kind, target, processes }) => `${kind} ${target ?? ''} ${processes}`)).toEqual([
    'target_unhealthy a:1 1',
    'ban  1',
    'target_unhealthy b:1 1',
    'target_healthy a:1 2',
  ]);
  expect(next).toBeUndefined();
  const [over] = events.slice(-1);
  expect(over?.text).toBe(
    'Target a:1 of upstream store is healthy again after 3 s. The failure was: refused.',
  );
  // The event lasts from the first report of its beginning to the last report of its end.
  expect(String(over?.beganAt) < String(raw.at(-2)?.at)).toBe(true);
  expect(over?.id).toBe(raw.at(-4)?.id);

  const kindsOf = async (query: Omit<Parameters<typeof first.list>[0], 'limit'>) =>
    (await first.list({ limit: 99, ...query })).events.map(({ kind }) => kind);
  expect(await kindsOf({ kinds: new Set(['ban']) })).toEqual(['ban']);
  expect(await kindsOf({ kinds: new Set(['incident']) })).toHaveLength(3);
  expect(await kindsOf({ kinds: new Set(['target_unhealthy']) })).toHaveLength(3);
  expect(await kindsOf({ kinds: new Set(['target_healthy']) })).toHaveLength(1);
  const banAtMs = Date.parse(events[1]?.at ?? '');
  expect(await kindsOf({ fromMs: banAtMs })).toEqual(['target_unhealthy', 'ban']);
  expect(await kindsOf({ toMs: banAtMs })).toEqual(['target_unhealthy', 'target_healthy']);
  const pages: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await first.list({ limit: 1, after });
    pages.push(...page.events.map(({ id }) => id));
    if (page.next === undefined) break;
    after = page.next;
  }
  expect(pages).toEqual(events.map(({ id }) => id));
});

it('the default bounds keep an event for 7 days', () => {
  expect(defaultBounds.eventsKeptMs).toBe(7 * 86_400_000);
});
