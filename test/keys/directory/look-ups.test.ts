import { describe, expect, it } from 'vitest';
import { type HeldKey, HeldKeys, isIn } from '../../../gateway/keys/directory/held-keys.ts';
import { createLookUps } from '../../../gateway/keys/directory/look-ups.ts';
import type { Absent, FoundKey } from '../../../gateway/keys/directory/store/directory-store.ts';
import type { Away } from '../../../gateway/redis/redis-reply.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { keyWith } from './directory-stores.ts';

const nowMs = 1_000_000;
const absent: Absent = { kind: 'absent' };
const away: Away = { kind: 'away', mayHaveRun: false, reason: 'a test' };

function found(id: string, digest: string, generation = 0): FoundKey {
  const secrets = [{ digest, createdMs: 1 }];
  return { kind: 'found', key: { ...keyWith(id, []), secrets, revision: 1 }, generation };
}

/** Whether a request that Redis decides may use the cached key. */
function isUsable(held: HeldKeys, digest: string, atMs = nowMs): boolean {
  const found = held.find(digest, atMs);
  return typeof found === 'object' && isIn(found.period, atMs);
}

/** Look-ups in a store whose replies the test controls. */
function open(bounds: Parameters<typeof tunedBounds>[0] = {}) {
  const tuned = tunedBounds(bounds);
  const held = new HeldKeys(tuned);
  const asked = new Map<string, PromiseWithResolvers<FoundKey | Absent | Away>>();
  const calls: string[] = [];
  const stored = new Map<string, FoundKey | Away>();
  let changed = { number: 0, id: '' };
  const reads: string[] = [];
  let clockMs = nowMs;
  const { lookUp, readAgain, confirm } = createLookUps({
    store: {
      find(digest) {
        calls.push(digest);
        const reply = Promise.withResolvers<FoundKey | Absent | Away>();
        asked.set(digest, reply);
        return reply.promise;
      },
      read(id) {
        reads.push(id);
        return Promise.resolve(stored.get(id) ?? absent);
      },
    },
    held,
    started: Promise.resolve(),
    changes: { count: () => changed.number, lastOf: (id) => (id === changed.id ? changed.number : 0) },
    count: () => {},
    nowMs: () => clockMs,
    bounds: tuned,
  });
  return {
    held,
    calls,
    stored,
    reads,
    lookUp,
    readAgain,
    confirm,
    advance: (ms: number) => {
      clockMs += ms;
    },
    change: (id: string) => {
      changed = { number: changed.number + 1, id };
    },
    /** @param before is called when the store has received the request */
    async reply(digest: string, reply: FoundKey | Absent | Away, before = () => {}) {
      await expect.poll(() => asked.has(digest)).toBe(true);
      before();
      asked.get(digest)?.resolve(reply);
      asked.delete(digest);
    },
  };
}

