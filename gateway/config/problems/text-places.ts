import { configSizes } from '../config-sizes.ts';
import type { Place } from './problem.ts';
import { createShowLine, type FileKind } from './show-line.ts';

export interface TextPlaces {
  placeAt(offset: number): Place;
  /** The line number from 1. Fast enough to be called for every key. */
  lineAt(offset: number): number;
}

/** Counts the lines of the text at its first call. */
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

/** How many values of an ascending list are at most `limit`. */
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
