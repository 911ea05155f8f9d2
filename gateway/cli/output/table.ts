import { cutText, oneLine, padText, widthOf } from '../../shared/terminal/text-width.ts';
import type { Paint, Tone } from './screen.ts';

/** One cell of a table: its text, and what it means, for terminals with colours. */
export interface Cell {
  readonly text: string;
  readonly tone?: Tone;
}

export interface Column {
  readonly title: string;
  /** Numbers stand at the right. */
  readonly align?: 'left' | 'right';
  /** Its cells are cut where the table would be too wide, but not below this many columns. */
  readonly cutsTo?: number;
  /** It is left out where it is empty, and where the table would be too wide with it, before any cell is cut; the last first. */
  readonly isOptional?: true;
}

export type Row = readonly (string | Cell)[];

export interface TableOptions {
  /** No line is longer. */
  readonly columns: number;
  readonly paint: Paint;
}

const gap = 2;

/** The lines of a table, its titles first. A line break in a cell becomes a space: a row is one line. */
export function table(all: readonly Column[], rows: readonly Row[], options: TableOptions): string[] {
  const { columns: columnsMax, paint } = options;
  const whole = rows.map((row) => all.map((_, index) => toCell(row[index] ?? '')));
  const wide = all.map(({ title, isOptional }, index) => {
    const cells = whole.flatMap((row) => row[index] ?? []);
    return isOptional && cells.every(({ text }) => text === '') ? 0 : widest([toCell(title), ...cells]);
  });
  const isShown = wide.map((width) => width > 0);
  const widthOfShown = () =>
    wide.reduce((sum, width, index) => (isShown[index] ? sum + gap + width : sum), -gap);
  for (let index = all.length - 1; index >= 0 && widthOfShown() > columnsMax; index--) {
    if (all[index]?.isOptional) isShown[index] = false;
  }
  const columns = all.filter((_, index) => isShown[index]);
  const cells = whole.map((row) => row.filter((_, index) => isShown[index]));
  const natural = wide.filter((_, index) => isShown[index]);
  const widths = narrowed(columns, natural, columnsMax);
  const titles = columns.map(({ title }) => toCell({ text: title, tone: 'title' }));
  return [titles, ...cells].map((row) => {
    let line = '';
    let width = 0;
    row.forEach(({ text, tone }, index) => {
      const before = index === 0 ? 0 : gap;
      const room = widths[index] ?? 0;
      // Where nothing more can be cut, the columns at the right are left out: a number that is cut would be another one.
      if (width + before + room > columnsMax) width = columnsMax;
      if (width === columnsMax) return;
      const side = columns[index]?.align === 'right' ? 'left' : 'right';
      const isLast = index === row.length - 1 && side === 'right';
      const cut = cutText(text, room);
      const padded = isLast ? cut : padText(cut, room, side);
      line += ' '.repeat(before) + (tone === undefined || cut === '' ? padded : paint(tone, padded));
      width += before + room;
    });
    return line.trimEnd();
  });
}

/** The widest column that may be cut loses one column after the other, until all fit. */
function narrowed(columns: readonly Column[], natural: readonly number[], columnsMax: number): number[] {
  const widths = [...natural];
  const room = columnsMax - gap * (columns.length - 1);
  let excess = widths.reduce((sum, width) => sum + width, 0) - room;
  while (excess > 0) {
    let widest: number | undefined;
    columns.forEach(({ cutsTo }, index) => {
      const width = widths[index] ?? 0;
      if (cutsTo === undefined || width <= cutsTo) return;
      if (widest === undefined || width > (widths[widest] ?? 0)) widest = index;
    });
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

function widest(cells: readonly Cell[]): number {
  return cells.reduce((width, { text }) => Math.max(width, widthOf(text)), 0);
}

function toCell(cell: string | Cell): Cell {
  const { text, ...rest } = typeof cell === 'string' ? { text: cell } : cell;
  return { ...rest, text: oneLine(text) };
}
