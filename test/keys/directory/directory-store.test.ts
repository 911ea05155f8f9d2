import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DirectoryStore, Unrevised } from '../../../gateway/keys/directory/store/directory-store.ts';
import { createRedisDirectoryStore } from '../../../gateway/keys/directory/store/redis-directory-store.ts';
import { redisKeys } from '../../../gateway/redis/redis-keys.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { allRedisForms, startForm, tagsOf } from '../../support/start-form.ts';
import { startRedis } from '../../support/start-redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { keyWith, redisDirectorySubject } from './directory-stores.ts';

const subjects = allRedisForms.map((form) => {
  const place = startForm(form);
  return {
    name: `in Redis, ${form.name}`,
    tags: tagsOf(form, ['a Cluster']),
    start: () => redisDirectorySubject({ place: place() }),
  };
});

/** The revision and time of the keys that `keyWith` creates. */
const version = (revision: number) => ({ revision, changedMs: 1_000 });

async function foundBy(store: DirectoryStore, ...secrets: readonly string[]) {
  const found = await Promise.all(secrets.map((secret) => store.find(digestSecret(secret))));
  return found.map((one) => (one.kind === 'found' ? one.key.id : one.kind));
}

for (const { name, tags, start } of subjects)
  describe(`the directory ${name}`, { tags }, () => {
    async function open() {
      const subject = await start();
      onTestFinished(() => subject.close());
      return [subject.open(), subject.open()] as const;
    }

    it('finds a key that another process created by each of its secrets', async () => {
      const [one, other] = await open();
      const key = keyWith('acme', ['a', 'b'], { name: 'Acme', limits: { perDay: 5 } });
      expect(await one.create(key)).toEqual({ kind: 'written', key: { ...key, revision: 1 } });
      expect(await foundBy(other, 'a', 'b', 'c')).toEqual(['acme', 'acme', 'absent']);
      expect(await other.read('acme')).toMatchObject({ kind: 'found', key: { ...key, revision: 1 } });
      expect(await other.readMany(['acme', 'nobody'])).toEqual({
        kind: 'found',
        keys: [{ ...key, revision: 1 }, undefined],
      });
    });

    it('gives an id once, and keeps its key', async () => {
      const [one, other] = await open();
      await one.create(keyWith('acme', ['a']));
      expect(await other.create(keyWith('acme', ['b'], { plan: 'pro' }))).toEqual({ kind: 'taken' });
      expect(await other.read('acme')).toMatchObject({ key: { plan: 'free', revision: 1 } });
      expect(await foundBy(other, 'a', 'b')).toEqual(['acme', 'absent']);
    });

    it('does not apply a change to a later key with the same id and revision', async () => {
      const [one, other] = await open();
      await one.create(keyWith('acme', ['leaked']));
      expect(await other.remove('acme', version(1))).toEqual({ kind: 'removed' });
      const next = keyWith('acme', ['b'], { createdMs: 2_000, changedMs: 2_000 });
      await other.create(next);
      expect(await one.replace(keyWith('acme', ['leaked', 'c']), version(1))).toEqual({ kind: 'changed' });
      expect(await one.remove('acme', version(1))).toEqual({ kind: 'changed' });
      expect(await one.read('acme')).toMatchObject({ key: { ...next, revision: 1 } });
      expect(await foundBy(one, 'leaked', 'b', 'c')).toEqual(['absent', 'acme', 'absent']);
    });

    it('makes one of two changes of a revision, and reports a conflict for the other', async () => {
      const [one, other] = await open();
      await one.create(keyWith('acme', ['a']));
      const replies = await Promise.all([
        one.replace(keyWith('acme', ['a'], { disabled: true }), version(1)),
        other.replace(keyWith('acme', ['a'], { plan: 'pro' }), version(1)),
        one.remove('acme', version(2)),
      ]);
      const kinds = replies.map(({ kind }) => kind);
      expect(kinds.slice(0, 2).sort()).toEqual(['changed', 'written']);
      expect(kinds[2]).toBe('removed');
      expect(await one.read('acme')).toEqual({ kind: 'absent' });
      expect(await one.replace(keyWith('acme', ['a']), version(2))).toEqual({ kind: 'absent' });
    });

    it('finds nothing for a secret that was removed from a key, and may give it to another key', async () => {
      const [one, other] = await open();
      await one.create(keyWith('acme', ['a', 'b']));
      expect(await one.replace(keyWith('acme', ['b', 'c']), version(1))).toMatchObject({
        key: { revision: 2 },
      });
      expect(await foundBy(other, 'a', 'b', 'c')).toEqual(['absent', 'acme', 'acme']);
      await other.create(keyWith('other', ['a']));
      await one.replace(keyWith('acme', ['c']), version(2));
      expect(await foundBy(one, 'a', 'b', 'c')).toEqual(['other', 'absent', 'acme']);
    });

    it('finds a key by a removed secret from which one of its secrets descends', async () => {
      const [one, other] = await open();
      const [a, b, c] = ['a', 'b', 'c'].map(digestSecret) as [string, string, string];
      const secretOf = (digest: string, issuedFrom?: string) => ({ digest, createdMs: 1_000, issuedFrom });
      await one.create(keyWith('acme', [], { secrets: [secretOf(a), secretOf(b, a)] }));
      const pastSecrets = [{ digest: a }, { digest: b, issuedFrom: a }];
      const key = keyWith('acme', [], { secrets: [secretOf(c, b)], pastSecrets });
      expect(await one.replace(key, version(1))).toMatchObject({ kind: 'written' });
      expect(await foundBy(other, 'a', 'b', 'c')).toEqual(['acme', 'acme', 'acme']);
      expect(await other.read('acme')).toMatchObject({ key: { pastSecrets } });
      await other.replace(keyWith('acme', ['d']), version(2));
      expect(await foundBy(one, 'a', 'b', 'c', 'd')).toEqual(['absent', 'absent', 'absent', 'acme']);
    });

    it('does not repeat the creation of a removed key, and creates another key with its id', async () => {
      const [one, other] = await open();
      const [key, next] = [keyWith('acme', ['a']), keyWith('acme', ['b'], { createdMs: 2_000 })];
      expect(await one.create(key, 'once')).toMatchObject({ kind: 'written' });
      await one.remove('acme', version(1));
      expect(await other.create(key, 'once')).toEqual({ kind: 'removed' });
      expect(await other.page({ limit: 9 })).toMatchObject({ ids: [] });
      expect(await other.create(next, 'once')).toMatchObject({ kind: 'written' });
      await one.remove('acme', version(1));
      expect(await one.create(key, 'once')).toEqual({ kind: 'removed' });
      expect(await one.create(key)).toMatchObject({ kind: 'written' });
      expect(await foundBy(other, 'a', 'b')).toEqual(['acme', 'absent']);
    });

    it('continues a page after an id, even a removed one, and begins at ids with the prefix', async () => {
      const [store] = await open();
      const ids = ['b', 'B', 'a:1', 'a:2', 'a-1', 'a', 'aa', 'z+', '0'];
      for (const id of ids) await store.create(keyWith(id, []));
      const sorted = [...ids].sort();
      const pages: string[][] = [];
      for (let after: string | undefined = ''; after !== undefined; ) {
        const page = await store.page({ after, limit: 2 });
        if (page.kind !== 'page') throw new Error(page.kind);
        pages.push([...page.ids]);
        after = page.next;
      }
      expect(pages.flat()).toEqual(sorted);
      expect(pages.map(({ length }) => length)).toEqual([2, 2, 2, 2, 1]);
      expect(await store.page({ prefix: 'a:', limit: 9 })).toEqual({ kind: 'page', ids: ['a:1', 'a:2'] });
      expect(await store.page({ prefix: 'a', after: 'a:1', limit: 1 })).toMatchObject({ ids: ['a:2'] });
      expect(await store.page({ prefix: 'b', after: 'B', limit: 9 })).toMatchObject({ ids: ['b'] });
      expect(await store.page({ prefix: 'a', after: 'b', limit: 9 })).toMatchObject({ ids: [] });
      await store.remove('a:1', version(1));
      expect(await store.page({ after: 'a:1', limit: 1 })).toMatchObject({ ids: ['a:2'] });
      expect(await store.count()).toEqual({ kind: 'counted', keys: ids.length - 1 });
    });

    it('keeps a value under a name once, until it expires', async () => {
      const [one, other] = await open();
      expect(await one.remember('name', 'first', 60_000)).toEqual({ kind: 'stored' });
      expect(await other.remember('name', 'second', 60_000)).toEqual({ kind: 'known', value: 'first' });
      expect(await other.remember('brief', 'first', 1)).toEqual({ kind: 'stored' });
      await expect.poll(() => one.remember('brief', 'second', 60_000)).toEqual({ kind: 'stored' });
    });
  });

