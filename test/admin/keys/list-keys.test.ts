import fc from 'fast-check';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { KeyDetailSources } from '../../../gateway/admin/keys/key-sources.ts';
import { type KeyQuery, listKeys } from '../../../gateway/admin/keys/list-keys.ts';
import { monthUsage } from '../../../gateway/admin/keys/over-time/month-usage.ts';
import { showKey } from '../../../gateway/admin/keys/show-key.ts';
import { createPlanDistributions } from '../../../gateway/admin/plans/plan-distribution.ts';
import { createPlansView } from '../../../gateway/admin/plans/plans-view.ts';
import { createKeyDirectory } from '../../../gateway/keys/directory/key-directory.ts';
import { createLimiter } from '../../../gateway/request/limit/limiter.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { usageRows } from '../../../gateway/usage/read/usage-rows.ts';
import { createUsage } from '../../../gateway/usage/usage.ts';
import { connectRedis, removeAll } from '../../support/connect-redis.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const noChanges = { read: async () => ({ isComplete: true, changes: [] }) };

const log = pino({ level: 'silent' });

/** Creates a list of the keys in the file and in the directory. `active` lists the keys with requests, the most refused key first. */
async function open(ids: {
  file?: readonly string[];
  directory?: readonly string[];
  active?: readonly string[];
  bounds?: Parameters<typeof tunedBounds>[0];
}) {
  const { file = [], directory: issued = [], active = [] } = ids;
  const bounds = tunedBounds({ usageReadsPerTurnMax: 3, ...ids.bounds });
  const nowMs = Date.now;
  const settings = await settingsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    keys: file.map((id) => makeKey({ id }).entry),
  });
  const redis = await connectRedis({ prefix: freshPrefix(), place: { url: redisUrl() } });
  onTestFinished(() => removeAll(redis));
  const directory = createKeyDirectory({ redis, nowMs, storeNowMs: nowMs, log, bounds });
  for (const [index, id] of issued.entries()) {
    const secrets = [{ digest: digestSecret(id), createdMs: nowMs() }];
    const plan = index % 2 === 0 ? 'free' : 'pro';
    await directory.create({ id, plan, name: `Name of ${id}`, disabled: id.includes('off'), secrets });
  }
  const limiter = createLimiter({ log, nowMs, planOf: () => undefined, bounds });
  const usage = createUsage({ keepDays: 1, minuteMs: 60_000, nowMs, bounds });
  onTestFinished(() => Promise.all([limiter.close(), usage.close()]).then(() => undefined));
  const inForce = { name: 'minute', limit: 1, remaining: 0, resetMs: 0, windowSeconds: 60 } as const;
  const rateLimit = { nowMs: nowMs(), windows: [inForce], inForce };
  for (const [index, id] of active.entries()) {
    for (let request = 0; request < active.length - index; request++) {
      const decision = { kind: 'refused', units: 1, rateLimit, source: 'memory', retryAtMs: 0 } as const;
      usage.recorder.decided(id, decision, '192.0.2.1', '01234567');
    }
  }
  const sources: KeyDetailSources = {
    readMembers: async (ids: readonly string[]) => ids.map(() => ({})),
    settings: () => settings,
    async readStatus(keys) {
      const read = await limiter.read(keys);
      return read.kind === 'read' ? read.keys : undefined;
    },
    directory,
    usage,
    nowMs,
    bounds,
  };
  return { sources, directory, usage };
}

/** Reads all pages of a list, one after the other. */
async function pagesOf(sources: KeyDetailSources, query: Partial<KeyQuery>): Promise<string[][]> {
  const pages: string[][] = [];
  for (let after: string | undefined; ; ) {
    const page = await listKeys(sources, { sort: 'id', limit: 50, ...query, after });
    if (page === undefined) throw new Error('no answer');
    pages.push(page.keys.map(({ id }) => id));
    // If a faulty list began again after its last page, the loop would never stop without this check.
    expect(pages.length).toBeLessThan(1_000);
    if (page.next === undefined) return pages;
    after = page.next;
  }
}

