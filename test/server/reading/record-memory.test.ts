import { expect, it } from 'vitest';
import { RecordMemory } from '../../../gateway/server/reading/record-memory.ts';
import { packCounts } from '../../../gateway/usage/store/counts.ts';
import type { RecordRead, StoredRecord } from '../../../gateway/usage/store/usage-store.ts';

const read = (keyId: string, ...fields: string[]): RecordRead => ({
  record: { kind: 'day', keyId, day: 1 },
  ...(fields.length > 0 && { fields }),
});
const stored = (fields: Record<string, Record<number, number>>, batches = {}): StoredRecord => ({
  fields: new Map(
    Object.entries(fields).map(([name, counts]) => [
      name,
      packCounts(new Map(Object.entries(counts).map(([number, value]) => [Number(number), value]))),
    ]),
  ),
  batches: new Map(Object.entries(batches)),
});

it('a record is remembered field by field, and each read replaces the fields that it asked for', () => {
  const memory = new RecordMemory(100);
  memory.remember(read('acme', 'a', 'b'), stored({ a: { 1: 5 }, b: { 1: 7 } }));
  memory.remember(read('acme', 'a'), stored({ a: { 1: 6, 2: 1 } }));
  expect(memory.find(read('acme'))).toEqual(stored({ a: { 1: 6, 2: 1 }, b: { 1: 7 } }));
  memory.remember(read('acme', 'b'), stored({}));
  expect(memory.find(read('acme', 'a', 'b'))).toEqual(stored({ a: { 1: 6, 2: 1 } }));
  expect(memory.find(read('other'))).toEqual(stored({}));
});

it('where the process itself has recorded more, its number holds, and so does its newest batch', () => {
  const memory = new RecordMemory(100);
  memory.remember(read('acme'), stored({ a: { 1: 30, 2: 1 } }, { me: 5, other: 2 }));
  const own = stored({ a: { 1: 20, 2: 4 }, b: { 1: 3 } }, { me: 9 });
  expect(memory.find(read('acme'), own)).toEqual(
    stored({ a: { 1: 30, 2: 4 }, b: { 1: 3 } }, { me: 9, other: 2 }),
  );
});

it('the records that were read longest ago go first when there is no room', () => {
  const memory = new RecordMemory(6);
  for (const key of ['first', 'second', 'third']) memory.remember(read(key), stored({ a: { 1: 1 } }));
  memory.remember(read('first'), stored({ a: { 1: 2 } }));
  memory.remember(read('fourth'), stored({ a: { 1: 1 } }));
  const left = ['first', 'second', 'third', 'fourth'].filter((key) => memory.find(read(key)).fields.size > 0);
  expect(left).toEqual(['first', 'third', 'fourth']);
});
