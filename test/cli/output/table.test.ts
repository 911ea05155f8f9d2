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

it('a table whose columns all fit is complete, and has no line about columns', () => {
  const lines = table(columns, items, { columns: Number.POSITIVE_INFINITY, paint });
  expect(lines[1]).toBe(`${'a'.repeat(20)}     1,234  ${'p'.repeat(24)}  Acme`);
  expect(lines).toHaveLength(3);
});
