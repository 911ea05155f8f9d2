import { configSizes } from '../config-sizes.ts';
import { createShowLine, type FileKind } from './show-line.ts';

/** A place in a configuration file, with the text of its line. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units, as editors count. */
  readonly column: number;
  /** The line as it is in the file, with `${VAR}` not filled in and possible secrets masked. Empty when there is no such file. */
  readonly excerpt: string;
}

/** One fault in the configuration. Plain data: it goes into the JSON log as it is. */
export interface Problem extends Place {
  /** The fault and what to write instead. Never shows a value that was filled in, or one of a key: it may be a secret. */
  readonly message: string;
  /** The other place of a conflict. */
  readonly related?: Place & { readonly message: string };
  /**
   * The files whose content may be at fault, the likeliest first; absent: `file`, or that of `related`. A load takes them off: one
   * may be a secret that stands in place of a path.
   */
  readonly files?: readonly string[];
}

/** Where the characters of a text are. */
export interface TextPlaces {
  placeAt(offset: number): Place;
  /** The line alone, from 1, for as many offsets as there are keys. */
  lineAt(offset: number): number;
}

/** The lines of the text are only counted when one of them is asked for. */
export function createTextPlaces(options: {
  readonly file: string;
  readonly kind: FileKind;
  readonly text: string;
}): TextPlaces {
  const { file, kind, text } = options;
  const showLine = createShowLine({ kind, text });
  let counted: readonly number[] | undefined;
  const lineStarts = () => {
    counted ??= lineStartsOf(text);
    return counted;
  };
  const lineAt = (offset: number) => countUpTo(lineStarts(), offset);

  return {
    lineAt,
    placeAt(offset) {
      const line = lineAt(offset);
      const lineStart = lineStarts()[line - 1] ?? 0;
      const lineEnd = (lineStarts()[line] ?? text.length + 1) - 1;
      const end = Math.min(lineEnd, lineStart + configSizes.maskedCharsMax);
      const excerpt = showLine(lineStart, end).slice(0, configSizes.excerptCharsMax);
      return { file, line, column: offset - lineStart + 1, excerpt };
    },
  };
}

function lineStartsOf(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** How many of the ascending numbers are not above the limit. */
function countUpTo(numbers: readonly number[], limit: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? limit) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The place of a problem with a file as a whole. */
export function wholeFile(file: string): Place {
  return { file, line: 1, column: 1, excerpt: '' };
}
