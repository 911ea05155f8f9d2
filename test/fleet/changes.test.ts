import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { type Change, type ChangesFilter, createChanges } from '../../gateway/fleet/changes.ts';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { inspect } from '../support/inspect.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { startRedis } from '../support/start-redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const bounds = tunedBounds({ ...patientStore, presenceIntervalMs: 20 });

/** The record of changes of one process, in Redis or in memory. */
function changesOf(processId: string, redis?: { url: string; prefix: string }, own = bounds) {
  const records = redis && openRedis(redis, own);
  const changes = createChanges({ records, processId, nowMs: Date.now, bounds: own });
  onTestFinished(async () => {
    await changes.close();
    records?.close();
  });
  return changes;
}

const reload = (before: string, after: string) => ({ action: 'reload', by: 'file', before, after }) as const;

it('the same reload on several processes is one change with their number, and a repeated reload is another change', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const [first, second, third] = ['p1', 'p2', 'p3'].map((id) => changesOf(id, shared));
  if (!first || !second || !third) throw new Error('three were made');
  const list = async () => {
    const { isComplete, changes } = await second.read({ limit: 10 });
    return isComplete && changes.map(({ before, after, processes }) => `${before}>${after} ${processes}`);
  };
  const recorded = (expected: readonly string[]) => expect.poll(list).toEqual(expected);

  for (const one of [first, second, third]) one.record(reload('a', 'b'));
  await recorded(['a>b 3']);
  for (const one of [first, second]) one.record(reload('b', 'a'));
  await recorded(['b>a 2', 'a>b 3']);
  first.record(reload('a', 'b'));
  await recorded(['a>b 1', 'b>a 2', 'a>b 3']);
  second.record(reload('a', 'b'));
  await recorded(['a>b 2', 'b>a 2', 'a>b 3']);
  third.record({ action: 'reload_failed', by: 'file', before: 'b', after: 'c', error: 'broken' });
  await recorded(['b>c 1', 'a>b 2', 'b>a 2', 'a>b 3']);
  const [failed] = (await first.read({ limit: 1 })).changes;
  expect(failed).toEqual({
    id: expect.stringMatching(/^\d+-\d+$/),
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    action: 'reload_failed',
    by: 'file',
    before: 'b',
    after: 'c',
    error: 'broken',
    process: 'p3',
    processes: 1,
  });
});

it('a reload that processes on several hosts report has the files as the first process saw them', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const [one, other] = [changesOf('p1', shared), changesOf('p2', shared)];
  const filesOf = (owner: string, modifiedAt: string) => ({
    files: ['tollgate.yaml'],
    editedFiles: [{ name: 'tollgate.yaml', owner, modifiedAt }],
  });
  const ofFirst = filesOf('alice', '2026-11-28T14:03:10.000Z');
  one.record({ ...reload('a', 'b'), ...ofFirst });
  await expect.poll(async () => (await other.read({ limit: 9 })).changes).toHaveLength(1);
  other.record({ ...reload('a', 'b'), ...filesOf('1000', '2026-11-28T14:03:12.000Z') });
  await expect
    .poll(async () => (await one.read({ limit: 9 })).changes)
    .toEqual([expect.objectContaining({ ...ofFirst, process: 'p1', processes: 2 })]);
});

it.each([
  ['Redis', () => ({ url: redisUrl(), prefix: freshPrefix() })],
  ['memory', () => undefined],
])(
  '%s keeps at most the bound of changes, and pages show each change once, the newest first',
  async (_where, where) => {
    const redis = where();
    const changes = changesOf('p', redis, { ...bounds, changesMax: 25 });
    for (let version = 0; version < 40; version++) changes.record(reload(`v${version}`, `v${version + 1}`));
    const newest = async () => (await changes.read({ limit: 1 })).changes[0]?.after;
    await expect.poll(newest).toBe('v40');
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = await changes.read({ limit: 10, ...(after !== undefined && { after }) });
      seen.push(...page.changes.map((change) => String(change.after)));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual(Array.from({ length: 25 }, (_, index) => `v${40 - index}`));
  },
);

