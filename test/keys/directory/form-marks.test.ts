import { setTimeout as sleep } from 'node:timers/promises';
import keySlot from 'cluster-key-slot';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DirectoryStore } from '../../../gateway/keys/directory/store/directory-store.ts';
import { createRedisDirectoryStore } from '../../../gateway/keys/directory/store/redis-directory-store.ts';
import { redisKeys } from '../../../gateway/redis/redis-keys.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { connectRedis } from '../../support/connect-redis.ts';
import { allRedisForms, startForm, tagsOf } from '../../support/start-form.ts';
import { startRedis } from '../../support/start-redis.ts';
import { startReplica } from '../../support/start-replica.ts';
import { startTcpRelay } from '../../support/tcp-relay.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { keyWith, redisDirectorySubject } from './directory-stores.ts';

/** Shorter times than in a gateway, in the same order. */
const brief = { directoryMarkReadMs: 100, directoryMarkLeaseMs: 400, directoryMarkWaitMs: 600 };
const subjects = allRedisForms.map((form) => {
  const place = startForm(form);
  return {
    name: `in Redis, ${form.name}`,
    tags: tagsOf(form, ['a Cluster']),
    start: () => redisDirectorySubject({ place: place(), bounds: brief }),
  };
});
const bounds = tunedBounds({ ...patientStore, ...brief });
const copies = ['0', '1', '2', '3'];

function untilAllIssued(...stores: readonly DirectoryStore[]): Promise<void> {
  return until('every process knows that all secrets are issued', () =>
    stores.every((store) => store.isAllIssued()),
  );
}

/**
 * Imports a key while other processes ask continually, as during a flood of invented secrets.
 *
 * @returns the number of processes that would refuse the imported secret by its checksum after another process can find the key
 */
async function refusedAfterImport(
  importer: DirectoryStore,
  others: readonly DirectoryStore[],
): Promise<number> {
  let refused = 0;
  let isOver = false;
  const asking = others.map(async (store) => {
    while (!isOver) {
      store.isAllIssued();
      const found = await store.find(digestSecret('imported'));
      if (found.kind === 'found' && store.isAllIssued()) refused++;
      await sleep(1);
    }
  });
  expect((await importer.createImported(keyWith('imported', ['imported']))).kind).toBe('written');
  refused += others.filter((store) => store.isAllIssued()).length;
  // The time in which a process might still rely on an earlier mark, and read the mark again.
  await sleep(bounds.directoryMarkLeaseMs + bounds.directoryMarkReadMs);
  isOver = true;
  await Promise.all(asking);
  return refused;
}

for (const { name, tags, start } of subjects)
  describe(`the form of the secrets of a directory ${name}`, { tags }, () => {
    async function open() {
      const subject = await start();
      onTestFinished(() => subject.close());
      return [subject.open(), subject.open(), subject.open()] as const;
    }

    it('is known to every process while Tollgate issued all secrets, also after changes and removals', async () => {
      const [one, ...others] = await open();
      await one.create(keyWith('acme', ['a']));
      await untilAllIssued(one, ...others);
      await one.replace(keyWith('acme', ['a', 'b']), { revision: 1, changedMs: 1_000 });
      await others[0].create(keyWith('other', ['c']));
      await one.remove('acme', { revision: 2, changedMs: 1_000 });
      await untilAllIssued(one, ...others);
    });

    it('is unknown to every process from the moment at which an imported key can be found', async () => {
      const [importer, ...others] = await open();
      await importer.create(keyWith('acme', ['a']));
      await untilAllIssued(importer, ...others);
      expect(await refusedAfterImport(importer, others)).toBe(0);
      expect([importer, ...others].map((store) => store.isAllIssued())).toEqual([false, false, false]);
    });

    it('stays unknown when the first key is imported, and later keys are issued', async () => {
      const [importer, issuer] = await open();
      await importer.createImported(keyWith('imported', ['a']));
      await issuer.create(keyWith('acme', ['b']));
      for (let asked = 0; asked < 5; asked++) {
        expect([importer.isAllIssued(), issuer.isAllIssued()]).toEqual([false, false]);
        await sleep(bounds.directoryMarkReadMs / 2);
      }
    });

    it('is unknown after concurrent imports and claims by several processes', async () => {
      const [one, other, issuer] = await open();
      const replies = await Promise.all([
        one.createImported(keyWith('a', ['a'])),
        other.createImported(keyWith('b', ['b'])),
        issuer.create(keyWith('c', ['c'])),
        one.createImported(keyWith('d', ['d'])),
      ]);
      expect(replies.map(({ kind }) => kind)).toEqual(Array(4).fill('written'));
      expect([one, other, issuer].map((store) => store.isAllIssued())).toEqual([false, false, false]);
      await sleep(bounds.directoryMarkReadMs * 2);
      expect([one, other, issuer].map((store) => store.isAllIssued())).toEqual([false, false, false]);
    });
  });

