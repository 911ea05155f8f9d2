import { oneLine, padText, widthOf, wrapText } from '../../shared/terminal/text-width.ts';
import { instant } from './figures.ts';
import type { Screen, Tone } from './screen.ts';

/** An event with its instant. */
export interface TimeListRow {
  readonly at: string;
  /** Cells of further columns, each with its title in `titles`. */
  readonly cells: readonly string[];
  /** A sentence. A narrow terminal wraps it. */
  readonly text: string;
  readonly tone?: Tone | undefined;
  /** Lines below the sentence, which are printed unchanged. */
  readonly below?: readonly string[];
}

const gap = '  ';
/** With less room than this, the text stands below its instant. */
const textColumnsMin = 40;
const indent = '    ';

/** Prints rows in their order: the instant (UTC), the cells, and the sentence. */
export function timeList(titles: readonly string[], rows: readonly TimeListRow[], screen: Screen): string[] {
  const { columns, paint } = screen;
  const heads = rows.map(({ at, cells }) => [instant(oneLine(at)), ...cells.map(oneLine)]);
  const [textTitle = '', ...others] = titles.toReversed();
  const named = ['WHEN (UTC)', ...others.toReversed()];
  const widths = named.map((title, index) =>
    Math.max(widthOf(title), ...heads.map((head) => widthOf(head[index] ?? ''))),
  );
  const headOf = (head: readonly string[]) =>
    widths.map((width, index) => padText(head[index] ?? '', width, 'right') + gap).join('');
  const headWidth = widthOf(headOf([]));
  const isBeside = columns - headWidth >= textColumnsMin;
  const before = isBeside ? ' '.repeat(headWidth) : indent;
  return [
    paint('title', `${headOf(named)}${isBeside ? textTitle : ''}`.trimEnd()),
    ...rows.flatMap(({ text, tone, below = [] }, index) => {
      const head = headOf(heads[index] ?? []);
      const wrapped = wrapText(oneLine(text), columns - widthOf(before));
      const painted = tone === undefined ? wrapped : wrapped.map((line) => paint(tone, line));
      const [first = '', ...rest] = painted;
      return isBeside
        ? [head + first, ...rest.map((line) => before + line), ...below]
        : [head.trimEnd(), ...painted.map((line) => before + line), ...below];
    }),
  ];
}
