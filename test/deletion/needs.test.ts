import { expect, it } from 'vitest';
import { withDependents } from './needs.ts';

it.each([
  [['apart'], ['apart']],
  [['top'], ['top']],
  [['middle'], ['middle', 'top']],
  [['base'], ['base', 'middle', 'top']],
  [
    ['base', 'top'],
    ['base', 'top', 'middle'],
  ],
  [[], []],
])('a deletion of %j takes along the capabilities that need it: %j', (names, together) => {
  expect(withDependents(names, { top: ['middle'], middle: ['base'] })).toEqual(together);
});
