import { bounds } from '../bounds.ts';
import { type FileKind, showLine } from './show-line.ts';

/** A place in a configuration file, with the source line that a person has to look at. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units, as editors count. */
  readonly column: number;
  /** The line as it is in the file, with a `${VAR}` unfilled and what may be a secret masked. Empty when there is no such file. */
  readonly excerpt: string;
}

/** One thing that is wrong in the configuration. Plain data: it goes into the JSON log as it is. */
export interface Problem extends Place {
  /** What is wrong and what to write instead; never a substituted value or one of a key, which may be a secret. */
  readonly message: string;
  /** The other place of a conflict. */
  readonly related?: Place & { readonly message: string };
}

/** The place of a character offset; `lineStart` is the offset of its line's first character. */
export function placeAt(options: {
  readonly file: string;
  readonly kind: FileKind;
  readonly text: string;
  readonly line: number;
  readonly column: number;
  readonly lineStart: number;
}): Place {
  const { file, kind, text, line, column, lineStart } = options;
  const lineBreak = text.indexOf('\n', lineStart);
  const end = Math.min(lineBreak === -1 ? text.length : lineBreak, lineStart + bounds.configMaskedCharsMax);
  return {
    file,
    line,
    column,
    excerpt: showLine({ kind, text, start: lineStart, end }).slice(0, bounds.configExcerptCharsMax),
  };
}

/** The place of a problem with a file as a whole. */
export function wholeFile(file: string): Place {
  return { file, line: 1, column: 1, excerpt: '' };
}
