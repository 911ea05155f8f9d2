import { configSizes } from '../config-sizes.ts';
import { createShowLine, type FileKind } from './show-line.ts';

/** A position in a configuration file, with the text of the line. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** The column, counted from 1 in UTF-16 units, as editors count. */
  readonly column: number;
  /**
   * The line from the file. `${VAR}` is not filled in, and possible secrets are masked. The text is empty if the file does not
   * exist.
   */
  readonly excerpt: string;
}

/** One fault in the configuration, as plain data for the JSON log. */
export interface Problem extends Place {
  /**
   * A sentence about the fault and its remedy. The sentence never contains values of variables or keys, because they may be
   * secrets.
   */
  readonly message: string;
  /** The position of the other part of a conflict, such as the first of two equal ids. */
  readonly related?: Place & { readonly message: string };
  /**
   * The files that may be at fault, the most likely file first. If this field is absent, `file` and the file of `related` may be at fault.
   * This field is removed before the problem is returned, because an operator may have written a secret in place of a path.
   */
  readonly files?: readonly string[];
}

/** Converts offsets in a text to lines and columns. */
export interface TextPlaces {
  placeAt(offset: number): Place;
  /** Returns only the line number, counted from 1. This method is fast enough to be called for every key. */
  lineAt(offset: number): number;
}

/** Makes a converter that counts the lines of the text at its first call. */
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

/** Returns how many values of an ascending list are at most `limit`. */
export function countUpTo(numbers: readonly number[], limit: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? limit) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The position of a problem that concerns a whole file. */
export function wholeFile(file: string): Place {
  return { file, line: 1, column: 1, excerpt: '' };
}
