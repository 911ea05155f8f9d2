import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changedKeys } from '../../gateway/keys/changed-keys.ts';
import type { RawKey } from '../../gateway/keys/key-schema.ts';
import { KeyTable, lastChangeMs, nextChangeMs, settingsAt, tableOf } from '../../gateway/keys/key-table.ts';
import { toLimits } from '../../gateway/keys/limits/limit-fields.ts';
import { createPacker, unpackable } from '../../gateway/keys/packed-keys.ts';
import { compilePlans } from '../../gateway/keys/plans/plans.ts';
import type { Limits, Settings } from '../../gateway/shared/model.ts';

const plans = compilePlans({
  free: { custom: false, perMinute: 60, operations: ['getPet', 'listPets'] },
  pro: { custom: false, perMinute: 600, operations: ['getPet', 'listPets'] },
  enterprise: { custom: true },
});

const atMs = Date.parse('2026-12-01');
const inForce = { plans, atMs };

const ids = ['a', 'b', 'B', 'a.b', 'a-b', 'ab', 'zz', '1', '10', '2', '@', '_'];

/** No two keys share a digest, so a table may contain any selection of the keys. */
const keyOf = (id: string) =>
  fc
    .record({
      isCustom: fc.boolean(),
      disabled: fc.boolean(),
      secrets: fc.integer({ min: 0, max: 3 }),
      name: fc.option(fc.string({ maxLength: 5 })),
      ends: fc.nat(3),
      changesTo: fc.option(fc.constantFrom('2026-11-30', '2026-12-02')),
    })
    .map(
      ({ isCustom, disabled, secrets, name, ends, changesTo }): RawKey => ({
        id,
        plan: isCustom ? 'enterprise' : 'free',
        ...(name !== null && { name }),
        ...(isCustom ? { limits: { perDay: 5 } } : { operations: ['getPet'] }),
        ...(changesTo !== null && { changes: [{ from: changesTo, plan: 'pro' }] }),
        disabled,
        secrets: Array.from({ length: secrets }, (_, index) => ({
          sha256: `${index}${ids.indexOf(id)}`.padStart(64, 'f'),
          ...(ends > index && { expires: 1_000 * ends, created: 5 }),
        })),
      }),
    );
const someKeys = fc.subarray(ids).chain((chosen) => fc.tuple(...chosen.map(keyOf)));
const edit = fc
  .tuple(fc.subarray(ids), someKeys)
  .map(([removed, changed]) => [
    ...removed.map((id) => [id, undefined] as const),
    ...changed.map((key) => [key.id, key] as const),
  ]);

/** The plan of a key at `atMs`. */
function planOf({ plan, changes = [] }: RawKey): string {
  return changes.findLast(({ from }) => Date.parse(from) <= atMs)?.plan ?? plan;
}

const limitsOf: Readonly<Record<string, Limits>> = {
  free: toLimits({ perMinute: 60 }),
  pro: toLimits({ perMinute: 600 }),
  enterprise: toLimits({ perDay: 5 }),
};

