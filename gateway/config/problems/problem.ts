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

/** The position of a problem that concerns a whole file. */
export function wholeFile(file: string): Place {
  return { file, line: 1, column: 1, excerpt: '' };
}
