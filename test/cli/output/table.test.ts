import { expect, it } from 'vitest';
import { type Column, table } from '../../../gateway/cli/output/table.ts';

const columns: readonly Column<{ readonly id: string; readonly requests?: number }>[] = [
  { title: 'KEY', cell: ({ id }) => id, cutsTo: 6 },
  { title: 'REQUESTS', cell: ({ requests }) => requests },
  { title: 'PROCESS', cell: () => 'p'.repeat(24) },
  { title: 'NAME', cell: () => 'Acme' },
];
const items = [{ id: 'a'.repeat(20), requests: 1_234 }, { id: 'two\nlines' }];
const paint = (_tone: string, text: string) => text;

it('a table names the columns that do not fit', () => {
  expect(table(columns, items, { columns: 42, paint })).toEqual([
    'KEY     REQUESTS  PROCESS',
    'aaa…aa     1,234  pppppppppppppppppppppppp',
    'two…es            pppppppppppppppppppppppp',
    'Not shown, because the terminal is too',
    'narrow: NAME.',
  ]);
});

it('the columns that are shown share the room of the columns that do not fit', () => {
  const texts = { first: 'a'.repeat(20), second: 'b'.repeat(20), third: 'c'.repeat(20) };
  const three: readonly Column<typeof texts>[] = [
    { title: 'FIRST', cell: ({ first }) => first, cutsTo: 10 },
    { title: 'SECOND', cell: ({ second }) => second, cutsTo: 10 },
    { title: 'THIRD', cell: ({ third }) => third, cutsTo: 10 },
  ];
  const rowAt = (width: number) => table(three, [texts], { columns: width, paint })[1];
  expect(rowAt(64)).toBe(`${texts.first}  ${texts.second}  ${texts.third}`);
  expect(rowAt(34)).toBe('aaaaa…aaaa  bbbbb…bbbb  ccccc…cccc');
  expect(rowAt(33)).toMatch(/^(?=.{33}$)a+…a+ {2}b+…b+$/);
  expect(rowAt(21)).toBe(texts.first);
});

it('a table whose columns all fit is complete, and has no line about columns', () => {
  const lines = table(columns, items, { columns: Number.POSITIVE_INFINITY, paint });
  expect(lines[1]).toBe(`${'a'.repeat(20)}     1,234  ${'p'.repeat(24)}  Acme`);
  expect(lines).toHaveLength(3);
});
