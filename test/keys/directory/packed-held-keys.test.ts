import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type PackableKey, PackedHeldKeys } from '../../../gateway/keys/directory/packed-held-keys.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';

function keyOf(id: string, secrets: readonly string[], more: Partial<PackableKey['key']> = {}): PackableKey {
  const key = {
    ...{ id, plan: 'free', disabled: false, name: `Müller ${id}` },
    secrets: secrets.map((secret) => ({ digest: digestSecret(secret) })),
    ...more,
  };
  return { key, generation: 1_795_664_246_011.123, expiresMs: Number.POSITIVE_INFINITY };
}

it('returns each key as it was added, by each of its digests, once', () => {
  const packed = new PackedHeldKeys(1_048_576);
  const leak = { atMs: 5, by: 'github', ended: true, url: 'https://example.com/ü' };
  const full: PackableKey = {
    key: {
      ...{
        id: 'acme',
        plan: 'enterprise',
        disabled: false,
        name: 'Ærø',
        note: 'long '.repeat(100),
        concurrent: 3,
      },
      ...{ limits: { perMinute: 60 }, operations: ['listPets'], addresses: ['192.0.2.0/24'] },
      secrets: [
        { digest: digestSecret('a'), expiresMs: 1_800_000_000_000, leak },
        { digest: digestSecret('b') },
      ],
    },
    generation: 7,
    expiresMs: 1_800_000_000_000,
  };
  for (const secret of ['a', 'b']) {
    packed.add(full);
    packed.add(keyOf('other', ['c']));
    expect(packed.size).toBe(2);
    expect(packed.take(digestSecret(secret))).toEqual(full);
    for (const gone of ['a', 'b']) expect(packed.take(digestSecret(gone))).toBeUndefined();
    expect(packed.take(digestSecret('c'))).toEqual(keyOf('other', ['c']));
    expect(packed.size).toBe(0);
  }
});

it('removes a key by its id, and only of the given generation', () => {
  const packed = new PackedHeldKeys(1_048_576);
  const key = keyOf('acme', ['a']);
  packed.add(key);
  expect(packed.remove('other')).toBe(false);
  expect(packed.remove('acme', key.generation - 1)).toBe(false);
  expect(packed.size).toBe(1);
  expect(packed.remove('acme', key.generation)).toBe(true);
  expect(packed.take(digestSecret('a'))).toBeUndefined();
  packed.add(key);
  packed.remove('acme');
  expect(packed.size).toBe(0);
});

it('forgets the keys that were added first when its memory is full, and needs no more memory then', () => {
  const packed = new PackedHeldKeys(65_536, 4_096);
  const keys = Array.from({ length: 2_000 }, (_, index) => keyOf(`key-${index}`, [`${index}`]));
  for (const key of keys) packed.add(key);
  const held = keys.filter((_, index) => packed.take(digestSecret(`${index}`)) !== undefined);
  expect(held.length).toBeGreaterThan(200);
  expect(held).toEqual(keys.slice(-held.length));
  expect(packed.size).toBe(0);
});

it('does not add a key that is larger than a segment, or any key without memory', () => {
  const packed = new PackedHeldKeys(65_536, 4_096);
  packed.add(
    keyOf('large', ['a'], { operations: Array.from({ length: 500 }, (_, index) => `operation-${index}`) }),
  );
  expect(packed.size).toBe(0);
  const none = new PackedHeldKeys(0);
  none.add(keyOf('acme', ['a']));
  expect([none.size, none.take(digestSecret('a'))]).toEqual([0, undefined]);
});

it('has room for keys with many secrets, although they fill the tables first', () => {
  const packed = new PackedHeldKeys(65_536, 4_096);
  const secretsOf = (index: number) => Array.from({ length: 16 }, (_, secret) => `${index}-${secret}`);
  for (let index = 0; index < 300; index++) packed.add(keyOf(`key-${index}`, secretsOf(index)));
  expect(packed.size).toBeGreaterThan(20);
  expect(packed.take(digestSecret('299-15'))).toMatchObject({ key: { id: 'key-299' } });
});

it('holds what a Map holds, after any keys were added, taken out and removed', () => {
  const step = fc.record({ verb: fc.constantFrom('add', 'take', 'read', 'remove'), at: fc.nat(30) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      // Few slots, so that many entries share a run of slots.
      const packed = new PackedHeldKeys(8_192, 6_000);
      const all = new Map<string, PackableKey>();
      for (const { verb, at } of steps) {
        const id = `key-${at}`;
        const known = all.get(id);
        if (verb === 'take') {
          expect(packed.take(digestSecret(id))).toEqual(known);
          all.delete(id);
        } else if (verb === 'read') {
          expect(packed.read(id)).toEqual(known);
        } else if (verb === 'remove') {
          packed.remove(id);
          all.delete(id);
        } else if (known === undefined && all.size < 12) {
          const key = keyOf(id, [id, `${id}-other`], { name: undefined });
          packed.add(key);
          all.set(id, key);
        }
        // If the segment was full, it was emptied before the new key was added.
        if (packed.size < all.size) for (const other of all.keys()) if (other !== id) all.delete(other);
        expect(packed.size).toBe(all.size);
      }
      for (const [id, key] of all) expect(packed.take(digestSecret(`${id}-other`))).toEqual(key);
    }),
    { numRuns: 300 },
  );
});