/** Asserts that a key table agrees with a simple model of the same keys. */
function expectTable(table: KeyTable, model: ReadonlyMap<string, RawKey>): void {
  const sorted = [...model.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  expect([...table.ids()]).toEqual(sorted.map(({ id }) => id));
  expect([...table.stated()]).toEqual(sorted);
  expect(table.size).toBe(model.size);
  expect(table.secrets).toBe(sorted.flatMap(({ secrets }) => secrets).length);
  for (const id of ids) {
    const key = model.get(id);
    const rank = sorted.findIndex((one) => one.id === id);
    expect(table.has(id)).toBe(key !== undefined);
    expect(table.rankOf(id)).toBe(rank === -1 ? undefined : rank);
    expect([...table.ids(id)]).toEqual(sorted.map((one) => one.id).filter((one) => one > id));
    expect(table.secretsOf(id).map(({ digest }) => digest)).toEqual(
      (key?.secrets ?? []).map(({ sha256 }) => sha256),
    );
    const plan = key && planOf(key);
    expect(table.get(id)).toEqual(
      key && {
        id,
        plan,
        ...(key.name !== undefined && { name: key.name }),
        limits: limitsOf[plan ?? ''],
        ...(key.changes && {
          changes: key.changes.map(({ from, plan }) => ({ fromMs: Date.parse(from), plan })),
        }),
        ...(key.operations
          ? { operations: ['getPet'] }
          : plan === 'pro' && { operations: ['getPet', 'listPets'] }),
        disabled: key.disabled,
      },
    );
    for (let index = 0; index < 3; index++) {
      const digest = `${index}${ids.indexOf(id)}`.padStart(64, 'f');
      const raw = key?.secrets[index];
      expect(table.find(digest)).toEqual(
        raw && {
          key: table.get(id),
          secret: {
            digest,
            expiresMs: raw.expires ?? Number.POSITIVE_INFINITY,
            ...(raw.created !== undefined && { createdMs: raw.created }),
          },
        },
      );
    }
  }
  const tallied: unknown[] = [];
  table.tally((...one) => tallied.push(one));
  const last = ({ secrets }: RawKey) =>
    Math.max(0, ...secrets.map(({ expires = Number.POSITIVE_INFINITY }) => expires));
  expect(tallied.map(String).sort()).toEqual(
    sorted.map((key) => String([planOf(key), key.disabled, last(key)])).sort(),
  );
}

describe('a table of keys', () => {
  it('returns the definitions of its keys, also after changes and after a copy', async () => {
    await fc.assert(
      fc.property(someKeys, fc.array(edit, { maxLength: 3 }), (first, edits) => {
        const model = new Map(first.map((key) => [key.id, key]));
        let { keys } = tableOf(first, inForce);
        expectTable(keys, model);
        for (const changes of edits) {
          for (const [id, key] of changes) {
            if (key === undefined) model.delete(id);
            else model.set(id, key);
          }
          keys = keys.with(new Map(changes), inForce);
          const { packed, changes: all } = structuredClone({ packed: keys.packed, changes: keys.changes });
          expectTable(keys, model);
          expectTable(new KeyTable(unpackable(packed), all, inForce), model);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('compares itself with another table, packed together or apart: added, removed, disabled, enabled and changed keys', async () => {
    await fc.assert(
      fc.property(someKeys, edit, edit, fc.boolean(), (first, earlier, later, isPackedAnew) => {
        const before = tableOf(first, inForce).keys.with(new Map(earlier), inForce);
        const edited = before.with(new Map(later), inForce);
        const after = isPackedAnew ? tableOf(edited.stated(), inForce).keys : edited;
        const expected = ids.flatMap((id) => {
          const [from, to] = [before.statedOf(id), after.statedOf(id)];
          if (isDeepStrictEqual(from, to)) return [];
          if (from === undefined || to === undefined) return [`${id} ${to ? 'added' : 'removed'}`];
          if (from.disabled !== to.disabled) return [`${id} ${to.disabled ? 'disabled' : 'enabled'}`];
          return [`${id} changed`];
        });
        const found = [...changedKeys(before, after)].flatMap((one) =>
          one ? [`${one.id} ${one.edit}`] : [],
        );
        expect(found.sort()).toEqual(expected.sort());
      }),
      { numRuns: 300 },
    );
  });

  it('does not change when further tables are made from it', () => {
    const key: RawKey = { id: 'a', plan: 'free', operations: ['getPet'], disabled: false, secrets: [] };
    const { keys } = tableOf([key], inForce);
    keys.with(new Map([['a', undefined]]), inForce).with(new Map([['b', { ...key, id: 'b' }]]), inForce);
    expectTable(keys, new Map([['a', key]]));
  });

  it('gives a key its later plan when a date is reached, and its earlier one before', () => {
    const dated = [
      { from: '2026-12-02', plan: 'pro' },
      { from: '2027-01-01T12:00:00Z', plan: 'free' },
    ];
    const key: RawKey = { id: 'a', plan: 'free', changes: dated, disabled: false, secrets: [] };
    const { keys } = tableOf([key, { ...key, id: 'b', changes: undefined }], inForce);
    const settings = { plans, keys } as unknown as Settings;
    const plansOn = (day: string) => {
      const at = settingsAt(settings, Date.parse(day));
      return [at.keys.get('a')?.plan, at.keys.get('b')?.plan, at === settings];
    };
    expect(plansOn('2026-12-01T23:59:59Z')).toEqual(['free', 'free', true]);
    expect(plansOn('2026-12-02')).toEqual(['pro', 'free', false]);
    expect(plansOn('2027-01-01T12:00:00Z')).toEqual(['free', 'free', false]);
    expect(lastChangeMs(settings, atMs)).toBeUndefined();
    expect(nextChangeMs(settings, atMs)).toBe(Date.parse('2026-12-02'));
    expect(lastChangeMs(settings, Number.POSITIVE_INFINITY)).toBe(Date.parse('2027-01-01T12:00:00Z'));
    expect(nextChangeMs(settings, Date.parse('2027-01-01T12:00:00Z'))).toBeUndefined();
  });

  it('gives keys the present members of their plan', () => {
    const { keys } = tableOf([{ id: 'a', plan: 'free', disabled: false, secrets: [] }], inForce);
    const raised = keys.with(new Map(), {
      plans: compilePlans({ free: { custom: false, perDay: 7 } }),
      atMs,
    });
    expect(raised.get('a')?.limits).toEqual(toLimits({ perDay: 7 }));
    expect(keys.get('a')?.limits).toEqual(toLimits({ perMinute: 60 }));
  });
});

describe('keys are not packed', () => {
  const digest = 'a'.repeat(64);
  const key = (id: string, ...digests: string[]): RawKey => ({
    ...{ id, plan: 'free', disabled: false },
    secrets: digests.map((sha256) => ({ sha256 })),
  });
  it.each([
    ['two have one id', [key('a'), key('b'), key('a')]],
    ['two have a secret of one digest', [key('a', digest), key('b', digest)]],
    ['one has two secrets of one digest', [key('a', digest, digest)]],
  ])('when %s', (_, keys) => {
    const packer = createPacker();
    for (const one of keys) packer.add(one);
    expect(packer.finish()).toBeUndefined();
    expect(() => tableOf(keys, inForce)).toThrow('passed validation');
  });
});
