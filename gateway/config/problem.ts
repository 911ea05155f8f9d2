import { maskSecrets } from './mask-secrets.ts';

/** A place in a configuration file, with the source line that a person has to look at. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units, as editors count. */
  readonly column: number;
  /** The line as it is in the file: a `${VAR}` unfilled, a secret masked. Empty when there is no such file. */
  readonly excerpt: string;
}

/** One thing that is wrong in the configuration. Plain data: it goes into the JSON log as it is. */
export interface Problem extends Place {
  /** What is wrong and what to write instead; never a substituted value, which may be a secret. */
  readonly message: string;
  /** The other place of a conflict. */
  readonly related?: Place & { readonly message: string };
}

/** Longer lines are cut in an excerpt: a file of one line must not fill the log. */
const excerptCharsMax = 200;

/** The place of a character offset; `lineStart` is the offset of its line's first character. */
export function placeAt(options: {
  readonly file: string;
  readonly text: string;
  readonly line: number;
  readonly column: number;
  readonly lineStart: number;
}): Place {
  const { file, text, line, column, lineStart } = options;
  const lineEnd = text.indexOf('\n', lineStart);
  const source = text.slice(lineStart, lineEnd === -1 ? text.length : lineEnd).replace('\r', '');
  return { file, line, column, excerpt: maskSecrets(source).slice(0, excerptCharsMax) };
}

/** The place of a problem with a file as a whole. */
export function wholeFile(file: string): Place {
  return { file, line: 1, column: 1, excerpt: '' };
}
