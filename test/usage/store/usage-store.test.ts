import { encode } from '@msgpack/msgpack';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RedisCommands } from '../../../gateway/redis/redis-connection.ts';
import { redisKeys } from '../../../gateway/redis/redis-keys.ts';
import { addPacked, type Counts, packCounts } from '../../../gateway/usage/store/counts.ts';
import type { Batch, RecordName, UsageStore } from '../../../gateway/usage/store/usage-store.ts';
import { inspect } from '../../support/inspect.ts';
import { keysWithoutExpiry } from '../../support/keys-without-expiry.ts';
import { allRedisForms, startForm, tagsOf } from '../../support/start-form.ts';
import { startRedis } from '../../support/start-redis.ts';
import { until } from '../../support/until.ts';
import { memorySubject, redisStoreSubject } from './usage-stores.ts';

const day: RecordName = { kind: 'day', keyId: 'acme', day: 20_779 };
const expiresMs = Date.now() + 600_000;

function batch(number: number, fields: Record<string, Record<number, number>>, sender = 'one'): Batch {
  const packed = Object.entries(fields).map(
    ([field, counts]) => [field, packCounts(countsOf(counts))] as const,
  );
  return { record: day, sender, number, fields: new Map(packed), expiresMs };
}

function countsOf(counts: Record<number, number>): Counts {
  return new Map(Object.entries(counts).map(([number, value]) => [Number(number), value]));
}

/** The counts of sixty minutes: distances and values. */
const many = Array.from({ length: 120 }, (_, index) => (index % 2 === 0 ? 16 : 3));

function packed(value: unknown): Buffer {
  return Buffer.from(encode(value));
}

async function contentOf(store: UsageStore, record = day): Promise<Record<string, Record<string, number>>> {
  const [stored] = (await store.read([{ record }])) ?? [];
  const content = [...(stored?.fields ?? [])].map(([field, packed]) => {
    const counts: Counts = new Map();
    addPacked(counts, packed);
    return [field, Object.fromEntries(counts)];
  });
  return Object.fromEntries(content);
}

const subjects = [
  { name: 'in memory', tags: [], start: () => Promise.resolve(memorySubject()) },
  ...allRedisForms.map((form) => {
    const place = startForm(form);
    return {
      name: `in Redis, ${form.name}`,
      tags: tagsOf(form, ['a Cluster']),
      start: () => redisStoreSubject(place()),
    };
  }),
];