const id = fc.stringMatching(/^[a-cA-C.:@+-]{1,3}$/);
const idList = fc.uniqueArray(id, { maxLength: 12 });

it('the usage of a month lists each key of configuration and directory, and each removed key on record, on one page', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(idList, idList, idList),
      fc.integer({ min: 1, max: 9 }),
      async ([file, directory, active], limit) => {
        const { sources } = await open({ file, directory, active });
        const month = new Date(sources.nowMs()).toISOString().slice(0, 7);
        const found: unknown[] = [];
        for (let after: string | undefined; ; ) {
          const page = await monthUsage(sources, { month, after, limit });
          if (typeof page !== 'object') throw new Error(`${page}`);
          expect(page.keys.length).toBeLessThanOrEqual(limit);
          found.push(...page.keys.map((key) => [key.id, key.offered, key.plan === undefined]));
          if (page.next === undefined) break;
          after = page.next;
        }
        const there = new Set([...file, ...directory]);
        expect(found).toEqual(
          [...new Set([...there, ...active])]
            .sort()
            .map((id) => [id, active.includes(id) ? active.length - active.indexOf(id) : 0, !there.has(id)]),
        );
      },
    ),
    { numRuns: 15 },
  );
});

it('units are listed where they differ from the admitted requests: of a key, its rows and its month', async () => {
  const { sources, usage } = await open({ file: ['cheap', 'costly'] });
  const { nowMs } = sources;
  const inForce = { name: 'minute', limit: 9, remaining: 9, resetMs: 0, windowSeconds: 60 } as const;
  const rateLimit = { nowMs: nowMs(), windows: [inForce], inForce };
  for (const [id, units] of [
    ...([['cheap', 1]] as const),
    ...([
      ['costly', 5],
      ['costly', 0],
    ] as const),
  ]) {
    const decision = { kind: 'admitted', units, rateLimit, source: 'memory' } as const;
    usage.recorder.decided(id, decision, '192.0.2.1', '01234567');
  }
  const { keys } = (await listKeys(sources, { sort: 'id', limit: 50 })) ?? { keys: [] };
  expect(keys.map(({ offered24h, units24h }) => [offered24h, units24h])).toEqual([
    [1, undefined],
    [2, 5],
  ]);
  const period = { fromMs: nowMs() - 60_000, toMs: nowMs(), step: 'hour' } as const;
  expect((await usageRows(usage, 'cheap', period, nowMs()))?.map(({ units }) => units)).toEqual([undefined]);
  expect((await usageRows(usage, 'costly', period, nowMs()))?.map(({ units }) => units)).toEqual([5]);
  const month = await monthUsage(sources, { limit: 50 });
  expect(month).toMatchObject({
    keys: [
      { id: 'cheap', admitted: 1 },
      { id: 'costly', admitted: 2, units: 5 },
    ],
  });
});

it('each key of configuration and directory is on exactly one page, by id, for any page length', async () => {
  await fc.assert(
    fc.asyncProperty(idList, idList, fc.integer({ min: 1, max: 9 }), async (file, directory, limit) => {
      const { sources } = await open({ file, directory });
      const pages = await pagesOf(sources, { limit });
      expect(pages.flat()).toEqual([...new Set([...file, ...directory])].sort());
      expect(pages.slice(0, -1).every(({ length }) => length === limit)).toBe(true);
    }),
    { numRuns: 15 },
  );
});

it('sorted by refusals, active keys of both sources come first, then all other keys by id, each once', async () => {
  await fc.assert(
    fc.asyncProperty(idList, idList, fc.integer({ min: 1, max: 9 }), async (file, directory, limit) => {
      const all = [...new Set([...file, ...directory])];
      const active = all.filter((_, index) => index % 3 === 0).reverse();
      const { sources } = await open({ file, directory, active: [...active, 'gone'] });
      const pages = await pagesOf(sources, { sort: 'refused', limit });
      const rest = all.filter((one) => !active.includes(one)).sort();
      expect(pages.flat()).toEqual([...active, ...rest]);
    }),
    { numRuns: 15 },
  );
});

