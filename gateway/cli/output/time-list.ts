import { oneLine, padText, widthOf, wrapText } from '../../shared/terminal/text-width.ts';
import { instant } from './figures.ts';
import type { Screen, Tone } from './screen.ts';
import { layOut } from './table.ts';

/** An event with its timestamp. */
export interface TimeListRow {
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
export function timeList(
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
