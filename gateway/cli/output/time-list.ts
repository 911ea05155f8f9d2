import { type Entry, emptyText, type Timeline, textOf } from '../../admin/words/list.js';
import { cutText, oneLine, padText, widthOf, wrapText } from '../../shared/terminal/text-width.ts';
import { instant } from './figures.ts';
import { colourOf, sayAt } from './list.ts';
import type { Screen, Tone } from './screen.ts';
import { layOut } from './table.ts';

/** Makes the lines of a list that is sorted by time, or the sentence about an empty list. */
export function timelineLines<Page, Item>(
  { titles: [label, text], items, entry, empty }: Timeline<Page, Item>,
  page: Page,
  screen: Screen,
  nowMs: number,
): readonly string[] {
  const say = sayAt(nowMs);
  const rows = items(page).map((item) => rowOf(entry(item, say), screen));
  if (rows.length === 0) return wrapText(emptyText(page, empty), screen.columns);
  return timeList([label.toUpperCase(), text.toUpperCase()], rows, screen);
}

function rowOf({ at, label, text, tone, details, error }: Entry, { columns }: Screen): TimeListRow {
  const more = details.map(textOf).join(' · ');
  return {
    ...{ at, label, tone: colourOf(tone) },
    text: more === '' ? text : `${text} (${more})`,
    below: error === undefined ? [] : errorLines(error, columns),
  };
}

/** A quoted line of the file is not wrapped, because a caret in the next line marks the position of the error. */
function errorLines(error: string, columns: number): string[] {
  const room = columns - indent.length;
  return error
    .trimEnd()
    .split('\n')
    .flatMap((line) => (line.startsWith(' ') ? [cutText(line, room)] : wrapText(line, room)))
    .map((line) => indent + line);
}

const indent = '    ';

interface TimeListRow {
  readonly at: string;
  /** The kind of the event, or the author of the change. */
  readonly label: string;
  /** The sentence, which is wrapped on a narrow terminal. */
  readonly text: string;
  readonly tone?: Tone | undefined;
  /** Lines below the sentence, which are printed unchanged. */
  readonly below?: readonly string[];
}

/** The minimum width of a text next to its timestamp. If there is less room, the text is printed below its timestamp. */
const textColumnsMin = 40;
const indentColumns = 4;

/** Formats the rows in the given order. Each row has the timestamp (UTC), the label, and the sentence. */
function timeList(
  [labelTitle, textTitle]: readonly [label: string, text: string],
  rows: readonly TimeListRow[],
  { columns, paint }: Screen,
): string[] {
  const columnsOfHead = [
    { title: 'WHEN (UTC)', cell: ({ at }: TimeListRow) => instant(at) },
    { title: labelTitle, cell: ({ label }: TimeListRow) => label },
  ];
  const whole = { columns: Number.POSITIVE_INFINITY, paint: (_: Tone, text: string) => text };
  const [titles = '', ...heads] = layOut(columnsOfHead, rows, whole).lines;
  const headColumns = Math.max(...[titles, ...heads].map(widthOf)) + 2;
  const isBeside = columns - headColumns >= textColumnsMin;
  const before = ' '.repeat(isBeside ? headColumns : indentColumns);
  return [
    paint('title', isBeside ? padText(titles, headColumns, 'right') + textTitle : titles),
    ...rows.flatMap(({ text, tone, below = [] }, index) => {
      const head = heads[index] ?? '';
      const wrapped = wrapText(oneLine(text), columns - before.length);
      const lines = tone === undefined ? wrapped : wrapped.map((line) => paint(tone, line));
      const [first = '', ...rest] = isBeside ? lines : ['', ...lines];
      const start = isBeside ? padText(head, headColumns, 'right') + first : head;
      return [start, ...rest.map((line) => before + line), ...below];
    }),
  ];
}