describe('the form of the secrets of a directory in Redis', () => {
  async function open() {
    const subject = await redisDirectorySubject({ bounds: brief });
    onTestFinished(() => subject.close());
    const names = copies.map((copy) => redisKeys.directoryForm.name(subject.prefix, copy));
    const marks = () => Promise.all(names.map((name) => subject.client.get(name)));
    return { ...subject, names, marks };
  }

  /** Waits until the store has certainly read the mark. */
  async function askedTwice(store: DirectoryStore): Promise<boolean> {
    store.isAllIssued();
    await sleep(bounds.directoryMarkReadMs * 2);
    store.isAllIssued();
    await sleep(bounds.directoryMarkReadMs);
    return store.isAllIssued();
  }

  it('is unknown in a directory of an earlier version, which has no mark, also after a key is issued', async () => {
    const { open: openStore, client, names, marks } = await open();
    await openStore().create(keyWith('acme', ['a']));
    await client.del(...names);
    const store = openStore();
    await store.create(keyWith('other', ['b']));
    expect(await askedTwice(store)).toBe(false);
    expect(await marks()).toEqual([null, null, null, null]);
  });

  it('is known when a process died while it marked an empty directory, and another process completed the mark', async () => {
    const { open: openStore, client, names } = await open();
    await openStore().create(keyWith('acme', ['a']));
    await client.del(...names.slice(1));
    await untilAllIssued(openStore());
  });

  it('is unknown when a digest is imported while another process claims the empty directory', async () => {
    const { redis, open: openStore, marks } = await open();
    const importer = openStore();
    const commands = Object.create(redis.commands, {
      zcard: {
        async value(name: string) {
          const count = await redis.commands.zcard(name);
          await importer.createImported(keyWith('imported', ['a']));
          return count;
        },
      },
    });
    const claimer = createRedisDirectoryStore({ redis: { ...redis, commands }, bounds });
    await claimer.create(keyWith('acme', ['b']));
    expect((await marks()).every((mark) => mark?.startsWith('unknown '))).toBe(true);
    expect([await askedTwice(claimer), await askedTwice(importer)]).toEqual([false, false]);
  });

  it.each([
    ['one copy is unknown', 1],
    ['three copies are unknown', 3],
  ])('is unknown when %s, and the other copies are issued or missing', async (_, count) => {
    const { open: openStore, client, names, marks } = await open();
    await openStore().create(keyWith('acme', ['a']));
    for (const name of names.slice(0, count)) await client.set(name, 'unknown x');
    const before = await marks();
    expect(await askedTwice(openStore())).toBe(false);
    expect(await marks()).toEqual(before);
    await client.del(names.at(-1) ?? '');
    expect(await askedTwice(openStore())).toBe(false);
    expect((await marks()).at(-1)).toBe(null);
  });

  it('is marked again by the next import when a failover lost the mark of an import', async () => {
    const { open: openStore, client, names, marks } = await open();
    const [importer, other] = [openStore(), openStore()];
    await importer.createImported(keyWith('first', ['a']));
    for (const name of names) await client.set(name, 'issued');
    await untilAllIssued(other);
    expect(await refusedAfterImport(importer, [other])).toBe(0);
    expect((await marks()).every((mark) => mark?.startsWith('unknown '))).toBe(true);
  });

  it('is waited for again when another import has marked the directory, so that no process relies on the mark before', async () => {
    const { open: openStore, client, names } = await open();
    const [importer, other] = [openStore(), openStore()];
    await importer.createImported(keyWith('first', ['a']));
    for (const name of names) await client.set(name, 'issued');
    await untilAllIssued(other);
    // Another importer has marked the directory and still waits.
    for (const name of names) await client.set(name, 'unknown other');
    expect(await refusedAfterImport(importer, [other])).toBe(0);
  });

  it('has one copy in each quarter of the slots of a Cluster, for any prefix', () => {
    for (const prefix of ['tollgate', 'tollgate:staging', 'a.b-c']) {
      const slots = copies.map((copy) => keySlot(redisKeys.directoryForm.name(prefix, copy)));
      expect(slots.map((slot) => Math.floor(slot / 4_096)).sort()).toEqual([0, 1, 2, 3]);
    }
  });

  it('would be known for too long if imports did not wait', async () => {
    const { redis } = await open();
    const lasting = { ...bounds, directoryMarkReadMs: 60_000, directoryMarkLeaseMs: 60_000 };
    const others = [lasting, lasting].map((longer) => createRedisDirectoryStore({ redis, bounds: longer }));
    const hasty = createRedisDirectoryStore({ redis, bounds: { ...bounds, directoryMarkWaitMs: 0 } });
    await hasty.create(keyWith('acme', ['a']));
    await untilAllIssued(...others);
    expect(await refusedAfterImport(hasty, others)).toBeGreaterThan(0);
  });

  it('is read a few times a second, however often it is asked, and not at all when it is not asked', async () => {
    const { redis, open: openStore } = await open();
    let gets = 0;
    const commands = Object.create(redis.commands, {
      get: { value: (key: string) => [gets++, redis.commands.get(key)][1] },
    });
    await openStore().create(keyWith('acme', ['a']));
    const store = createRedisDirectoryStore({ redis: { ...redis, commands }, bounds });
    await sleep(bounds.directoryMarkReadMs);
    expect(gets).toBe(0);
    const beganMs = performance.now();
    for (let asked = 0; asked < 200; asked++) {
      for (let each = 0; each < 100; each++) store.isAllIssued();
      await sleep(1);
    }
    const reads = Math.ceil((performance.now() - beganMs) / bounds.directoryMarkReadMs);
    expect(gets).toBeGreaterThan(0);
    expect(gets).toBeLessThanOrEqual(reads * copies.length);
    await untilAllIssued(store);
  });

  it('is unknown while Redis is frozen or away, and until it is read again after a reconnect', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const deadlines = { directoryLookUpDeadlineMs: 2_000, storePatientDeadlineMs: 2_000 };
    const shortBounds = tunedBounds({ ...patientStore, ...brief, ...deadlines });
    const redis = await connectRedis({ prefix: 'away', place: { url: server.url }, bounds: shortBounds });
    onTestFinished(() => redis.close());
    const store = createRedisDirectoryStore({ redis, bounds: shortBounds });
    await store.create(keyWith('acme', ['a']));
    await untilAllIssued(store);
    server.freeze();
    await until('the lease has ended', () => !store.isAllIssued());
    server.thaw();
    const longer = { ...shortBounds, directoryMarkLeaseMs: 60_000 };
    const lasting = createRedisDirectoryStore({ redis, bounds: longer });
    await untilAllIssued(store, lasting);
    const afterReconnect = new Promise<boolean[]>((resolve) => {
      redis.on('ready', () => resolve([store.isAllIssued(), lasting.isAllIssued()]));
    });
    await server.restart();
    expect(await afterReconnect).toEqual([false, false]);
    // The new server is empty, so its directory is marked as issued.
    await untilAllIssued(store);
    await server.kill();
    await until('the store notices the outage', () => !redis.isReady(redisKeys.directoryIds.name('away')));
    const imported = await store.createImported(keyWith('imported', ['b']));
    expect(imported).toMatchObject({ kind: 'away', mayHaveRun: false });
    await until('the lease has ended', () => !store.isAllIssued());
  });

  it('stays unknown after a failover to a replica that has the imported key', async () => {
    const primary = await startRedis();
    const replica = await startReplica(primary);
    const relay = await startTcpRelay(primary.port);
    onTestFinished(() => Promise.all([relay.stop(), replica.stop(), primary.stop()]).then(() => {}));
    const url = `redis://127.0.0.1:${relay.port}`;
    const redis = await connectRedis({ prefix: 'failover', place: { url }, bounds });
    onTestFinished(() => redis.close());
    const [importer, other] = [1, 2].map(() => createRedisDirectoryStore({ redis, bounds }));
    if (!importer || !other) throw new Error('two stores were made');
    await importer.create(keyWith('acme', ['a']));
    await untilAllIssued(other);
    await importer.createImported(keyWith('imported', ['b']));
    await replica.catchUp();
    await primary.kill();
    await replica.promote();
    relay.switchTo(replica.port);
    relay.cut();
    await until('the new primary has the key', async () => {
      expect(other.isAllIssued()).toBe(false);
      return (await other.find(digestSecret('b'))).kind === 'found';
    });
    expect(await askedTwice(other)).toBe(false);
  });
});