describe('looking up secrets', () => {
  it('shares one look-up among requests with the same secret', async () => {
    const { lookUp, calls, reply, held } = open();
    const both = [lookUp('d', 'one'), lookUp('d', 'other')];
    await reply('d', found('acme', 'd'));
    expect(await Promise.all(both)).toMatchObject([{ key: { id: 'acme' } }, { key: { id: 'acme' } }]);
    expect(calls).toEqual(['d']);
    expect(held.find('d', nowMs)).toMatchObject({ key: { id: 'acme' } });
  });

  it('leaves look-ups to other addresses during a flood, and serves the addresses in turn', async () => {
    const { lookUp, calls, reply } = open({ directoryLookUpsMax: 1, directoryLookUpsWaitingMax: 8 });
    const flood = ['f1', 'f2', 'f3', 'f4', 'f5', 'f6'].map((digest) => lookUp(digest, 'greedy'));
    const other = lookUp('good', 'neighbour');
    expect(await Promise.all(flood.slice(4))).toEqual(['busy', 'busy']);
    await reply('f1', absent);
    await reply('good', found('acme', 'good'));
    expect(await other).toMatchObject({ key: { id: 'acme' } });
    for (const digest of ['f2', 'f3', 'f4']) await reply(digest, absent);
    expect(await Promise.all(flood.slice(0, 4))).toEqual(['absent', 'absent', 'absent', 'absent']);
    expect(calls).toEqual(['f1', 'good', 'f2', 'f3', 'f4']);
  });

  it('keeps a cached key for a moment without a reply from the store, and finds no other keys', async () => {
    const { lookUp, reply, held } = open({ directoryCachedMs: 60_000, directoryAbsentMs: 1_000 });
    held.keep(found('acme', 'd'), nowMs - 60_000);
    expect(isUsable(held, 'd')).toBe(false);
    const [known, unknown] = [lookUp('d', 'a'), lookUp('e', 'a')];
    await reply('d', away);
    await reply('e', away);
    expect(await Promise.all([known, unknown])).toEqual([held.find('d', nowMs), 'away']);
    expect(isUsable(held, 'd', nowMs + 999)).toBe(true);
    expect(isUsable(held, 'd', nowMs + 1_000)).toBe(false);
    expect(held.find('e', nowMs)).toBeUndefined();
  });

  it('reads a key again that this process changed during the look-up, and never returns the old key', async () => {
    const { lookUp, calls, reply, held, change } = open({ directoryRereadsMax: 1 });
    const slow = lookUp('d', 'a');
    await expect.poll(() => calls).toEqual(['d']);
    change('acme');
    await reply('d', found('acme', 'd', 1));
    await expect.poll(() => calls).toEqual(['d', 'd']);
    expect(held.find('d', nowMs)).toBeUndefined();
    await reply('d', found('acme', 'd', 2));
    expect(await slow).toMatchObject({ generation: 2 });
    expect(held.find('d', nowMs)).toMatchObject({ generation: 2 });
  });

  it('does not wait forever for a key that this process changes during each look-up', async () => {
    const { lookUp, reply, change } = open({ directoryRereadsMax: 1 });
    const slow = lookUp('d', 'a');
    for (const generation of [1, 2]) {
      await reply('d', found('acme', 'd', generation), () => change('acme'));
    }
    expect(await slow).toBe('busy');
  });

  it('returns the key that was read even if it is no longer cached', async () => {
    const { lookUp, reply } = open({ directoryCachedKeysMax: 0 });
    const told = lookUp('d', 'a');
    await reply('d', found('acme', 'd'));
    expect(await told).toMatchObject({ key: { id: 'acme' } });
  });
});

describe('reading a key again', () => {
  it('replaces the cached key, drops a removed key, and keeps it without a reply from the store', async () => {
    const { held, stored, readAgain } = open();
    held.keep(found('acme', 'd', 1), nowMs);
    stored.set('acme', away);
    await readAgain('acme');
    expect(held.find('d', nowMs)).toMatchObject({ generation: 1 });
    stored.set('acme', found('acme', 'd', 2));
    await readAgain('acme');
    expect(held.find('d', nowMs)).toMatchObject({ generation: 2 });
    stored.delete('acme');
    await readAgain('acme');
    expect(held.find('d', nowMs)).toBeUndefined();
  });
});

describe('confirming that a cached key is current', () => {
  it('reads a key only if it was not read within a minute, once for all requests that wait', async () => {
    const { held, stored, reads, confirm, advance } = open({ directoryCachedMs: 60_000 });
    stored.set('acme', found('acme', 'd', 7));
    held.keep(found('acme', 'd', 7), nowMs);
    advance(59_999);
    expect(await confirm('acme', 7)).toBe(true);
    expect(reads).toEqual([]);
    advance(1);
    expect(await Promise.all([confirm('acme', 7), confirm('acme', 7)])).toEqual([true, true]);
    expect(await confirm('acme', 7)).toBe(true);
    expect(reads).toEqual(['acme']);
  });

  it('detects a changed and a removed key, and caches the changed key', async () => {
    const { held, stored, confirm, advance } = open({ directoryCachedMs: 60_000 });
    for (const id of ['changed', 'removed']) held.keep(found(id, id, 7), nowMs);
    stored.set('changed', found('changed', 'changed', 8));
    advance(60_000);
    expect(await confirm('changed', 7)).toBe(false);
    expect(await confirm('removed', 7)).toBe(false);
    expect(await confirm('changed', 8)).toBe(true);
    expect(held.find('changed', nowMs)).toMatchObject({ generation: 8 });
    expect(held.find('removed', nowMs)).toBeUndefined();
  });

  it('does not cache or confirm a key that was read before a decision showed that the key has changed', async () => {
    const { held, stored, confirm, readAgain, advance, change } = open({ directoryCachedMs: 60_000 });
    const old = found('acme', 'd', 7);
    held.keep(old, nowMs);
    stored.set('acme', old);
    advance(60_000);
    const slow = [confirm('acme', 7), readAgain('acme')];
    expect(held.drop('acme', 7)).toBe(true);
    change('acme');
    expect((await Promise.all(slow))[0]).toBe(false);
    expect(held.find('d', nowMs)).toBeUndefined();
    expect(held.drop('acme', 7)).toBe(false);
  });

  it('asks the store once a second while it does not answer, and reads a bounded number of keys at the same time', async () => {
    const { held, stored, reads, confirm, advance } = open({
      ...{ directoryCachedMs: 60_000, directoryAbsentMs: 1_000, directoryLookUpsMax: 1 },
    });
    for (const id of ['acme', 'other']) {
      held.keep(found(id, id, 7), nowMs);
      stored.set(id, away);
    }
    advance(60_000);
    expect(await Promise.all([confirm('acme', 7), confirm('other', 7)])).toEqual([true, true]);
    advance(999);
    expect(await confirm('acme', 7)).toBe(true);
    expect(reads).toEqual(['acme']);
    advance(1);
    stored.set('acme', found('acme', 'acme', 8));
    expect(await confirm('acme', 7)).toBe(false);
  });
});

