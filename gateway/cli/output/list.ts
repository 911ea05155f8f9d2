import {
  type Asked,
  type Column,
  emptyText,
  isFigure,
  type List,
  type Say,
  type Sentence,
  type Table,
  type Tone,
  textOf,
} from '../../admin/words/list.js';
import { wrapText } from '../../shared/terminal/text-width.ts';
import { figure, percent, relative } from '../../shared/words/figures.js';
import { clock, instant } from './figures.ts';
import type { Tone as Colour, Screen } from './screen.ts';
import { type Cell, type Column as TableColumn, table } from './table.ts';

/** Makes the lines of a list of the admin API: its sentences, and its table or the sentence about an empty list. */
export function listLines<Page, Row>(
  list: List<Page, Row>,
  page: Page,
  asked: Asked,
  screen: Screen,
  nowMs: number,
): readonly string[] {
  const rows = list.rows(page);
  return [
    ...(list.head?.(page, sayAt(nowMs)) ?? []).flatMap((sentence) => sentenceLines(sentence, screen)),
    ...(rows.length === 0
      ? wrapText(emptyText(page, textOf(list.empty(asked, page, sayAt(nowMs)))), screen.columns)
      : listTable(list, rows, screen, nowMs)),
  ];
}

export function listTable<Row>(
  { columns, onTerminal }: Table<Row>,
  rows: readonly Row[],
  screen: Screen,
  nowMs: number,
): readonly string[] {
  const shown = onTerminal.flatMap((name) => columns[name] ?? []);
  return table(
    shown.map((column) => tableColumn(column, nowMs)),
    rows,
    screen,
  );
}

function tableColumn<Row>(
  { title, kind = 'text', value, tone, isOptional = false, missing = '', terminal = {} }: Column<Row>,
  nowMs: number,
): TableColumn<Row> {
  const { title: shownTitle = title, ...rest } = terminal;
  const say = sayAt(nowMs);
  return {
    title: `${shownTitle.toUpperCase()}${kind === 'clock' || kind === 'minute' ? ' (UTC)' : ''}`,
    ...(isFigure(kind) && { align: 'right' as const }),
    ...(isOptional && { isOptional }),
    ...rest,
    cell(row): Cell | number {
      const found = value(row, say);
      const colour = colourOf(tone?.(row));
      if (found === undefined) return { text: missing };
      if (typeof found === 'number' && kind === 'count' && colour === undefined) return found;
      return { text: formatted(kind, found, nowMs), tone: colour };
    },
  };
}

function formatted(kind: Column<never>['kind'], value: string | number, nowMs: number): string {
  if (typeof value === 'string') return value;
  switch (kind) {
    case 'percent':
      return percent(value);
    case 'ago':
      return relative(value, nowMs);
    case 'until':
      return relative(Math.max(value, nowMs), nowMs);
    case 'clock':
      return clock(value, nowMs);
    case 'minute':
      return instant(value).slice(0, 16);
    default:
      return figure(value);
  }
}

/** A terminal shows times in UTC. */
export function sayAt(nowMs: number): Say {
  return { nowMs, clock: (atMs) => `${clock(atMs, nowMs)} UTC` };
}

function sentenceLines(sentence: Sentence, { columns, paint }: Screen): readonly string[] {
  const colour = colourOf(sentence.tone);
  const lines = wrapText(textOf(sentence), columns);
  return colour === undefined ? lines : lines.map((line) => paint(colour, line));
}

export function colourOf(tone: Tone | undefined): Colour | undefined {
  return tone && ({ good: 'good', near: 'warning', bad: 'bad', off: 'faint' } as const)[tone];
}
