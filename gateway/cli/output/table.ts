import { cutText, oneLine, padText, widthOf, wrapText } from '../../shared/terminal/text-width.ts';
import { figure } from '../../shared/words/figures.js';
import type { Screen, Tone } from './screen.ts';

/** A cell with a tone, which terminals show as a colour. */
export interface Cell {
  readonly text: string;
  readonly tone?: Tone | undefined;
}

export interface Column<Item> {
  readonly title: string;
  /** The content of a cell. A number gets thousands separators, and its column is aligned right. */
  readonly cell: (item: Item) => string | number | Cell | undefined;
  readonly align?: 'right';
  /**
   * The smallest width at which a shortened cell is readable. If the table is too wide, cells are shortened at most to this
   * width. Without it, they are never shortened.
   */
  readonly cutsTo?: number;
  /** Left out if all of its cells are empty. If the table is too wide, the column is left out before any cell is shortened. */
  readonly isOptional?: boolean;
}

/** Makes a table with one line for each item. A last line lists the titles of columns that do not fit. */
export function table<Item>(
  columns: readonly Column<Item>[],
  items: readonly Item[],
  screen: Screen,
  toneOf?: (item: Item) => Tone | undefined,
): string[] {
  const { lines, hidden } = layOut(columns, items, screen, toneOf);
  if (hidden.length === 0) return lines;
  return [
    ...lines,
    ...wrapText(`Not shown, because the terminal is too narrow: ${hidden.join(', ')}.`, screen.columns),
  ];
}

/** Makes a table of names and values, under the title KEY. A long value continues on further lines. */
export function factTable(
  id: string,
  facts: readonly (readonly [name: string, value: string | Cell | undefined])[],
  screen: Screen,
): string[] {
  const known = facts.filter(([, value]) => value !== undefined);
  const namesWidth = Math.max(...known.map(([name]) => widthOf(name))) + gap;
  const lines = known.flatMap(([name, value]) => {
    const { text, tone } = toCell(value);
    return wrapText(text, screen.columns - namesWidth).map((line, index) => {
      return { name: index === 0 ? name : '', value: { text: line, tone } };
    });
  });
  const columns: readonly Column<(typeof lines)[number]>[] = [
    { title: 'KEY', cell: ({ name }) => name },
    { title: id, cell: ({ value }) => value, cutsTo: 12 },
  ];
  return table(columns, lines, screen);
}

const gap = 2;

/** `lines` are the lines of a table, with the titles in the first line. `hidden` lists the titles of columns that do not fit. */
export function layOut<Item>(
  columns: readonly Column<Item>[],
  items: readonly Item[],
  { columns: columnsMax, paint }: Screen,
  toneOf: (item: Item) => Tone | undefined = () => undefined,
): { readonly lines: string[]; readonly hidden: string[] } {
  const filled = columns.map((column) => fillColumn(column, items));
  const shown = filled.filter(
    ({ isOptional, cells }) => !isOptional || cells.slice(1).some(({ text }) => text),
  );
  const all = shown.map(({ title }) => title);
  const excess = () => shown.reduce((sum, { width }) => sum + gap + width, -gap) - columnsMax;
  for (let last = -1; excess() > 0; shown.splice(last, 1)) {
    last = shown.findLastIndex(({ isOptional }) => isOptional);
    if (last === -1) break;
  }
  // The last columns are left out if the others would not be readable. The others share the room of these columns. Numbers are
  // not shortened, because a missing digit would make another number.
  const leastExcess = () =>
    shown.reduce((sum, { width, cutsTo = width }) => sum + gap + Math.min(width, cutsTo), -gap) - columnsMax;
  while (leastExcess() > 0 && shown.length > 1) shown.pop();
  for (let cut = excess(); cut > 0; cut--) {
    const widest = shown
      .filter(({ cutsTo = Number.POSITIVE_INFINITY, width }) => width > cutsTo)
      .reduce<FilledColumn | undefined>((a, b) => (a === undefined || b.width > a.width ? b : a), undefined);
    if (widest === undefined) break;
    widest.width -= 1;
  }
  const tones: readonly (Tone | undefined)[] = ['title', ...items.map(toneOf)];
  const lines = tones.map((rowTone, row) =>
    shown
      .map(({ cells, width, side }, index) => {
        const { text, tone = rowTone } = cells[row] ?? { text: '' };
        const cut = cutText(text, width);
        const padded = index === shown.length - 1 && side === 'right' ? cut : padText(cut, width, side);
        return tone === undefined || cut === '' ? padded : paint(tone, padded);
      })
      .join(' '.repeat(gap))
      .trimEnd(),
  );
  return { lines, hidden: all.filter((title) => !shown.some((one) => one.title === title)) };
}

interface FilledColumn {
  readonly title: string;
  readonly cutsTo?: number;
  readonly isOptional?: boolean;
  /** The title, followed by the cell of each item. Cells have no line breaks. */
  readonly cells: readonly Cell[];
  /** The side of the cell that is filled with spaces. */
  readonly side: 'left' | 'right';
  width: number;
}

function fillColumn<Item>({ cell, align, ...column }: Column<Item>, items: readonly Item[]): FilledColumn {
  const values = items.map(cell);
  const cells = [column.title, ...values].map(toCell);
  const isRight = align === 'right' || values.some((value) => typeof value === 'number');
  const width = cells.reduce((widest, { text }) => Math.max(widest, widthOf(text)), 0);
  return { ...column, cells, side: isRight ? 'left' : 'right', width };
}

function toCell(value: string | number | Cell | undefined): Cell {
  if (typeof value === 'number') return { text: figure(value) };
  const { text, tone } = typeof value === 'object' ? value : { text: value ?? '', tone: undefined };
  return { text: oneLine(text), tone };
}