it('an id in both sources lists the key of the configuration, and each key shows where it is written', async () => {
  const { sources } = await open({ file: ['a', 'both'], directory: ['b', 'both'] });
  const page = await listKeys(sources, { sort: 'id', limit: 9 });
  expect(page?.keys.map(({ id, source }) => [id, source])).toEqual([
    ['a', 'file'],
    ['b', 'directory'],
    ['both', 'file'],
  ]);
});

it('filters apply to both sources; an inactive key of the directory is found by the beginning of its id', async () => {
  const { sources } = await open({
    file: ['acme-file', 'other'],
    directory: ['acme-1', 'acme-2', 'off-acme', 'the-acme', 'x-acme'],
    active: ['the-acme'],
  });
  expect(await pagesOf(sources, { q: 'acme' })).toEqual([['acme-1', 'acme-2', 'acme-file']]);
  expect(await pagesOf(sources, { q: 'acme', sort: 'refused' })).toEqual([
    ['the-acme', 'acme-1', 'acme-2', 'acme-file'],
  ]);
  expect((await pagesOf(sources, { plan: 'pro' })).flat()).toEqual(['acme-2', 'the-acme']);
  expect((await pagesOf(sources, { state: new Set(['disabled'] as const), limit: 1 })).flat()).toEqual([
    'off-acme',
  ]);
});

it('a search with few matches ends after a limit of keys, and the next page continues there', async () => {
  const directory = Array.from({ length: 40 }, (_, index) => `key-${index + 10}`);
  const bounds = { adminKeysExaminedMax: 10 };
  const { sources } = await open({ directory: [...directory, 'key-99-off'], bounds });
  const pages = await pagesOf(sources, { state: new Set(['disabled'] as const) });
  expect(pages.flat()).toEqual(['key-99-off']);
  expect(pages.length).toBeGreaterThanOrEqual(4);
});

it('a key of the directory is shown with its secrets, and as refused when its plan no longer exists', async () => {
  const { sources, directory } = await open({ directory: ['acme'] });
  expect(await showKey(sources, noChanges, 'acme')).toMatchObject({
    detail: {
      source: 'directory',
      state: 'unused',
      secrets: [{ digestStart: digestSecret('acme').slice(0, 8), isExpired: false }],
    },
  });
  await directory.create({ id: 'lost', plan: 'gone', disabled: false, secrets: [] });
  expect(await showKey(sources, noChanges, 'lost')).toMatchObject({
    detail: {
      state: 'disabled',
      windows: [],
      why: {
        sentence: expect.stringContaining('lost (gone) has no limits in the configuration'),
      },
    },
  });
  expect(await showKey(sources, noChanges, 'nobody')).toBeUndefined();
});

it('active keys of the directory count for their plan', async () => {
  const { sources } = await open({ file: ['a', 'b'], directory: ['c', 'd', 'e'], active: ['a', 'c', 'd'] });
  const bounds = { ...sources.bounds, planDistributionTimeoutMs: 60_000, planDistributionKeptMs: 1 };
  const distribution = createPlanDistributions({ ...sources, bounds });
  expect(await distribution('free', 1)).toMatchObject({ keys: 3, activeKeys: 2, refusedKeys: 2 });
  expect(await distribution('pro', 1)).toMatchObject({ keys: 1, activeKeys: 1 });
});

it('a plan lists the keys of configuration and directory, each id once, and states when there are more', async () => {
  const ids = { file: ['a', 'both'], directory: ['b-off', 'both', 'c', 'd', 'e'] };
  const viewWith = async (bounds: Parameters<typeof tunedBounds>[0]) => {
    const { sources } = await open({ ...ids, bounds });
    return createPlansView({ ...sources, bounds: tunedBounds({ usageReadsPerTurnMax: 2, ...bounds }) })();
  };
  expect(await viewWith({})).toMatchObject({
    isComplete: true,
    plans: [
      { name: 'free', keys: 5, disabledKeys: 1 },
      { name: 'pro', keys: 1, disabledKeys: 0 },
      { name: 'business', keys: 0 },
      { name: 'enterprise', keys: 0 },
    ],
  });
  expect(await viewWith({ adminKeysExaminedMax: 2 })).toMatchObject({ isComplete: false });
});