for (const { name, tags, start } of subjects)
  describe(`the usage record ${name}`, { tags }, () => {
    async function open() {
      const subject = await start();
      onTestFinished(() => subject.close());
      return [subject.open(), subject.open()] as const;
    }

    it('adds up the fields of several processes, and keeps the latest instant in field 0', async () => {
      const [one, other] = await open();
      await one.add(batch(1, { hours: { 0: 500, 1: 2, 7: 300 } }));
      await other.add(batch(1, { hours: { 0: 400, 3: 1, 7: 1 }, 'minutes:07': { 9: 1 } }, 'other'));
      expect(await contentOf(one)).toEqual({ hours: { 0: 500, 1: 2, 3: 1, 7: 301 }, 'minutes:07': { 9: 1 } });
      expect(await contentOf(other)).toEqual(await contentOf(one));
    });

    it('adds a batch once, however often it arrives, and returns its last batch', async () => {
      const [store] = await open();
      for (const number of [1, 1, 2, 1, 2]) await store.add(batch(number, { hours: { 1: number } }));
      expect(await contentOf(store)).toEqual({ hours: { 1: 3 } });
      const [stored] = (await store.read([{ record: day, fields: ['hours'] }])) ?? [];
      expect([...(stored?.batches ?? [])]).toEqual([['one', 2]]);
    });

    it('has the sum of random batches of several processes, each sent once or more', async () => {
      const sent = fc.record({
        sender: fc.constantFrom('a', 'b', 'c'),
        times: fc.integer({ min: 1, max: 3 }),
        counts: fc.dictionary(
          fc.constantFrom('hours', 'minutes:00', 'operation:listPets'),
          // The script adds a list of up to eight numbers in another way than a longer list.
          fc.oneof(
            ...[8, 24, 200].map((maxKeys) =>
              fc.dictionary(
                fc.nat({ max: maxKeys === 200 ? 400 : 60 }).map(String),
                fc.oneof(fc.nat({ max: 200 }), fc.nat({ max: 2 ** 40 })),
                { noNullPrototype: true, maxKeys, size: 'max' },
              ),
            ),
          ),
          { noNullPrototype: true },
        ),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(sent, { maxLength: 12 }), async (all) => {
          const subject = await start();
          const stores = [subject.open(), subject.open()];
          const expected: Record<string, Record<string, number>> = {};
          for (const [index, { sender, times, counts }] of all.entries()) {
            for (let time = 0; time < times; time++) {
              await stores[time % 2]?.add(batch(index + 1, counts, sender));
            }
            for (const [field, values] of Object.entries(counts)) {
              const sum = expected[field] ?? {};
              expected[field] = sum;
              for (const [number, value] of Object.entries(values)) {
                const known = sum[number] ?? 0;
                sum[number] = number === '0' ? Math.max(known, value) : known + value;
              }
            }
          }
          expect(await contentOf(stores[0] as UsageStore)).toEqual(expected);
          await subject.close();
        }),
        { numRuns: 15 },
      );
    });

    it('reads many records in one call, in their order, and only the requested fields', async () => {
      const [store] = await open();
      await store.add(batch(1, { hours: { 1: 1 }, addresses: { 5: 1 } }));
      const records = await store.read([
        { record: { kind: 'day', keyId: 'nobody', day: 1 } },
        { record: day, fields: ['addresses', 'none'] },
        { record: { kind: 'operations', day: 1 } },
      ]);
      expect(records?.map((record) => [...(record?.fields.keys() ?? [])])).toEqual([[], ['addresses'], []]);
    });

    it('removes fields', async () => {
      const [store] = await open();
      await store.add(batch(1, { hours: { 1: 1 }, addresses: { 5: 1 } }));
      expect(await store.remove(day, ['addresses'])).toBe(true);
      expect(await contentOf(store)).toEqual({ hours: { 1: 1 } });
    });

    it('keeps the keys that were active last, up to a limit', async () => {
      const [store] = await open();
      for (let key = 1; key <= 8; key++)
        await store.noteActive([{ keyId: `key-${key}`, lastSeenMs: key * 1_000 }]);
      await store.noteActive([{ keyId: 'key-5', lastSeenMs: 9_000 }]);
      expect((await store.active())?.map(({ keyId }) => keyId)).toEqual([
        'key-5',
        'key-8',
        'key-7',
        'key-6',
        'key-4',
      ]);
    });
  });

