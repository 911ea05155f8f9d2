import { expect, test } from 'vitest';
import { rememberLast } from '../../../gateway/shared/structures/remember-last.ts';

test('rememberLast gives each value its own result, and keeps only the last result', () => {
  const made: (number | undefined)[] = [];
  const textOf = rememberLast((value: number | undefined) => {
    made.push(value);
    return `<${value}>`;
  });
  const values = [undefined, undefined, 0, 7, 7, 7, 0, 7];
  expect(values.map((value) => textOf(value))).toEqual(values.map((value) => `<${value}>`));
  expect(made).toEqual([undefined, 0, 7, 0, 7]);
});