describe.each(subjects)('the directory $name', ({ start }) => {
  const first = keyWith('acme', ['a', 'b']);
  /** A second version of the key, which keeps one secret of the first version, as an import may do. */
  const next = keyWith('acme', ['b', 'c'], { createdMs: 2_000, changedMs: 2_000 });
  /** The maximum number of scripts that a change runs. */
  const scriptsMax = 9;

  /**
   * Asserts that the list of keys and the index of secrets agree with the stored key. If the key was deleted, the list and the
   * index must be empty.
   */
  async function expectAgreement(store: DirectoryStore): Promise<void> {
    const now = await store.read('acme');
    const digests = now.kind === 'found' ? now.key.secrets.map(({ digest }) => digest) : [];
    const listed = now.kind === 'found' ? ['acme'] : [];
    expect(await store.page({ limit: 9 })).toEqual({ kind: 'page', ids: listed });
    for (const secret of ['a', 'b', 'c']) {
      const isFound = digests.includes(digestSecret(secret));
      expect(await foundBy(store, secret)).toEqual([isFound ? 'acme' : 'absent']);
    }
  }

  it('leaves a key whole or removed when one process removes it and another creates it, at any step', async () => {
    for (let step = 0; step < scriptsMax; step++) {
      for (const waiting of ['create', 'remove'] as const) {
        const { open, openWatched, close } = await start();
        const store = open();
        await store.create(first);
        const between = async () => {
          if (waiting === 'create') await store.remove('acme', version(1));
          else await store.create(next);
        };
        const slow = openWatched((call) => (call === step ? between() : Promise.resolve()));
        if (waiting === 'create') await slow.create(next);
        else await slow.remove('acme', version(1));
        await expectAgreement(store);
        await close();
      }
    }
  });

  it('leaves no record outside list and index when a process dies at any step of a change', async () => {
    for (let step = 0; step < scriptsMax; step++) {
      for (const dying of ['create', 'remove'] as const) {
        const { open, openWatched, close } = await start();
        const store = open();
        const killed = openWatched((call) =>
          call < step ? Promise.resolve() : Promise.reject(new Error('killed')),
        );
        if (dying === 'remove') await store.create(first);
        await (dying === 'create' ? killed.create(first) : killed.remove('acme', version(1)));
        const left = await store.read('acme');
        if (left.kind === 'found') await expectAgreement(store);
        else expect(await foundBy(store, 'a', 'b')).toEqual(['absent', 'absent']);
        if (left.kind === 'found') await store.remove('acme', left.key);
        await store.create(next);
        await expectAgreement(store);
        await close();
      }
    }
  });
});