it.each([
  ['Redis', () => ({ url: redisUrl(), prefix: freshPrefix() })],
  ['memory', () => undefined],
])(
  '%s has the changes of one key, one author and one period, on pages without gaps',
  async (_where, where) => {
    const changes = changesOf('p', where(), { ...bounds, changesMax: 2_000 });
    for (let round = 0; round < 600; round++) {
      changes.record({ action: 'ban', by: round % 3 === 0 ? 'alice' : 'bob', key: `key-${round % 5}` });
    }
    changes.record({ ...reload('a', 'b'), limitsBefore: { keys: { 'key-1': { plan: 'free' } } } });
    changes.record({ ...reload('b', 'c'), keys: ['key-1', 'key-2'] });
    changes.record({
      ...reload('b', 'c'),
      limitsBefore: { keys: { other: { plan: 'free' } } },
      keys: ['other'],
    });
    await expect.poll(async () => (await changes.read({ limit: 1 })).changes[0]?.after).toBe('c');

    const all = async (filter: ChangesFilter, limit: number) => {
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await changes.read({ limit, after, ...filter });
        // A page that has a further page is full.
        expect(page.changes.length === limit || page.next === undefined).toBe(true);
        seen.push(...page.changes.map(({ id }) => id));
        after = page.next;
      } while (after !== undefined);
      expect(new Set(seen).size).toBe(seen.length);
      return seen.length;
    };
    for (const limit of [7, 200]) {
      expect(await all({ key: 'key-1' }, limit)).toBe(122);
      expect(await all({ by: 'alice' }, limit)).toBe(200);
      expect(await all({ key: 'key-1', by: 'alice' }, limit)).toBe(40);
      expect(await all({ key: 'key-1', by: 'file' }, limit)).toBe(2);
      expect(await all({ key: 'nobody' }, limit)).toBe(0);
      expect(await all({ fromMs: Date.now() + 60_000 }, limit)).toBe(0);
      expect(await all({ toMs: Date.now() + 60_000 }, limit)).toBe(603);
    }
  },
);

it('changes during a Redis outage are listed by their process at once, and written in order afterwards', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const shared = { url: server.url, prefix: freshPrefix() };
  const writer = changesOf('p1', shared);
  const reader = changesOf('p2', shared);
  const seen = async (of: typeof reader) => {
    const { isComplete, changes } = await of.read({ limit: 10 });
    return [isComplete, ...changes.map(({ after }) => after)];
  };
  await expect.poll(() => seen(reader)).toEqual([true]);
  await server.kill();
  await until('it is away', async () => !(await writer.read({ limit: 1 })).isComplete);
  writer.record(reload('a', 'b'));
  writer.record(reload('b', 'c'));
  expect(await seen(writer)).toEqual([false, 'c', 'b']);
  expect(await seen(reader)).toEqual([false]);
  await server.restart();
  await expect.poll(() => seen(reader)).toEqual([true, 'c', 'b']);
  await sleep(5 * bounds.presenceIntervalMs);
  expect(await seen(reader)).toEqual([true, 'c', 'b']);
});

it('a long reason of a failed reload is shortened, and the default bounds keep a change for 90 days', async () => {
  const changes = changesOf('p');
  changes.record({ action: 'reload_failed', by: 'file', before: 'a', error: 'x'.repeat(100_000) });
  const [change] = (await changes.read({ limit: 1 })).changes;
  expect(change).toMatchObject({ error: 'x'.repeat(bounds.changeErrorCharsMax) });
  expect(defaultBounds.changesKeptMs).toBe(90 * 86_400_000);
});

it('changes of keys are listed one by one, in order, even if several processes make the same change at the same time', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const [one, other] = [changesOf('p1', shared), changesOf('p2', shared)];
  const revoke: Change = { action: 'revoke', by: 'alice', key: 'acme', after: { disabled: true } };
  for (const changes of [one, one, one, one, one, one, other, other]) changes.record(revoke);
  const listed = async () =>
    (await one.read({ limit: 20 })).changes.map(({ process, processes }) => `${process} ${processes}`).sort();
  await expect.poll(listed).toEqual([...Array(6).fill('p1 1'), ...Array(2).fill('p2 1')]);
  expect((await other.read({ limit: 1 })).changes[0]).toMatchObject(revoke);
});

it('a change whose action only a newer version of the gateway knows is not listed', async () => {
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const changes = changesOf('p', redis);
  const inspector = inspect(redis.url);
  onTestFinished(() => inspector.disconnect());
  const entry = JSON.stringify({ action: 'plan.renamed', by: 'alice', plan: 'free', process: 'q' });
  const stream = redisKeys.changes.name(redis.prefix);
  await inspector.xadd(stream, '*', 'what', '["plan.renamed"]', 'at', 1, 'entry', entry);
  changes.record(reload('a', 'b'));
  await expect
    .poll(async () => (await changes.read({ limit: 10 })).changes.map(({ action }) => action))
    .toEqual(['reload']);
});

it('the record shortens long members, and keeps 20,000 changes by default', async () => {
  const changes = changesOf('p');
  const operations = Array.from({ length: 500 }, (_, index) => `operation${index}`);
  changes.record({
    action: 'update',
    by: 'alice',
    key: 'acme',
    before: { plan: 'free' },
    after: { operations },
  });
  const [change] = (await changes.read({ limit: 1 })).changes;
  expect(change).toMatchObject({
    before: { plan: 'free' },
    after: { operations: expect.stringMatching(/^\["operation0","operation1",.* …$/) },
  });
  expect(JSON.stringify(change).length).toBeLessThan(600);
  expect(defaultBounds.changesMax).toBe(20_000);
});
