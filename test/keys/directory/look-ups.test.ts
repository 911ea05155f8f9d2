import { describe, expect, it } from 'vitest';
import { HeldKeys } from '../../../gateway/keys/directory/held-keys.ts';
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

/** Look-ups in a store whose replies the test controls. */
function open(bounds: Parameters<typeof tunedBounds>[0] = {}) {
  const tuned = tunedBounds(bounds);
  const held = new HeldKeys(tuned);
  const asked = new Map<string, PromiseWithResolvers<FoundKey | Absent | Away>>();
  const calls: string[] = [];
  const stored = new Map<string, FoundKey | Away>();
  let changed = { number: 0, id: '' };
  const { lookUp, readAgain } = createLookUps({
    store: {
      find(digest) {
        calls.push(digest);
        const reply = Promise.withResolvers<FoundKey | Absent | Away>();
        asked.set(digest, reply);
        return reply.promise;
      },
      read: (id) => Promise.resolve(stored.get(id) ?? absent),
    },
    held,
    started: Promise.resolve(),
    changes: { count: () => changed.number, lastOf: (id) => (id === changed.id ? changed.number : 0) },
    count: () => {},
    nowMs: () => nowMs,
    bounds: tuned,
  });
  return {
    held,
    calls,
    stored,
    lookUp,
    readAgain,
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
    expect(held.find('d', nowMs)).toBeUndefined();
    const [known, unknown] = [lookUp('d', 'a'), lookUp('e', 'a')];
    await reply('d', away);
    await reply('e', away);
    expect(await Promise.all([known, unknown])).toEqual([held.find('d', nowMs), 'away']);
    expect(held.find('d', nowMs + 999)).toMatchObject({ key: { id: 'acme' } });
    expect(held.find('d', nowMs + 1_000)).toBeUndefined();
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

describe('a cached key of the directory', () => {
  const bounds = tunedBounds({
    directoryCachedMs: 60_000,
    directoryAbsentMs: 1_000,
    directoryCachedKeysMax: 2,
    directoryAbsentMax: 2,
  });

  it('is used for one minute, and the result for an unknown secret or disabled key for one second', () => {
    const held = new HeldKeys(bounds);
    const key = found('acme', 'd');
    held.keep(key, nowMs);
    held.keep({ ...found('shut', 's'), key: { ...found('shut', 's').key, disabled: true } }, nowMs);
    held.keepAbsent('nobody', nowMs);
    const at = (ms: number) =>
      ['d', 's', 'nobody'].map((digest) => held.find(digest, nowMs + ms) !== undefined);
    expect(at(-1)).toEqual([false, false, false]);
    expect(at(0)).toEqual([true, true, true]);
    expect(at(1_000)).toEqual([true, false, false]);
    expect(at(60_000)).toEqual([false, false, false]);
  });

  it('is dropped when there are too many, the oldest first', () => {
    const held = new HeldKeys(bounds);
    for (const id of ['a', 'b', 'a', 'c']) held.keep(found(id, id), nowMs);
    for (const digest of ['x', 'y', 'x', 'z']) held.keepAbsent(digest, nowMs);
    const known = (digest: string) => held.find(digest, nowMs) !== undefined;
    expect(['a', 'b', 'c'].map(known)).toEqual([true, false, true]);
    expect(['x', 'y', 'z'].map(known)).toEqual([true, false, true]);
  });

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