type Step =
  | { readonly verb: 'create'; readonly id: string; readonly secrets: readonly string[] }
  | {
      readonly verb: 'replace';
      readonly id: string;
      readonly secrets: readonly string[];
      readonly revision: number;
    }
  | { readonly verb: 'remove'; readonly id: string; readonly revision: number };

describe('the directory', () => {
  const ids = fc.constantFrom('a', 'b');
  const secrets = fc.subarray(['s', 't', 'u']);
  const revision = fc.integer({ min: 1, max: 4 });
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ verb: fc.constant('create' as const), id: ids, secrets }),
    fc.record({ verb: fc.constant('replace' as const), id: ids, secrets, revision }),
    fc.record({ verb: fc.constant('remove' as const), id: ids, revision }),
  );

  function take(store: DirectoryStore, step: Step) {
    if (step.verb === 'remove') return store.remove(step.id, version(step.revision));
    const key = keyOf(step);
    return step.verb === 'create' ? store.create(key) : store.replace(key, version(step.revision));
  }

  /** No two keys have the same secret, because the gateway draws secrets at random and an import refuses secrets of other keys. */
  function keyOf({ id, secrets }: Exclude<Step, { verb: 'remove' }>): Unrevised {
    return keyWith(
      id,
      secrets.map((secret) => `${id}-${secret}`),
    );
  }

  /** A map that takes the same changes. @returns the kind of the reply */
  function takeInMap(keys: Map<string, Unrevised & { revision: number }>, step: Step) {
    const before = keys.get(step.id);
    if (step.verb === 'create' && before !== undefined) return 'taken';
    if (step.verb !== 'create') {
      if (before === undefined) return 'absent';
      if (before.revision !== step.revision) return 'changed';
    }
    keys.delete(step.id);
    if (step.verb === 'remove') return 'removed';
    keys.set(step.id, { ...keyOf(step), revision: (before?.revision ?? 0) + 1 });
    return 'written';
  }

  it('behaves as a map, for any changes in any order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const keys = new Map<string, Unrevised & { revision: number }>();
        const subject = await redisDirectorySubject();
        const store = subject.open();
        for (const one of steps) {
          const [{ kind }, expected] = [await take(store, one), takeInMap(keys, one)];
          // A repeated change gets the same reply, because the first reply may have been lost.
          if (kind !== 'written' || expected === 'written') expect(kind).toBe(expected);
        }
        const stored = await store.readMany(['a', 'b']);
        expect(stored).toEqual({ kind: 'found', keys: [keys.get('a'), keys.get('b')] });
        for (const id of ['a', 'b'])
          for (const secret of ['s', 't', 'u'].map((name) => `${id}-${name}`)) {
            const isIn = keys.get(id)?.secrets.some(({ digest }) => digest === digestSecret(secret));
            expect(await foundBy(store, secret)).toEqual([isIn ? id : 'absent']);
          }
        expect(await store.page({ limit: 9 })).toEqual({ kind: 'page', ids: [...keys.keys()].sort() });
        await subject.close();
      }),
      { numRuns: 25 },
    );
  });
});