describe('the usage record in Redis', () => {
  it('has no key without an expiry', async () => {
    const subject = await redisStoreSubject();
    onTestFinished(() => subject.close());
    const store = subject.open();
    await store.add(batch(1, { hours: { 1: 1 } }));
    await store.add({ ...batch(1, { hours: { 1: 1 } }), record: { kind: 'operations', day: 1 } });
    await store.add({ ...batch(1, { hours: { 1: 1 } }), record: { kind: 'totals', keyId: 'acme' } });
    await store.noteActive([{ keyId: 'acme', lastSeenMs: Date.now() }]);
    expect(await subject.client.keys(`${subject.prefix}:*`)).toHaveLength(4);
    expect(await keysWithoutExpiry(subject.client, await subject.keys())).toEqual([]);
  });

  it('keeps a limited number of the processes that have added to a record', async () => {
    const subject = await redisStoreSubject();
    onTestFinished(() => subject.close());
    const store = subject.open();
    for (let process = 0; process < 200; process++) {
      await store.add(batch(1, { hours: { 1: 1 } }, `process-${process}`));
    }
    expect(await contentOf(store)).toEqual({ hours: { 1: 200 } });
    const [stored] = (await store.read([{ record: day }])) ?? [];
    expect(stored?.batches.size).toBe(128);
  });

  it('adds once the batches that each of a hundred processes sends twice', async () => {
    const subject = await redisStoreSubject();
    onTestFinished(() => subject.close());
    const store = subject.open();
    for (let time = 0; time < 2; time++) {
      for (let process = 0; process < 100; process++) {
        await store.add(batch(1, { hours: { 1: 1 } }, `process-${process}`));
      }
    }
    expect(await contentOf(store)).toEqual({ hours: { 1: 100 } });
  });

  it('accepts a batch of ten thousand fields: a day of all operations after a long outage', async () => {
    const subject = await redisStoreSubject();
    onTestFinished(() => subject.close());
    const store = subject.open();
    const fields = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, operation) => [`07:operation-${operation}`, { 200: 1 }]),
    );
    expect(await store.add(batch(1, fields))).toBe('added');
    expect(Object.keys(await contentOf(store))).toHaveLength(10_000);
  });

  it.each<[string, (client: RedisCommands, name: string) => Promise<unknown>]>([
    ['a field that is not MessagePack', (client, name) => client.hset(name, 'hours', '\xc1 garbage')],
    ['a field that is another value', (client, name) => client.hset(name, 'hours', packed('text'))],
    ['a field with a text among its counts', (client, name) => client.hset(name, 'hours', packed([1, 'x']))],
    ['a field that ends in the middle', (client, name) => client.hset(name, 'hours', packed([1, 2, 3]))],
    ['a field with no number', (client, name) => client.hset(name, 'hours', packed([Number.NaN, 1]))],
    ['a field with a negative number', (client, name) => client.hset(name, 'hours', packed([-1, 1]))],
    [
      'a long field with a text at its end',
      (client, name) => client.hset(name, 'hours', packed([...many, 1, 'x'])),
    ],
    [
      'a long field that ends in the middle',
      (client, name) => client.hset(name, 'hours', packed([...many, 1])),
    ],
    [
      'a long field with a negative number',
      (client, name) => client.hset(name, 'hours', packed([...many, -1, 1])),
    ],
    ['a batch list that is none', (client, name) => client.hset(name, 'batches', packed([1, 'one']))],
    ['a text instead of the record', (client, name) => client.set(name, 'garbage')],
    ['a list instead of the record', (client, name) => client.lpush(name, 'garbage')],
  ])('%s hides no other record, and is replaced by the next batch', async (_what, poison) => {
    const subject = await redisStoreSubject();
    onTestFinished(() => subject.close());
    const store = subject.open();
    const well: RecordName = { kind: 'day', keyId: 'well', day: 20_779 };
    await store.add({ ...batch(1, { hours: { 1: 1 } }), record: well });
    await poison(subject.client, `${redisKeys.usageDay.name(subject.prefix, 'acme')}:20779`);
    for (const fields of [undefined, ['hours']]) {
      const [poisoned, other] =
        (await store.read([day, well].map((record) => ({ record, ...(fields && { fields }) })))) ?? [];
      expect([poisoned?.fields.size, other?.fields.get('hours')]).toEqual([0, [1, 1]]);
    }
    expect(await store.add(batch(1, { hours: { 1: 2 }, addresses: { 3: 1 } }))).toBe('added');
    expect(await contentOf(store)).toEqual({ hours: { 1: 2 }, addresses: { 3: 1 } });
    expect(await keysWithoutExpiry(subject.client, await subject.keys())).toEqual([]);
  });

  it('reports why it pauses while Redis is almost full, and resumes once there is room', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const inspector = inspect(server.url);
    onTestFinished(() => inspector.disconnect());
    const subject = await redisStoreSubject({ url: server.url });
    onTestFinished(() => subject.close());
    const used = Number(/used_memory:(\d+)/.exec(await inspector.info('memory'))?.[1]);
    await inspector.config('SET', 'maxmemory', String(Math.round(used / 0.8)));
    const store = subject.open();
    await until('it pauses', () => store.pausedBecause() !== undefined);
    expect(store.pausedBecause()).toMatch(/Redis has used \d+ % of its maxmemory; the record stops at 70 %/);
    await inspector.config('SET', 'maxmemory', String(used * 10));
    await until('it goes on', () => store.pausedBecause() === undefined);
  });
});