describe('a cached key of the directory', () => {
  const bounds = tunedBounds({
    directoryCachedMs: 60_000,
    directoryAbsentMs: 1_000,
    directoryCachedKeysMax: 2,
    directoryAbsentMax: 2,
  });

  const periodsAt = (held: HeldKeys, digest: string, ms: number) => {
    const { period, freshPeriod, refusalPeriod } = held.find(digest, nowMs + ms) as HeldKey;
    return [period, freshPeriod, refusalPeriod].map((each) => isIn(each, nowMs + ms));
  };

  it('is used for requests that Redis decides until it changes, for other requests for a minute, and for refusals for a second', () => {
    const held = new HeldKeys(bounds);
    const cached = held.keep(found('acme', 'd', 7), nowMs);
    expect(periodsAt(held, 'd', -1)).toEqual([false, false, false]);
    expect(periodsAt(held, 'd', 0)).toEqual([true, true, true]);
    expect(periodsAt(held, 'd', 1_000)).toEqual([true, true, false]);
    expect(periodsAt(held, 'd', 60_000)).toEqual([true, false, false]);
    expect(periodsAt(held, 'd', 400 * 86_400_000)).toEqual([true, false, false]);
    held.drop('acme', 7);
    expect(held.find('d', nowMs)).toBeUndefined();
    expect(isIn(cached.period, nowMs)).toBe(false);
  });

  it('is used for a minute if Redis could not give it a generation', () => {
    const held = new HeldKeys(bounds);
    held.keep(found('acme', 'd', 0), nowMs);
    expect(periodsAt(held, 'd', 59_999)).toEqual([true, true, false]);
    expect(periodsAt(held, 'd', 60_000)).toEqual([false, false, false]);
  });

  it('is read again when the next of its secrets expires, whichever secret a request has', () => {
    const held = new HeldKeys({ ...bounds, directoryCachedKeysMax: 9 });
    const { key, ...more } = found('acme', 'd', 7);
    const secrets = [-1, 5_000, 90_000].map((ms) => ({
      digest: `${ms}`,
      createdMs: 1,
      expiresMs: nowMs + ms,
    }));
    held.keep({ ...more, key: { ...key, secrets: [...key.secrets, ...secrets] } }, nowMs);
    for (const digest of ['d', '-1', '5000', '90000']) {
      expect(isUsable(held, digest, nowMs + 4_999)).toBe(true);
      expect(isUsable(held, digest, nowMs + 5_000)).toBe(false);
    }
  });

  it('remembers for one second that a secret belongs to no key', () => {
    const held = new HeldKeys(bounds);
    held.keepAbsent('nobody', nowMs);
    expect([0, 999, 1_000].map((ms) => held.find('nobody', nowMs + ms))).toEqual([
      'absent',
      'absent',
      undefined,
    ]);
  });

  it('leaves room for a new unknown secret by forgetting all others', () => {
    const held = new HeldKeys(bounds);
    for (const digest of ['x', 'y', 'x', 'z']) held.keepAbsent(digest, nowMs);
    expect(['x', 'y', 'z'].map((digest) => held.find(digest, nowMs) !== undefined)).toEqual([
      ...[true, false, true],
    ]);
  });

  const noneGivenUp = { directoryCachedKeysMax: 2, directoryPackedBytesMax: 4_194_304 };

  it('is packed when there are too many objects, and is then used only for requests that Redis decides', () => {
    const held = new HeldKeys({ ...bounds, ...noneGivenUp });
    const cached = held.keep(found('a', 'a1'.repeat(32), 7), nowMs);
    for (const digest of ['b1', 'c1']) held.keep(found(digest, digest.repeat(32), 8), nowMs);
    expect(isIn(cached.period, nowMs)).toBe(false);
    expect(held.size).toBe(3);
    const digest = 'a1'.repeat(32);
    expect(periodsAt(held, digest, 0)).toEqual([true, false, false]);
    expect(held.isFresh('a', 7, nowMs)).toBe(false);
    expect(held.find(digest, nowMs)).toMatchObject({
      key: { id: 'a', plan: 'free', secrets: [{ digest }] },
      generation: 7,
    });
    expect(held.extend('b1'.repeat(32), nowMs)).toMatchObject({ key: { id: 'b1' } });
    expect(periodsAt(held, 'b1'.repeat(32), 0)).toEqual([true, true, true]);
  });

  it('is forgotten when it is packed, if it has changed, if its digest belongs to no key, or if it was read again', () => {
    const held = new HeldKeys({ ...bounds, ...noneGivenUp, directoryCachedKeysMax: 0 });
    const digest = (id: string) => id.repeat(32);
    for (const id of ['a1', 'b1', 'c1', 'd1']) held.keep(found(id, digest(id), 7), nowMs);
    held.drop('a1', 6);
    expect(held.find(digest('a1'), nowMs)).toMatchObject({ generation: 7 });
    held.drop('a1', 7);
    held.drop('b1');
    held.keepAbsent(digest('c1'), nowMs);
    held.keep(found('d1', digest('e1'), 8), nowMs);
    expect(['a1', 'b1', 'c1', 'd1'].map((id) => held.find(digest(id), nowMs))).toEqual([
      ...[undefined, undefined, 'absent', undefined],
    ]);
    expect(held.find(digest('e1'), nowMs)).toMatchObject({ key: { id: 'd1' }, generation: 8 });
    expect(held.size).toBe(1);
  });

  it('is not packed if it is disabled or has no generation, because it would need a new look-up', () => {
    const held = new HeldKeys({ ...bounds, ...noneGivenUp, directoryCachedKeysMax: 0 });
    held.keep(found('none', 'a1'.repeat(32), 0), nowMs);
    const { key, ...more } = found('disabled', 'b1'.repeat(32), 7);
    held.keep({ ...more, key: { ...key, disabled: true } }, nowMs);
    expect(held.size).toBe(0);
  });

  it.each([1_000, -1_000])(
    'is evicted when there is no room for packed keys, the least recently used first, when the clock moves by %i ms',
    (ms) => {
      const held = new HeldKeys({ ...bounds, directoryPackedBytesMax: 0 });
      for (const id of ['a', 'b']) held.keep(found(id, id, 7), nowMs);
      held.find('a', nowMs + ms);
      held.keep(found('c', 'c', 7), nowMs + ms);
      expect(['a', 'b', 'c'].map((digest) => held.find(digest, nowMs) !== undefined)).toEqual([
        true,
        false,
        true,
      ]);
    },
  );

  it('is counted in octets: few keys with many operations take the room of many keys', () => {
    const held = new HeldKeys({ ...bounds, directoryCachedKeysMax: 100, directoryCachedBytesMax: 20_000 });
    const operations = Array.from({ length: 200 }, (_, index) => `operation-number-${index}`);
    const ids = ['small', 'a', 'b', 'c'];
    for (const id of ids) {
      const { key, ...more } = found(id, id);
      held.keep({ ...more, key: id === 'small' ? key : { ...key, operations } }, nowMs);
    }
    expect(held.size).toBeLessThan(3);
    expect(held.find('c', nowMs)).toMatchObject({ key: { id: 'c' } });
    held.drop('c');
    for (let index = 0; index < 30; index++) held.keep(found(`k${index}`, `k${index}`), nowMs);
    expect(held.find('k0', nowMs)).toMatchObject({ key: { id: 'k0' } });
  });

  it('stays when the process drops an older generation of it', () => {
    const held = new HeldKeys(bounds);
    held.keep(found('acme', 'd', 7), nowMs);
    held.drop('acme', 6);
    expect(held.find('d', nowMs)).toMatchObject({ generation: 7 });
    held.drop('acme', 7);
    expect(held.find('d', nowMs)).toBeUndefined();
  });
});