describe('the directory in Redis', () => {
  async function open(bounds: NonNullable<Parameters<typeof redisDirectorySubject>[0]>['bounds'] = {}) {
    const subject = await redisDirectorySubject({ bounds });
    onTestFinished(() => subject.close());
    return { ...subject, store: subject.open() };
  }

  it('gives each change another generation, which lasts longer than a record is cached', async () => {
    const { store, client, prefix } = await open({ directoryCachedMs: 300_000 });
    const generations: number[] = [];
    const read = async () => {
      const found = await store.read('acme');
      if (found.kind === 'found') generations.push(found.generation);
    };
    await store.create(keyWith('acme', ['a']));
    await read();
    await store.replace(keyWith('acme', ['b']), version(1));
    await read();
    await store.remove('acme', version(2));
    await store.create(keyWith('acme', ['c']));
    await read();
    expect(new Set(generations).size).toBe(3);
    expect(await client.pttl(redisKeys.quota.name(prefix, 'acme'))).toBeGreaterThan(540_000);
  });

  it('gives a key that a request uses a generation that lasts for days, and keeps the generation until the key changes', async () => {
    const { store, client, prefix } = await open();
    const quota = redisKeys.quota.name(prefix, 'acme');
    const generation = async () => generationOf(await store.find(digestSecret('a')));
    await store.create(keyWith('acme', ['a']));
    const created = generationOf(await store.read('acme'));
    expect(await generation()).toBe(created);
    expect(await client.pttl(quota)).toBeGreaterThan(600_000_000);
    // The hash expires while no process uses the key.
    await client.del(quota);
    const later = await generation();
    expect(later).toBeGreaterThan(created ?? 0);
    expect(await generation()).toBe(later);
    expect(await client.pttl(quota)).toBeGreaterThan(600_000_000);
    await client.del(quota);
    await store.replace(keyWith('acme', ['a'], { disabled: true }), version(1));
    const changed = await generation();
    expect(changed).toBeGreaterThan(later ?? 0);
    expect(await client.pttl(quota)).toBeGreaterThan(600_000_000);
  });

  it('reads a key again that changes between the reads of its generation and its record', async () => {
    const { store, redis } = await open();
    await store.create(keyWith('acme', ['a']));
    let changes = 0;
    const commands = Object.create(redis.commands, {
      hmget: {
        async value(...args: Parameters<typeof redis.commands.hmget>) {
          if (changes++ === 0) await store.replace(keyWith('acme', ['a'], { name: 'Acme' }), version(1));
          return redis.commands.hmget(...args);
        },
      },
    });
    const reading = createRedisDirectoryStore({
      redis: { ...redis, commands },
      bounds: tunedBounds(patientStore),
    });
    expect(await reading.find(digestSecret('a'))).toEqual(await store.read('acme'));
  });

  it('gives a reader during a change the new key, or a generation that the change makes outdated', async () => {
    const { store, openWatched } = await open();
    await store.create(keyWith('acme', ['a']));
    const reads: Awaited<ReturnType<typeof store.read>>[] = [];
    const changing = openWatched(async () => {
      reads.push(await store.read('acme'));
    });
    await changing.replace(keyWith('acme', ['a'], { disabled: true }), version(1));
    const now = await store.read('acme');
    expect(now).toMatchObject({ kind: 'found', key: { disabled: true } });
    expect(reads.length).toBeGreaterThan(1);
    const stale = reads.filter((read) => read.kind === 'found' && !read.key.disabled);
    for (const read of stale) expect(read).not.toMatchObject({ generation: generationOf(now) });
  });

  it('gives a key another generation if and only if the key changes, also when the process dies during the change', async () => {
    for (const last of [0, 1]) {
      const { store, openWatched } = await open();
      await store.create(keyWith('acme', ['a']));
      const before = await store.read('acme');
      const dying = openWatched((call) =>
        call < last ? Promise.resolve() : Promise.reject(new Error('killed')),
      );
      const revoked = keyWith('acme', ['a'], { disabled: true });
      expect(await dying.replace(revoked, version(1))).toMatchObject({ kind: 'away', mayHaveRun: true });
      const after = await store.read('acme');
      const isRevoked = after.kind === 'found' && after.key.disabled;
      expect(generationOf(after) !== generationOf(before)).toBe(isRevoked);
      expect(isRevoked).toBe(last === 1);
      // A repeated command makes and records the change only once.
      expect(await store.replace(revoked, version(1))).toMatchObject({
        kind: 'written',
        key: { revision: 2 },
      });
      expect(await store.read('acme')).toMatchObject({ key: { disabled: true, revision: 2 } });
    }
  });

  it('makes a repeated change once, as after a lost reply', async () => {
    const { store } = await open();
    const key = keyWith('acme', ['a']);
    expect(await store.create(key)).toEqual(await store.create(key));
    const next = keyWith('acme', ['b'], { changedMs: 2_000 });
    expect(await store.replace(next, version(1))).toEqual(await store.replace(next, version(1)));
    expect(await store.read('acme')).toMatchObject({ key: { revision: 2 } });
  });

  it('repairs the key of a killed process with its next change', async () => {
    const { store, client, prefix } = await open();
    await store.create(keyWith('acme', ['a']));
    await client.del(redisKeys.directoryDigest.name(prefix, digestSecret('a')));
    expect(await foundBy(store, 'a')).toEqual(['absent']);
    await store.replace(keyWith('acme', ['a'], { name: 'Acme' }), version(1));
    expect(await foundBy(store, 'a')).toEqual(['acme']);
  });

  it('removes the entries of a killed process in list and index when a process finds them', async () => {
    const { store, openWatched, client, prefix } = await open({ directoryLeftoverMs: -1 });
    const killedAfter = (calls: number) =>
      openWatched((call) => (call < calls ? Promise.resolve() : Promise.reject(new Error('killed'))));
    await killedAfter(2).create(keyWith('acme', ['a']));
    expect(await store.page({ limit: 9 })).toMatchObject({ ids: ['acme'] });
    await store.readMany(['acme']);
    await expect.poll(() => store.page({ limit: 9 })).toMatchObject({ ids: [] });
    await store.find(digestSecret('a'));
    const entry = redisKeys.directoryDigest.name(prefix, digestSecret('a'));
    await expect.poll(() => client.exists(entry)).toBe(0);
    await killedAfter(1).create(keyWith('other', ['b']));
    await store.create(keyWith('other', ['c']));
    expect(await store.count()).toMatchObject({ keys: 2 });
    expect(await store.page({ limit: 9 })).toMatchObject({ ids: ['other'] });
    await expect.poll(() => store.count()).toMatchObject({ keys: 1 });
  });

  it('refuses a record long after its id was listed, because the entry may be gone by then', async () => {
    const { store, client, prefix } = await open({ directoryCreatedWithinMs: -1 });
    expect(await store.create(keyWith('acme', ['a']))).toMatchObject({ kind: 'away', mayHaveRun: false });
    const names = await client.keys(`${prefix}:*`);
    expect(names.filter((name) => !name.includes(':directory:form:'))).toEqual([]);
  });

  it('finds, lists, changes, removes and recreates keys of an earlier version without tags', async () => {
    const { store, client, prefix } = await open();
    const ids = ['acme', 'acme-2'];
    for (const id of ids) {
      const { id: _, ...record } = keyWith(id, [id]);
      await client.zadd(redisKeys.directoryIds.name(prefix), 0, id);
      await client.hset(redisKeys.directoryRecord.name(prefix, id), {
        revision: 1,
        record: JSON.stringify(record),
      });
      await client.set(redisKeys.directoryDigest.name(prefix, digestSecret(id)), id);
    }
    expect(await store.page({ limit: 1 })).toEqual({ kind: 'page', ids: ['acme'], next: 'acme' });
    expect(await store.page({ after: 'acme', limit: 1 })).toEqual({ kind: 'page', ids: ['acme-2'] });
    await store.replace(keyWith('acme', ['acme', 'b']), version(1));
    expect(await foundBy(store, ...ids, 'b')).toEqual([...ids, 'acme']);
    await store.remove('acme', version(2));
    expect(await foundBy(store, ...ids, 'b')).toEqual(['absent', 'acme-2', 'absent']);
    expect(await store.count()).toMatchObject({ keys: 1 });
    await store.create(keyWith('acme', ['acme']));
    expect(await store.page({ limit: 9 })).toMatchObject({ ids });
  });

  it('reads the record of an earlier version, with its limits as a list', async () => {
    const { store, client, prefix } = await open();
    const { id, ...record } = keyWith('acme', ['a']);
    const limits = [
      { window: 'minute', max: 60 },
      { window: 'day', max: 1_000 },
    ];
    const written = { revision: 1, record: JSON.stringify({ ...record, limits }) };
    await client.hset(redisKeys.directoryRecord.name(prefix, id), written);
    expect(await store.read(id)).toMatchObject({
      key: { ...record, limits: { perMinute: 60, perDay: 1_000 } },
    });
  });

  it('finds nothing for an index entry without a record, or with a digest that the record lacks', async () => {
    const { store, client, prefix } = await open();
    await store.create(keyWith('acme', ['a']));
    await client.set(redisKeys.directoryDigest.name(prefix, digestSecret('forged')), 'acme');
    await client.set(redisKeys.directoryDigest.name(prefix, digestSecret('left over')), 'nobody');
    expect(await foundBy(store, 'forged', 'left over')).toEqual(['absent', 'absent']);
  });

  it('does not take foreign data for a record', async () => {
    const { store, client, prefix } = await open();
    await client.hset(redisKeys.directoryRecord.name(prefix, 'acme'), { revision: 1, record: '{' });
    await client.hset(redisKeys.directoryRecord.name(prefix, 'other'), { revision: 1, record: '[1]' });
    expect(await store.readMany(['acme', 'other'])).toEqual({ kind: 'found', keys: [undefined, undefined] });
  });

  it('can rotate, revoke and remove a key while Redis is out of memory, and creates none', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const {
      client,
      open: openStore,
      redis,
      prefix,
    } = await redisDirectorySubject({ place: { url: server.url } });
    onTestFinished(() => redis.close());
    const store = openStore();
    await store.create(keyWith('acme', ['a', 'b']));
    const before = await store.read('acme');
    await client.config('SET', 'maxmemory', '1');
    expect(await store.create(keyWith('other', ['c']))).toMatchObject({ kind: 'away', mayHaveRun: false });
    const rotated = keyWith('acme', ['a', 'd']);
    expect(await store.replace(rotated, version(1))).toMatchObject({ kind: 'written' });
    expect(await foundBy(store, 'a', 'b', 'd')).toEqual(['acme', 'absent', 'acme']);
    const revoked = keyWith('acme', ['d'], { disabled: true });
    expect(await store.replace(revoked, version(2))).toEqual({
      kind: 'written',
      key: { ...revoked, revision: 3 },
    });
    // Redis refuses the generation of a key whose hash has expired. Such a key is cached for a shorter time.
    await client.del(redisKeys.quota.name(prefix, 'acme'));
    expect(await store.find(digestSecret('d'))).toMatchObject({ generation: 0 });
    const found = await store.read('acme');
    expect(found).toMatchObject({ key: { disabled: true, revision: 3 } });
    expect(found).not.toHaveProperty('generation', before.kind === 'found' ? before.generation : undefined);
    expect(await foundBy(store, 'a', 'd')).toEqual(['absent', 'acme']);
    expect(await store.remove('acme', version(3))).toEqual({ kind: 'removed' });
  });

  it('reports that a change has not run without a connection, and may have run after a late reply', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const { redis, open: openStore } = await redisDirectorySubject({
      place: { url: server.url },
      bounds: { storePatientDeadlineMs: 50 },
    });
    const store = openStore();
    server.freeze();
    expect(await store.create(keyWith('acme', ['a']))).toMatchObject({ kind: 'away', mayHaveRun: true });
    redis.close();
    await until('the connection is closed', () => !redis.isReady(''));
    expect(await store.create(keyWith('acme', ['a']))).toMatchObject({ kind: 'away', mayHaveRun: false });
    expect(await store.find(digestSecret('a'))).toMatchObject({ kind: 'away', mayHaveRun: false });
  });
});

function generationOf(found: Awaited<ReturnType<DirectoryStore['read']>>): number | undefined {
  return found.kind === 'found' ? found.generation : undefined;
}
